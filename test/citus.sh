#!/usr/bin/env bash
# Compares aggregates over distributed tables of Citus with PostgreSQL's own over local tables of the same rows.
#
#	test/citus.sh
#
# The test is skipped if Citus is not installed for this PostgreSQL. sql/DISTRIBUTED.md says where to get it.
#
#	ROWS			rows of the tables (default 300000). With less than about 60000, the workers use PostgreSQL's own plan for some
#					aggregates, as it is cheaper, and the test fails
#	SERVER=PROGRAM	runs this GPU server on each node
#	SERVER=stub		runs the test server on each node; the nodes share its stub of the CUDA run time
#	PG_CONFIG		the PostgreSQL to test
#	CITUS=PATTERN	runs only the tests whose call, name or function matches the regular expression: CITUS=gpu_median, CITUS=cursor
#
# Prints TAP, and how many pairs are aggregated where. The exit status is 0 if the tests ran, even if one failed.
#
# There are a coordinator and two workers on loopback addresses, with tables in 8 shards (citus/tables.sql). citus/compare.sql compares
# each aggregate for each type of arguments, grouped by the distribution column, by another column, by none and by two.
# citus/shapes.sql and citus/statements.sql compare whole statements. EXPLAIN shows where each is aggregated: compare.sql lists the
# aggregates for which the coordinator may gather rows; for all others, the workers must use the custom scan.
#
# With SERVER, the GPU engine and the column cache are enabled. Tasks must use the same engine as a local table, and the workers'
# servers must get queries of each pair. citus/gpu.sql then tests copies of columns, and settings.
set -uo pipefail

# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
pg_need || exit 2
if [[ ! -e $("$PG_CONFIG" --pkglibdir)/citus.so ]]; then
	echo "ok 1 - Citus # SKIP Citus is not installed for $("$PG_CONFIG" --version)"
	exit 0
fi
[[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install || exit 1

roots=()
shared=
finish() {
	for pg_root in ${roots[@]+"${roots[@]}"}; do
		pg_stop
	done
	rm -rf "$shared"
}
trap finish EXIT

settings=(gpuagg.server=off)
if [[ -n ${SERVER:-} ]]; then
	if [[ $SERVER == stub ]]; then
		make -C "$top" -s PG_CONFIG="$PG_CONFIG" NVCC= server-stub || exit 1
		SERVER=$(pg_server "$top/build/test/gpuagg-server") || exit 1
		# the memory of the devices that the nodes' servers share
		shared=$(mktemp -d "$pg_tmp/gpuagg-server.XXXXXX")
		chmod 777 "$shared"
		export GPUAGG_STUB_DEVICES=1 GPUAGG_STUB_IDLE=1 GPUAGG_STUB_SHARED=$shared/device
	fi
	settings=("gpuagg.server_program='$SERVER'" gpuagg.engine=cuda gpuagg.cache=eager gpuagg.cache_memory=256MB)
fi

# Finds three consecutive ports on which no process listens.
port=$((20000 + $$ % 10000))
while (: </dev/tcp/127.0.0.1/$port || : </dev/tcp/127.0.0.1/$((port + 1)) || : </dev/tcp/127.0.0.1/$((port + 2))) 2>/dev/null; do
	port=$((port + 3))
done

# node N: starts a cluster on the Nth port
node() {
	pg_start "port=$((port + $1))" "listen_addresses='127.0.0.1'" "shared_preload_libraries='citus,gpuagg'" "${settings[@]}" \
		"citus.node_conninfo='sslmode=disable'" citus.enable_statistics_collection=off wal_level=logical max_connections=150 \
		max_worker_processes=32 max_prepared_transactions=150 shared_buffers=256MB jit=off autovacuum=off || return
	roots+=("$pg_root")
	export PGPORT=$((port + $1))
	psql -Xqc "CREATE EXTENSION citus" || return
}

# sql ARGS...: runs psql on the coordinator, which is the node started last
sql() {
	PGOPTIONS="-c client_min_messages=error" psql -XqAt -v ON_ERROR_STOP=1 -P pager=off "$@"
}

node 1 && node 2 && node 0 || { echo "not ok - three nodes start"; tail -5 "$pg_root/log"; exit 1; }
# the tests that CITUS selects
pattern="'${CITUS//\'/\'\'}'"
pairs="FROM pairs WHERE call ~ $pattern"
shapes="FROM shapes s WHERE name ~ $pattern"
statements="FROM pg_proc WHERE proname LIKE 'statement\\_%' AND pronamespace = 'public'::regnamespace AND proname ~ $pattern"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/citus" && pwd)
{
	sql -c "SELECT citus_set_coordinator_host('127.0.0.1', $port)" -c "SELECT citus_add_node('127.0.0.1', $((port + 1)))" \
		-c "SELECT citus_add_node('127.0.0.1', $((port + 2)))" -c "CREATE EXTENSION gpuagg" &&
		sql -v rows="${ROWS:-300000}" -f "$here/tables.sql" && sql -f "$here/compare.sql" && sql -f "$here/shapes.sql" && sql -f "$here/statements.sql"
} >/dev/null || { echo "not ok - tables are created"; exit 1; }
echo "# $(sql -c "SELECT split_part(citus_version(), ' on ', 1) || ', PostgreSQL ' || current_setting('server_version')")"
sql -c "SELECT format('CALL compare_pair(%L, %L, %L);', call, core, exact) $pairs" | sql -v ON_ERROR_STOP=0 2>&1 | sed 's/^[^ ]*ERROR: /not ok - &/'
sql -c "SELECT line FROM report"
[[ $(sql -c "SELECT (SELECT count(*) $pairs) + (SELECT count(*) $shapes) + (SELECT count(*) $statements)") != 0 ]] ||
	echo "not ok - CITUS: no test matches \"${CITUS:-}\""
[[ $(sql -c "SELECT count(*) FROM result") == $((4 * $(sql -c "SELECT count(*) $pairs"))) ]] || echo "not ok - all pairs ran in all groupings"
sql -c "SELECT format('SELECT compare_shape(s) FROM shapes s WHERE n = %s;', n) $shapes ORDER BY n" | sql -v ON_ERROR_STOP=0 2>&1 |
	sed 's/^[^ ]*ERROR: /not ok - &/'
sql -c "SELECT format('SELECT %I();', proname) $statements ORDER BY proname" | sql -v ON_ERROR_STOP=0 2>&1 |
	sed 's/^[^ ]*ERROR: /not ok - &/'
[[ -z ${SERVER:-} || -n ${CITUS:-} ]] || sql -v ON_ERROR_STOP=0 -f "$here/gpu.sql" 2>&1 | sed 's/^[^ ]*ERROR: /not ok - &/'
for pg_root in "${roots[@]}"; do
	grep -E 'PANIC|was terminated by signal|TRAP' "$pg_root/log" && echo "not ok - no node crashed"
done
echo "ok - no node crashed"
