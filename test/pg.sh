# shellcheck shell=bash
# A private PostgreSQL for tests, demo and benchmarks, sourced by scripts.
#
# The installed PostgreSQL's files are copied into $PREFIX (default
# <root>/tmp_install) and the extension is installed into that copy, so nothing
# outside the source tree is written and several trees can be tested at once.
#
#	pg_need				checks that PostgreSQL and its headers are there; as root installs what is missing
#	pg_install			copies PostgreSQL, builds and installs the extension, without its GPU server
#						unless there is a GPU: that takes minutes to build
#	pg_start [conf...]	a new cluster with each "name=value" line of settings, and those of
#				$PG_CONF, which has ; between them; sets PGHOST, PGPORT, ...
#	pg_stop				stops it and removes its data
#	pg_server PROGRAM	installs a GPU server's program where the cluster's user can run it, in a folder of the name of
#						PROGRAM's; prints the path for gpuagg.server_program
#	pg_await_server		waits until the GPU server of the cluster is ready; that is false after five minutes
#	pg_core_files		lets what this shell starts leave core files, where the system has them in the working directory
#	pg_crashes path...	what a cluster's logs at or below these say of crashes, and where its processes crashed
#	as_pg command...	runs a command as the user who owns the cluster
#
# Works as root (the cluster then runs as "nobody") and as any other user.  Where
# "nobody" cannot enter the source tree, the copy lies under $TMPDIR instead.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What the cluster's user reads is copied by root, whose umask may keep others out.
umask 022

as_nobody() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp "$@"
}

pg_tmp=${TMPDIR:-/tmp}
if [[ $(id -u) == 0 ]] && ! as_nobody test -x "$pg_tmp"; then
	pg_tmp=/tmp
fi

# Sets the paths of the PostgreSQL found and of its copy.
pg_paths() {
	# an absolute path: pg_start puts the copy's pg_config first in PATH
	PG_CONFIG=$(command -v "${PG_CONFIG:-pg_config}") || return 1
	pg_libdir=$("$PG_CONFIG" --pkglibdir)
	if [[ -z ${PREFIX:-} ]]; then
		PREFIX=$top/tmp_install
		if [[ $(id -u) == 0 ]] && ! as_nobody test -x "$top"; then
			PREFIX=$pg_tmp/gpuagg-install-$(cksum <<<"$top" | cut -d' ' -f1)
		fi
	fi
	pg_bindir=$PREFIX$("$PG_CONFIG" --bindir)
	pg_pkglibdir=$PREFIX$pg_libdir
	pg_sharedir=$PREFIX$("$PG_CONFIG" --sharedir)
	PG_REGRESS=$pg_libdir/pgxs/src/test/regress/pg_regress
	PG_ISOLATION=$pg_libdir/pgxs/src/test/isolation/pg_isolation_regress
	export PREFIX PG_CONFIG PG_REGRESS PG_ISOLATION
}
pg_paths || true

# What is missing, as names of Debian packages.
pg_missing() {
	local found=${PG_CONFIG:-$(command -v pg_config)}

	if [[ -z $found || ! -x $("$found" --bindir)/initdb ]]; then
		echo postgresql postgresql-server-dev-all
	elif [[ ! -e $("$found" --pgxs) || ! -e $("$found" --includedir-server)/postgres.h ]]; then
		echo "postgresql-server-dev-$("$found" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')"
	fi
	perl -MIPC::Run -e 1 2>/dev/null || echo libipc-run-perl
	command -v gcc >/dev/null || echo gcc
}

pg_need() {
	local missing

	missing=$(pg_missing | xargs)
	if [[ -n $missing ]]; then
		if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
			echo "needed, but not installed: $missing (Debian's package names)" >&2
			return 1
		fi
		echo "installing $missing"
		# shellcheck disable=SC2086
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } \
			>"$pg_tmp/gpuagg-apt.log" 2>&1 || {
			tail -20 "$pg_tmp/gpuagg-apt.log" >&2
			return 1
		}
		hash -r
		unset PG_CONFIG
	fi
	pg_paths
}

