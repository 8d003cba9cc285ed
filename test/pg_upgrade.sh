#!/usr/bin/env bash
# Tests pg_upgrade of a cluster whose views, materialized views, indexes, defaults, constraints and policies use the extension.
#
#	test/pg_upgrade.sh [ROOT:]OLD [ROOT:]NEW
#
#	OLD, NEW	major releases, as in: test/pg_upgrade.sh 15 /var/tmp/gpuagg-trixie:17
#	ROOT		root directory of the system in which the release is installed: a chroot (test/pg17.sh makes one), default /
#
# Prints a line for each check. The exit status is 0 if all passed, 2 for wrong arguments.
#
# Needs root. Each system needs Debian's packages postgresql-MAJOR and postgresql-server-dev-MAJOR, gcc and make. NEW's minor release
# should not be older than OLD's: an older pg_upgrade may not support catalogs of newer minor releases. One such case is handled: 15.20 and
# 17.12 keep versions of columns in pg_attribute.attoptions, which the first release candidate of 19 rejects as `unrecognized parameter
# "pg_attver"`, also without the extension. If NEW does not know them, they are removed from the old cluster.
#
# The extension is built and installed in copies of both releases. The copy of OLD, with the shared libraries that NEW's system lacks, is
# moved to NEW's system, where pg_upgrade runs as nobody. Everything is written to folders in /var/tmp that are removed at the end.
#
# The old cluster has the databases "made" with CREATE EXTENSION, "schema" with the extension in another schema, and "from_VERSION" for
# each older version, updated before. After pg_upgrade each must give the same answers, and have the same objects as a new installation
# in the new cluster. An exception are gpu_min and gpu_max of bytea, which only new installations on PostgreSQL 18 and later have.
set -uo pipefail

passed=0 failed=0

# report NAME STATUS: prints the result of a check
report() {
	if [[ $2 == 0 ]]; then
		echo "ok       pg_upgrade/$1"
		passed=$((passed + 1))
	else
		echo "FAILED   pg_upgrade/$1"
		failed=$((failed + 1))
	fi
}

# same NAME FILE FILE: checks that both files are equal and not empty
same() {
	diff "$2" "$3" >"$work/diff" && [[ -s $2 ]]
	report "$1" $?
	head -20 "$work/diff" | cut -c1-500
}

# ---- in NEW's system ---------------------------------------------------------

as_nobody() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp PGHOST="$work/run" PGUSER=postgres "$@"
}

# bin SIDE: prints the folder of programs in the copy of the release; SIDE is old or new
bin() {
	echo "$work/$1/usr/lib/postgresql/${major[$1]}/bin"
}

start() {
	as_nobody "$(bin "$1")/pg_ctl" -D "$work/run/$1" -l "$work/run/$1.log" -w start >/dev/null ||
		{ tail -20 "$work/run/$1.log"; exit 1; }
}

stop() {
	as_nobody "$(bin "$1")/pg_ctl" -D "$work/run/$1" -m fast -w stop >/dev/null
}

# sql SIDE DATABASE COMMAND...: runs commands, each a statement or @FILE
sql() {
	local args=() command

	for command in "${@:3}"; do
		case $command in
		@*) args+=(-f "${command#@}") ;;
		*) args+=(-c "$command") ;;
		esac
	done
	as_nobody PGOPTIONS="-c client_min_messages=warning" "$(bin "$1")/psql" -XqAt -v ON_ERROR_STOP=1 -d "$2" "${args[@]}"
}

