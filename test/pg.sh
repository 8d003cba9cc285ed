# shellcheck shell=bash
# A private PostgreSQL for tests, demo and benchmarks, sourced by scripts.
#
# The installed PostgreSQL's files are copied into $PREFIX (default
# <root>/tmp_install) and the extension is installed into that copy, so nothing
# outside the source tree is written and several trees can be tested at once.
#
#	pg_install			copies PostgreSQL, builds and installs the extension
#	pg_start [conf...]	a new cluster with each "name=value" line of settings; sets PGHOST, PGPORT, ...
#	pg_stop				stops it and removes its data
#	as_pg command...	runs a command as the user who owns the cluster
#
# Works as root (the cluster then runs as "nobody") and as any other user.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PG_CONFIG=${PG_CONFIG:-$(command -v pg_config)}
PREFIX=${PREFIX:-$top/tmp_install}
pg_bindir=$PREFIX$("$PG_CONFIG" --bindir)
pg_pkglibdir=$PREFIX$("$PG_CONFIG" --pkglibdir)
pg_sharedir=$PREFIX$("$PG_CONFIG" --sharedir)
PG_REGRESS=$("$PG_CONFIG" --pkglibdir)/pgxs/src/test/regress/pg_regress
PG_ISOLATION=$("$PG_CONFIG" --pkglibdir)/pgxs/src/test/isolation/pg_isolation_regress
export PREFIX PG_CONFIG PG_REGRESS PG_ISOLATION

pg_install() {
	if [[ ! -x $pg_bindir/postgres ]]; then
		mkdir -p "$pg_bindir" "$pg_pkglibdir" "$pg_sharedir"
		cp -a "$("$PG_CONFIG" --bindir)"/. "$pg_bindir"/
		(cd "$("$PG_CONFIG" --pkglibdir)" && tar cf - --exclude=bitcode .) | tar xf - -C "$pg_pkglibdir"
		(cd "$("$PG_CONFIG" --sharedir)" && tar cf - --exclude=man --exclude=locale .) | tar xf - -C "$pg_sharedir"
	fi
	make -C "$top" -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG" ${pg_make_args:-} all >/dev/null &&
		make -C "$top" -s PG_CONFIG="$PG_CONFIG" ${pg_make_args:-} with_llvm=no install DESTDIR="$PREFIX" >/dev/null
}

as_pg() {
	if [[ $(id -u) == 0 ]]; then
		setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp PATH="$pg_bindir:$PATH" "$@"
	else
		env PATH="$pg_bindir:$PATH" "$@"
	fi
}

pg_start() {
	pg_root=$(mktemp -d "${TMPDIR:-/tmp}/gpuagg.XXXXXX")
	chmod 755 "$pg_root"
	mkdir "$pg_root/data" "$pg_root/sock"
	[[ $(id -u) == 0 ]] && chown -R nobody:nogroup "$pg_root"
	chmod 700 "$pg_root/data"
	as_pg initdb -D "$pg_root/data" -A trust -U postgres --no-locale -E UTF8 --no-sync >/dev/null || return 1
	{
		printf '%s\n' "unix_socket_directories='$pg_root/sock'" "listen_addresses=''" "fsync=off" "max_wal_size=4GB"
		printf '%s\n' "$@"
	} >>"$pg_root/data/postgresql.conf"
	as_pg pg_ctl -D "$pg_root/data" -l "$pg_root/log" -w start >/dev/null || {
		tail -20 "$pg_root/log" >&2
		return 1
	}
	export PGHOST=$pg_root/sock PGPORT=5432 PGUSER=postgres PGDATABASE=postgres PATH=$pg_bindir:$PATH
}

pg_stop() {
	[[ -n ${pg_root:-} ]] || return 0
	as_pg pg_ctl -D "$pg_root/data" -m immediate -w stop >/dev/null 2>&1
	rm -rf "$pg_root"
	pg_root=
}
