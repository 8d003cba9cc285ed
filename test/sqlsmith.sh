#!/usr/bin/env bash
# Runs random SQL: aggregates over queries that sqlsmith makes, in a private cluster.
#
#	test/sqlsmith.sh [MINUTES] [SEED]		default: 30 minutes, and a random seed, which is printed
#
#	JOBS		number of concurrent sessions (default: one per processor)
#	MIN_SHARE	least percentage of plans with a custom scan (default 40)
#	PG_CONFIG	the PostgreSQL to test
#
# The exit status is 0 if the test passed, 2 if something is missing. Logs and failed statements are written to test/results/sqlsmith.
#
# gpuagg.replace_builtin is on, all costs of the custom scan and of parallel plans are zero, and the GPU server uses the stub of the CUDA
# run time. sqlsmith makes queries over tables of all types, and test/sqlsmith/drive.pl adds aggregates. The test fails for
#	- a crash of any process;
#	- an internal error (XX000) that the same statement does not raise without the custom scan;
#	- a statement that exceeds its timeout by far, and does not without the custom scan;
#	- too few plans with a custom scan.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
minutes=${1:-30}
seed=${2:-$RANDOM}
results=$top/test/results/sqlsmith
trap pg_stop EXIT

pg_need || exit 2
if ! command -v sqlsmith >/dev/null; then
	if [[ $(id -u) != 0 ]] || ! DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends sqlsmith >/dev/null 2>&1; then
		echo "needed, but not installed: sqlsmith (Debian's package name)" >&2
		exit 2
	fi
fi
pg_install && make -C "$top" -s PG_CONFIG="$PG_CONFIG" server-stub || exit 2
rm -rf "$results"
mkdir -p "$results"
program=$(pg_server "$top/build/test/gpuagg-server") || exit 2
trap pg_stop EXIT
parallel_mode=debug_parallel_query
[[ $("$PG_CONFIG" --version) == *" 15"* ]] && parallel_mode=force_parallel_mode
pg_start "shared_preload_libraries='gpuagg'" "gpuagg.server_program='$program'" \
	gpuagg.replace_builtin=on gpuagg.startup_cost=0 gpuagg.row_cost=0 gpuagg.slot_cost=0 \
	parallel_setup_cost=0 parallel_tuple_cost=0 min_parallel_table_scan_size=0 min_parallel_index_scan_size=0 \
	max_parallel_workers_per_gather=2 $parallel_mode=on max_worker_processes=32 max_parallel_workers=16 \
	jit=off statement_timeout=5s lock_timeout=1s temp_file_limit=1GB log_error_verbosity=verbose log_min_messages=error || exit 2
psql -XAtq -v ON_ERROR_STOP=1 -f "$top/test/sqlsmith/tables.sql" >"$results/tables.log" 2>&1 ||
	{ cat "$results/tables.log"; echo "FAILED   tables are not created"; exit 1; }
export PGUSER=smith PGDATABASE=smith

pids=()
for ((job = 0; job < ${JOBS:-$(nproc)}; job++)); do
	perl "$top/test/sqlsmith/drive.pl" --minutes "$minutes" --seed $((seed + job)) --results "$results" >"$results/job$job.log" 2>&1 &
	pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do
	wait "$pid" || failed=1
done
echo "seed $seed, $minutes minutes, ${#pids[@]} sessions"
# the sums of the "NAME: NUMBER" lines of all jobs
sed -n 's/^\([a-z][^:]*\): \([0-9]*\)$/\1\t\2/p' "$results"/job*.log | awk -F'\t' '{n[$1] += $2} END {for (f in n) print n[f] "\t" f}' | sort -k2 >"$results/figures"
cat "$results/figures"
grep -h '^FAILED' -A8 "$results"/job*.log | head -100
[[ $failed == 0 ]] || echo "FAILED   statements: see $results"
cp "$pg_root/log" "$results/server.log"
if grep -aE 'PANIC|was terminated by signal|TRAP' "$results/server.log"; then
	echo "FAILED   a process crashed"
	failed=1
fi
grep -aoE '(ERROR|FATAL|PANIC|LOG|WARNING):  XX[0-9A-Z]{3}: .*' "$results/server.log" | sed 's/[0-9][0-9]*/N/g' | sort | uniq -c | sort -rn | head -20 >"$results/internal"
if [[ -s $results/internal ]]; then
	echo "internal errors in the log, including PostgreSQL's own:"
	cat "$results/internal"
fi
figure() {
	awk -F'\t' -v f="$1" '$2 == f {print $1}' "$results/figures"
}
share=$((100 * $(figure 'plans with a custom scan') / ($(figure 'plans') + 1)))
echo "custom scans in $share % of the plans"
if ((share < ${MIN_SHARE:-40})); then
	echo "FAILED   too few custom scans"
	failed=1
fi
[[ $failed == 0 ]] && echo "passed"
exit $failed
