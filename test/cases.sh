#!/usr/bin/env bash
# Compares aggregates that PostgreSQL does not have with their definitions in plain SQL (cases/definitions.sql), over random groups of rows.
#
#	test/cases.sh [cases] [seed]	default 40, 1: so many cases of each aggregate
#
#	PG_CONFIG	the PostgreSQL to test
#	ENGINES		engines of custom scans, one of which is drawn for each query (default: cpu). With "cpu,cuda" or "cuda" some cases must run
#				on the GPU, and if there are enough batches (about 4,000 cases), some of each aggregate that the GPU engine computes
#	SERVER		the GPU server's program (default: the installed one)
#	JOBS		so many sessions run batches at the same time (default 1)
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
engines=${ENGINES:-cpu} jobs=${JOBS:-1}
((jobs <= batches)) || jobs=$batches
trap pg_stop EXIT
pg_start "shared_preload_libraries='gpuagg'" jit=off autovacuum=off max_worker_processes=16 extra_float_digits=1 client_min_messages=warning \
	parallel_setup_cost=0 parallel_tuple_cost=0 min_parallel_table_scan_size=0 gpuagg.startup_cost=0 gpuagg.row_cost=0 gpuagg.slot_cost=0 \
	"cases.engines='$engines'" max_connections=200 ${SERVER:+"gpuagg.server_program='$SERVER'"} || exit 1
# functions FILE: prints the definitions of functions in a regression test
functions() {
	awk '/^CREATE FUNCTION (auto|depth|exp)_/ {on = 1} on; /\$\$;$/ {on = 0}' "$top/test/sql/$1.sql"
}
for test in histogram_auto histogram_equidepth exp_histogram; do functions "$test"; done >"$pg_root/functions.sql"
psql -Xq -v ON_ERROR_STOP=1 -c "CREATE EXTENSION gpuagg" -f "$pg_root/functions.sql" -f "$top/test/cases/definitions.sql" -f "$top/test/cases/cases.sql" \
	-c "ALTER TABLE sample SET (parallel_workers = 2)" || { echo "not ok set up"; exit 1; }
[[ $engines != *cuda* ]] || pg_await_server || exit 1
for ((job = 0; job < jobs; job++)); do psql -Xqc "CREATE DATABASE job_$job TEMPLATE postgres" || exit 1; done
# run_batches JOB: runs each batch whose number is JOB modulo the number of jobs, in a database of its own
run_batches() {
	local batch at

	for ((batch = $1; batch < batches; batch += jobs)); do
		# the seed of random() is between -1 and 1
		at=$(((seed + batch * 7919) % 1000003))
		psql -Xq -d "job_$1" -v ON_ERROR_STOP=1 -v seed="$at" -v groups="$groups" 2>&1 <<'SQL' | sed 's/^/not ok /'
SELECT setseed(:seed / 1000003.0) \g /dev/null
CALL fill_sample(:groups, 60);
CALL batch(:seed);
CALL describe_batch((:groups + 10) / 11, :seed);
CALL fill_large((:groups + 9) / 10, 2500);
CALL large_batch(:seed);
SQL
	done
}
for ((job = 0; job < jobs; job++)); do run_batches "$job" & done
wait
for ((job = 0; job < jobs; job++)); do
	for table in tried differences; do psql -Xq -d "job_$job" -c "COPY $table TO STDOUT" | psql -Xq -c "COPY $table FROM STDIN"; done
done
# those that the GPU engine computes; it has no merged states
on_gpu='{value_counts,value_counts rows,entropy,top_k of a constant,min_n,max_n,argmax_n,argmin_n,"skewness, kurtosis",mad,summary,approx_percentile,approx_percentile state,histogram_auto,histogram_equidepth,exp_histogram,histogram2d,exact sums,exact pairs,value_counts of many,entropy of many,mad of many,top_k of a constant of many,approx_percentile of many}'
[[ $engines == *cuda* ]] || on_gpu='{}'
psql -XAtq -v on_gpu="$on_gpu" <<'SQL'
SELECT format('ok %s: %s cases%s', name, sum(cases), ', ' || sum(cases) FILTER (WHERE on_gpu) || ' on the GPU') FROM tried WHERE name NOT IN (SELECT name FROM differences) GROUP BY name ORDER BY name;
SELECT format('not ok %s: no case ran on the GPU', u.name) FROM unnest(:'on_gpu'::text[]) u(name)
WHERE (SELECT count(*) >= 40 AND NOT bool_or(on_gpu) FROM tried t WHERE t.name = u.name) ORDER BY u.name;
SELECT 'not ok no case ran on the GPU' WHERE :'on_gpu' <> '{}' AND NOT EXISTS (SELECT FROM tried WHERE on_gpu);
SELECT format('not ok %s: %s', name, call) FROM differences GROUP BY name, call ORDER BY name;
SELECT format(E'# %s, seed %s, %s %s, key %s:\n#   %s\n#   %s', name, seed, way, settings, key, left(actual, 300), left(expected, 300)) FROM differences ORDER BY name LIMIT 20;
SQL
grep -qE 'PANIC|was terminated by signal|TRAP' "$pg_root/log" && { echo "not ok the server crashed"; pg_crashes "$pg_root"; } || echo "ok the server did not crash"
exit 0
