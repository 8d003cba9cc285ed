#!/usr/bin/env bash
# Compares aggregates that PostgreSQL does not have with their definitions in plain SQL (cases/definitions.sql), over random groups of rows.
#
#	test/cases.sh [cases] [seed]	default 40, 1: so many cases of each aggregate
#
#	PG_CONFIG	the PostgreSQL to test
#
# A case is a group: of one to 60 rows, with NULLs, NaN, infinities, -0, and values that are equal or of very different magnitude. Groups are computed
# in batches. In each batch, random numbers choose for each aggregate its columns and arguments, and how the query runs: as plain
# aggregates or in the custom scan, from pages, rows or the cache, in parallel, with FILTER, over frames of windows, with grouping sets, in
# subqueries, and from states that were merged (cases/cases.sql). A tenth as many cases have thousands of values.
#
# Prints "ok" and "not ok" lines, and the first differences. A line has the seed of its batch: test/cases.sh 0 SEED repeats that batch alone.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
pg_need && { [[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install; } || exit 1
cases=${1:-40} seed=${2:-1}
groups=$((cases / 4 > 100 || cases == 0 ? 100 : cases / 4 + 1))
batches=$((cases == 0 ? 1 : (cases + groups - 1) / groups))
trap pg_stop EXIT
pg_start "shared_preload_libraries='gpuagg'" jit=off autovacuum=off max_worker_processes=16 extra_float_digits=1 client_min_messages=warning \
	parallel_setup_cost=0 parallel_tuple_cost=0 min_parallel_table_scan_size=0 gpuagg.startup_cost=0 gpuagg.row_cost=0 gpuagg.slot_cost=0 || exit 1
psql -Xq -v ON_ERROR_STOP=1 -c "CREATE EXTENSION gpuagg" -f "$top/test/cases/definitions.sql" -f "$top/test/cases/cases.sql" \
	-c "ALTER TABLE sample SET (parallel_workers = 2)" || { echo "not ok set up"; exit 1; }
for ((batch = 0; batch < batches; batch++)); do
	# the seed of random() is between -1 and 1
	at=$(((seed + batch * 7919) % 1000003))
	psql -Xq -v ON_ERROR_STOP=1 -v seed="$at" -v groups="$groups" 2>&1 <<'SQL' | sed 's/^/not ok /'
SELECT setseed(:seed / 1000003.0) \g /dev/null
CALL fill_sample(:groups, 60);
CALL batch(:seed);
CALL describe_batch((:groups + 10) / 11, :seed);
CALL fill_large((:groups + 9) / 10, 2500);
CALL large_batch(:seed);
SQL
done
psql -XAtq <<'SQL'
SELECT format('ok %s: %s cases', name, sum(cases)) FROM tried WHERE name NOT IN (SELECT name FROM differences) GROUP BY name ORDER BY name;
SELECT format('not ok %s: %s', name, call) FROM differences GROUP BY name, call ORDER BY name;
SELECT format(E'# %s, seed %s, %s %s, key %s:\n#   %s\n#   %s', name, seed, way, settings, key, left(actual, 300), left(expected, 300)) FROM differences ORDER BY name LIMIT 20;
SQL
grep -qE 'PANIC|was terminated by signal|TRAP' "$pg_root/log" && { echo "not ok the server crashed"; pg_crashes "$pg_root"; } || echo "ok the server did not crash"
exit 0