pg_install() {
	[[ -e /dev/nvidiactl ]] || local pg_make_args="NVCC= ${pg_make_args:-}"
	# outside of the tree a copy outlives it, and may be of a release before
	if [[ ! -x $pg_bindir/postgres || $("$PG_CONFIG" --version) != $(cat "$PREFIX/release" 2>/dev/null) ]]; then
		local bindir

		bindir=$("$PG_CONFIG" --bindir)
		if [[ -z $bindir || $bindir == "$PREFIX"* ]]; then
			echo "PG_CONFIG must name the pg_config of an installed PostgreSQL, not '$PG_CONFIG'" >&2
			return 1
		fi
		[[ ! -e $PREFIX/release ]] || rm -rf "$PREFIX"
		mkdir -p "$pg_bindir" "$pg_pkglibdir" "$pg_sharedir"
		cp -a "$bindir"/. "$pg_bindir"/
		(cd "$pg_libdir" && tar cf - --exclude=bitcode --exclude=pgxs .) | tar xf - -C "$pg_pkglibdir"
		(cd "$("$PG_CONFIG" --sharedir)" && tar cf - --exclude=man --exclude=locale .) | tar xf - -C "$pg_sharedir"
		"$PG_CONFIG" --version >"$PREFIX/release"
	fi
	make -C "$top" -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG" with_llvm=no ${pg_make_args:-} all >/dev/null &&
		make -C "$top" -s PG_CONFIG="$PG_CONFIG" ${pg_make_args:-} with_llvm=no install DESTDIR="$PREFIX" >/dev/null
}

as_pg() {
	if [[ $(id -u) == 0 ]]; then
		as_nobody PATH="$pg_bindir:$PATH" "$@"
	else
		env PATH="$pg_bindir:$PATH" "$@"
	fi
}

# Parts that run side by side install the same program, which servers run meanwhile: so it is renamed into its place.
pg_server() {
	local folder to

	folder=$PREFIX/server/$(basename "$(dirname "$1")")
	to=$folder/gpuagg-server
	if ! cmp -s "$1" "$to"; then
		mkdir -p "$folder" && install -m 755 "$1" "$to.$BASHPID" && mv -f "$to.$BASHPID" "$to" || return 1
	fi
	as_pg test -x "$to" || {
		echo "the cluster's user cannot run $to" >&2
		return 1
	}
	echo "$to"
}

pg_await_server() {
	local end=$((SECONDS + 300))

	until [[ $(psql -XAtqc 'SELECT state FROM gpuagg_devices() LIMIT 1') == ready ]]; do
		((SECONDS < end)) || {
			echo "the GPU server is not ready: $(psql -XAtqc 'SELECT state, last_error FROM gpuagg_devices() LIMIT 1')" >&2
			return 1
		}
		sleep 0.05
	done
}

pg_core_files() {
	ulimit -S -c "$(ulimit -H -c)"
}

# A stack for each core file, if gdb is there: the frames next to the crash.
pg_crashes() {
	local core

	find "$@" -name '*log*' -type f -exec grep -hE -A1 'PANIC:|was terminated by signal|TRAP:' {} + | cut -c1-240 | tail -n 6
	[[ -n $(command -v gdb) ]] || return 0
	find "$@" -name 'core*' -size +0 -type f | head -n 2 | while read -r core; do
		gdb -batch -nx -ex bt "$pg_bindir/postgres" "$core" 2>/dev/null | grep -E '^(Core was|#[0-9]+ )' | awk '!seen[$0]++' |
			cut -c1-240 | head -n 11
	done
}

pg_start() {
	pg_root=$(mktemp -d "$pg_tmp/gpuagg.XXXXXX")
	chmod 755 "$pg_root"
	mkdir "$pg_root/data" "$pg_root/sock"
	[[ $(id -u) == 0 ]] && chown -R nobody:nogroup "$pg_root"
	chmod 700 "$pg_root/data"
	# Checksums, the default from 18 on, give pages that VACUUM marks all-visible another LSN.
	# shellcheck disable=SC2046
	(cd "$pg_root" && as_pg initdb -D "$pg_root/data" -A trust -U postgres --no-locale -E UTF8 --no-sync \
		$(as_pg initdb --help | grep -o -e --no-data-checksums) >/dev/null) || return 1
	{
		printf '%s\n' "unix_socket_directories='$pg_root/sock'" "listen_addresses=''" "fsync=off" "max_wal_size=4GB"
		printf '%s\n' "$@"
		tr ';' '\n' <<<"${PG_CONF:-}"
	} >>"$pg_root/data/postgresql.conf"
	(cd "$pg_root" && pg_core_files && as_pg pg_ctl -D "$pg_root/data" -l "$pg_root/log" -w start >/dev/null) || {
		tail -20 "$pg_root/log" >&2
		return 1
	}
	export PGHOST=$pg_root/sock PGPORT=5432 PGUSER=postgres PGDATABASE=postgres PATH=$pg_bindir:$PATH
}

pg_stop() {
	[[ -n ${pg_root:-} ]] || return 0
	(cd "$pg_root" && as_pg pg_ctl -D "$pg_root/data" -m immediate -w stop >/dev/null 2>&1)
	rm -rf "$pg_root"
	pg_root=
	unset PGHOST PGPORT PGUSER PGDATABASE
}