run_upgrade() {
	local side db databases version late

	install -d -o nobody -g nogroup "$work/run"
	cd "$work/run" || exit 1
	for side in old new; do
		as_nobody "$(bin $side)/initdb" -D "$work/run/$side" -A trust -U postgres -k --no-locale -E UTF8 --no-sync >/dev/null || exit 1
		printf '%s\n' "shared_preload_libraries='gpuagg'" gpuagg.server=off "unix_socket_directories='$work/run'" \
			"listen_addresses=''" fsync=off jit=off "timezone='UTC'" autovacuum=off >>"$work/run/$side/postgresql.conf"
	done

	start old
	databases="made schema"
	for version in $(sql old postgres "SELECT version FROM pg_available_extension_versions v JOIN pg_available_extensions e USING (name)
			WHERE name = 'gpuagg' AND version <> default_version"); do
		databases+=" from_$version"
	done
	for db in $databases; do
		sql old postgres "CREATE DATABASE \"$db\""
		case $db in
		made) sql old "$db" "CREATE EXTENSION gpuagg" @"$work/objects.sql" ;;
		schema) sql old "$db" "CREATE SCHEMA gpuagg; CREATE EXTENSION gpuagg SCHEMA gpuagg; SET search_path = gpuagg" @"$work/objects.sql" ;;
		*) sql old "$db" "CREATE EXTENSION gpuagg VERSION '${db#from_}'" @"$work/objects.sql" "ALTER EXTENSION gpuagg UPDATE" ;;
		esac
		report "$db: objects in ${major[old]}" $?
		sql old "$db" "SET gpuagg.enabled = off" "SELECT * FROM kept.answers('%')" >"$work/$db.before"
		[[ $(grep -c '^[gw]_gpu' "$work/$db.before") -gt 200 ]]
		report "$db: answers in ${major[old]}" $?
		[[ $db == from_1.0 || $(grep -c '^s_' "$work/$db.before") == 12 ]]
		report "$db: answers from stored states in ${major[old]}" $?
	done
	if grep -q pg_attver "$(bin old)/pg_dump" && ! grep -q pg_attver "$(bin new)/pg_dump"; then
		echo "versions of columns are removed: ${major[new]}'s pg_upgrade does not know them"
		for db in postgres template1 $databases; do
			sql old "$db" "SET allow_system_table_mods = on" \
				"UPDATE pg_attribute SET attoptions = NULL WHERE attoptions::text LIKE '{pg_attver=%'" >/dev/null
		done
	fi
	stop old

	as_nobody "$(bin new)/pg_upgrade" -b "$(bin old)" -B "$(bin new)" -d "$work/run/old" -D "$work/run/new" >"$work/upgrade.log" 2>&1
	side=$?
	report "${major[old]} to ${major[new]}" $side
	if [[ $side != 0 ]]; then
		tail -20 "$work/upgrade.log"
		find "$work/run/new/pg_upgrade_output.d" -name '*.log' -exec grep -h -A3 'ERROR\|FATAL\|Could not' {} + | head -40
		return
	fi

	start new
	sql new postgres "CREATE DATABASE fresh" "CREATE DATABASE fresh_schema"
	# pg_upgrade does not add aggregates for functions that PostgreSQL has only from 18 on
	late=()
	if ((major[old] < 18 && major[new] >= 18)); then
		late=("ALTER EXTENSION gpuagg DROP AGGREGATE gpu_min(bytea)" "ALTER EXTENSION gpuagg DROP AGGREGATE gpu_max(bytea)"
			"ALTER EXTENSION gpuagg DROP FUNCTION gpuagg_bytea_smaller(bytea, bytea)"
			"ALTER EXTENSION gpuagg DROP FUNCTION gpuagg_bytea_larger(bytea, bytea)")
	fi
	sql new fresh "CREATE EXTENSION gpuagg" "${late[@]}" @"$work/members.sql" >"$work/members.public"
	sql new fresh_schema "CREATE SCHEMA gpuagg; CREATE EXTENSION gpuagg SCHEMA gpuagg" "SET search_path = gpuagg" "${late[@]}" @"$work/members.sql" >"$work/members.gpuagg"
	for db in $databases; do
		sql new "$db" "SET gpuagg.enabled = off" "SELECT * FROM kept.answers('%')" >"$work/$db.after"
		same "$db: answers in ${major[new]}, row by row" "$work/$db.before" "$work/$db.after"
		sql new "$db" "SET gpuagg.require = 'require'" "SELECT * FROM kept.answers('g\_%')" >"$work/$db.scan"
		grep -A100000 '^g_' "$work/$db.after" | awk '/^[a-z_0-9]+\|/ {on = /^g_/} on' >"$work/$db.grouped"
		same "$db: by the custom scan" "$work/$db.grouped" "$work/$db.scan"
		sql new "$db" @"$work/members.sql" >"$work/$db.members"
		same "$db: objects of a new installation" "$work/members.$([[ $db == schema ]] && echo gpuagg || echo public)" "$work/$db.members"
		[[ $(sql new "$db" "SET ROLE reader" "SELECT count(*) FROM kept.everything") == 120 ]]
		report "$db: policy" $?
		sql new "$db" "SET enable_seqscan = off" "EXPLAIN SELECT * FROM kept.with_product" "EXPLAIN SELECT * FROM kept.with_total" >"$work/plans"
		grep -q by_product "$work/plans" && grep -q by_total "$work/plans"
		report "$db: indexes" $?
		[[ $(sql new "$db" "INSERT INTO kept.defaults (id) VALUES (3) RETURNING total, mean") == "6|03:00:00" ]]
		report "$db: defaults" $?
		sql new "$db" "REFRESH MATERIALIZED VIEW kept.stored" "REINDEX TABLE kept.everything" "ALTER EXTENSION gpuagg UPDATE" &&
			sql new "$db" "SET gpuagg.enabled = off" "SELECT * FROM kept.answers('stored')" >"$work/refreshed" &&
			awk '/^[a-z_0-9]+\|/ {on = /^stored/} on' "$work/$db.before" | cmp - "$work/refreshed"
		report "$db: refreshed and reindexed" $?
	done
	stop new
	! grep -E 'PANIC|was terminated by signal|TRAP' "$work"/run/*.log
	report "no crash" $?
}

if [[ ${1:-} == --inside ]]; then
	work=$2
	declare -A major=([old]=$3 [new]=$4)
	export LD_LIBRARY_PATH=$work/lib
	run_upgrade
	echo "$passed passed, $failed failed"
	[[ $failed == 0 && $passed != 0 ]]
	exit
fi

# ---- preparation -------------------------------------------------------------

usage() {
	sed -n '2,/^set/{/^#/{s/^# \{0,1\}//;p}}' "$0"
	exit 2
}

[[ $# == 2 ]] || usage
[[ $(id -u) == 0 ]] || { echo "$0 needs root" >&2; exit 2; }
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
declare -A major=([old]=${1##*:} [new]=${2##*:}) root=([old]=/ [new]=/)
[[ $1 != *:* ]] || root[old]=${1%:*}
[[ $2 != *:* ]] || root[new]=${2%:*}
scratch=() mounted=()

finish() {
	local dir

	for dir in "${mounted[@]}"; do umount "$dir"; done
	rm -rf "${scratch[@]}"
}
trap finish EXIT

in_root() {
	chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "${@:2}"
}

# copy_release SIDE FOLDER: copies the release, and the extension built for it, to FOLDER/SIDE
copy_release() {
	local side=$1 to=$2/$1 from=${root[$1]} dir prefix=/usr/lib/postgresql/${major[$1]} build

	build=$(mktemp -d "${from%/}/var/tmp/gpuagg-build.XXXXXX")
	scratch+=("$build")
	[[ -x ${from%/}$prefix/bin/postgres ]] || { echo "no PostgreSQL ${major[$side]} in $from" >&2; exit 2; }
	tar cf - -C "$top" --exclude=./.git --exclude=./build --exclude=./tmp_install --exclude=./test/results \
		--exclude='*.o' --exclude='*.d' --exclude='*.bc' --exclude='*.so' . | tar xf - -C "$build"
	in_root "$from" make -C "/var/tmp/${build##*/}" -s -j"$(nproc)" NVCC= with_llvm=no PG_CONFIG=$prefix/bin/pg_config \
		DESTDIR="/var/tmp/${build##*/}/stage" all install >"$build/log" 2>&1 || { tail -20 "$build/log" >&2; exit 1; }
	for dir in "$prefix/bin" "$prefix/lib" "/usr/share/postgresql/${major[$side]}"; do
		mkdir -p "$to$dir"
		tar cf - -C "${from%/}$dir" --exclude=bitcode --exclude=pgxs --exclude='llvmjit*' --exclude=man --exclude=locale . | tar xf - -C "$to$dir"
	done
	cp -a "$build/stage/." "$to/"
}

