# shellcheck shell=bash
# Private PostgreSQL clusters for tests, the demo and benchmarks. Scripts source this file.
#
# The files of the installed PostgreSQL are copied to $PREFIX (default: tmp_install in the source tree), and the extension is
# installed into the copy. So nothing outside the source tree is written, and several trees can be tested concurrently.
#
#	pg_need				checks that PostgreSQL and its headers are installed; root installs them if they are missing
#	pg_install			copies PostgreSQL, builds the extension and installs it. The GPU server is built only on a host with a
#						GPU, as its build takes minutes
#	pg_start [conf...]	creates and starts a cluster with these "name=value" settings and those of $PG_CONF, which are
#						separated by ";"; sets PGHOST, PGPORT, PGUSER, PGDATABASE, PATH, and pg_root to its directory
#	pg_stop				stops the cluster in pg_root, and removes its data
#	pg_server PROGRAM	installs a GPU server where the cluster's user can run it; prints the path for gpuagg.server_program.
#						Servers from different folders are kept apart
#	pg_await_server		waits until the GPU server of the cluster is ready; fails after five minutes
#	pg_core_files		enables core files for programs that this shell starts
#	pg_crashes path...	prints the messages about crashes in logs in these folders, and the stacks of core files
#	as_pg command...	runs a command as the user that owns the cluster
#
# Variables for callers to set before:
#
#	PG_CONFIG			the PostgreSQL to test (default: pg_config)
#	PREFIX				the folder of the copy
#	PG_CONF				more settings of clusters
#	TMPDIR				the folder for clusters
#	pg_make_args		arguments for make in pg_install
#	GPUAGG_INSTALLED	if set, scripts omit pg_install, because their caller has called it
#
# Root and any other user can run it. For root, clusters run as user "nobody". If "nobody" cannot enter the source tree, the copy is
# in $TMPDIR.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Root copies files that the cluster's user must read, so root's own umask may be too strict.
umask 022

as_nobody() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp "$@"
}

pg_tmp=${TMPDIR:-/tmp}
if [[ $(id -u) == 0 ]] && ! as_nobody test -x "$pg_tmp"; then
	pg_tmp=/tmp
fi

# Sets the paths of the installed PostgreSQL and of the copy.
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

# Prints the Debian packages that are missing.
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
	# a copy outside of the tree may be of another release
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
		make -C "$top" -s PG_CONFIG="$PG_CONFIG" ${pg_make_args:-} with_llvm=no install DESTDIR="$PREFIX" >/dev/null || return 1
	# initdb takes eight times as long as a copy of its files
	rm -rf "$PREFIX/template"
	pg_initdb "$PREFIX/template" -U postgres
}

# pg_initdb FOLDER OPTION...: makes a cluster's data in a new folder
pg_initdb() {
	mkdir "$1" || return 1
	[[ $(id -u) != 0 ]] || chown nobody:nogroup "$1"
	# With checksums, the default from 18 on, VACUUM changes the LSN of pages that it marks all-visible.
	# shellcheck disable=SC2046
	(cd / && as_pg initdb -D "$1" -A trust --no-locale -E UTF8 --no-sync "${@:2}" \
		$(as_pg initdb --help | grep -o -e --no-data-checksums) >/dev/null)
}

as_pg() {
	if [[ $(id -u) == 0 ]]; then
		as_nobody PATH="$pg_bindir:$PATH" "$@"
	else
		env PATH="$pg_bindir:$PATH" "$@"
	fi
}

# Concurrent parts install the same program while servers execute it. So it is installed under another name and renamed.
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

# Stacks need gdb. Only the innermost frames are printed.
pg_crashes() {
	local core

	find "$@" -name '*log*' -type f -exec grep -hE -A1 'PANIC:|was terminated by signal|TRAP:' {} + | cut -c1-240 | tail -n 6
	[[ -n $(command -v gdb) ]] || return 0
	find "$@" -name 'core*' -size +0 -type f | head -n 2 | while read -r core; do
		gdb -batch -nx -ex bt "$pg_bindir/postgres" "$core" 2>/dev/null | grep -E '^(Core was|#[0-9]+ )' | awk '!seen[$0]++' |
			cut -c1-240 | head -n 11
	done
}

# Queries that spill write many small files. In memory such queries take a third of the time. Makes a folder for temporary files
# in memory and prints its name; nothing if there is not enough memory.
pg_memory_folder() {
	local free folder

	free=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)
	((${free:-0} >= 2000000)) || return 0
	folder=$(mktemp -d /dev/shm/gpuagg.XXXXXX) || return 0
	[[ $(id -u) == 0 ]] && chown nobody:nogroup "$folder"
	echo "$folder"
}

pg_start() {
	local temporary

	pg_root=$(mktemp -d "$pg_tmp/gpuagg.XXXXXX")
	chmod 755 "$pg_root"
	mkdir "$pg_root/sock"
	[[ $(id -u) == 0 ]] && chown -R nobody:nogroup "$pg_root"
	cp -a --reflink=auto "$PREFIX/template" "$pg_root/data" || return 1
	temporary=$(pg_memory_folder)
	[[ -z $temporary ]] || ln -s "$temporary" "$pg_root/data/base/pgsql_tmp"
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
	rm -rf "$(readlink "$pg_root/data/base/pgsql_tmp")" "$pg_root"
	pg_root=
	unset PGHOST PGPORT PGUSER PGDATABASE
}