# Copies the shared libraries of the old release's programs that NEW's system lacks.
copy_libraries() {
	local name path

	mkdir "$work/lib"
	while read -r name path; do
		cp -L "${root[old]%/}$path" "$work/lib/$name"
	done < <(in_root "${root[old]}" sh -c "ldd /usr/lib/postgresql/${major[old]}/bin/*" 2>/dev/null |
		awk '$2 == "=>" && $3 ~ "^/" {print $1, $3}' | sort -u |
		grep -vFf <(in_root "${root[new]}" ldconfig -p | awk '/=>/ {print $1 " "}'))
}

work=$(mktemp -d "${root[new]%/}/var/tmp/gpuagg-upgrade.XXXXXX")
chmod 755 "$work"
scratch+=("$work")
copy_release old "$work"
copy_release new "$work"
copy_libraries
cp "$top/test/pg_upgrade.sh" "$top"/test/t/lib/{objects,members}.sql "$work/"
if [[ ${root[new]} != / ]]; then
	mkdir -p "${root[new]}/dev/shm"
	mountpoint -q "${root[new]}/proc" || { mount -t proc proc "${root[new]}/proc" && mounted+=("${root[new]}/proc"); }
	mountpoint -q "${root[new]}/dev/shm" ||
		{ mount -t tmpfs -o mode=1777 shm "${root[new]}/dev/shm" && mounted+=("${root[new]}/dev/shm"); }
fi
in_root "${root[new]}" bash "/var/tmp/${work##*/}/pg_upgrade.sh" --inside "/var/tmp/${work##*/}" "${major[old]}" "${major[new]}"
