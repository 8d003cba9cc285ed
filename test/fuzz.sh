#!/usr/bin/env bash
# Fuzzes both sides of the GPU server's protocol. The server uses the stub of the CUDA run time.
#
#	test/fuzz.sh [server|backends...] [SECONDS] [SEED]		default: both, 10 seconds each, seed 1
#
#	server		sends mutated messages to the server (test/fuzz/attack.c)
#	backends	sends mutated answers to backends in a private cluster (test/fuzz/proxy.c)
#
#	PG_CONFIG			the PostgreSQL to test
#	GPUAGG_INSTALLED	if set, the extension is installed already (see test/pg.sh)
#
# Prints TAP and counts. The exit status is 0 if all is right, 1 if not, 2 if PostgreSQL is missing.
#
# The server is always built with AddressSanitizer and UndefinedBehaviorSanitizer. For backends under
# sanitizers, see "FUZZ_SECONDS=1800 test/sanitize.sh fuzz".
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
parts=()
while [[ ${1:-} == server || ${1:-} == backends ]]; do
	parts+=("$1")
	shift
done
[[ ${#parts[@]} -gt 0 ]] || parts=(server backends)
seconds=${1:-10}
seed=${2:-1}
dir=$top/build/fuzz
failed=0
work=

finish() {
	[[ -z ${server:-} ]] || kill -9 "$server" 2>/dev/null
	pg_stop
	[[ -z $work ]] || rm -rf "$work"
}
trap finish EXIT

# report STATUS NAME: prints a TAP line
report() {
	if [[ $1 == 0 ]]; then
		echo "ok - $2"
	else
		echo "not ok - $2"
		failed=1
	fi
}

# no_reports DIR: succeeds if no sanitizer has reported an error
no_reports() {
	local reports

	reports=$(cat "$1"/asan.* 2>/dev/null; grep -a -A12 'runtime error:' "$1/log")
	[[ -z $reports ]] && return 0
	head -80 <<<"$reports" | sed 's/^/# /'
	return 1
}

# The limit of device memory is the size of four connections' buffers of 24 MB, so that some connections exceed it.
part_server() {
	ASAN_OPTIONS=allocator_may_return_null=1:log_path=$work/asan UBSAN_OPTIONS=print_stacktrace=1 \
		"$dir/gpuagg-server" --memory-limit $((96 << 20)) --cache-limit $((4 << 20)) --socket "$work/socket" 2>"$work/log" &
	server=$!
	for _ in $(seq 3000); do
		[[ -S $work/socket ]] && break
		sleep 0.1
	done
	"$dir/attack" "$work/socket" "$server" "$seconds" "$seed"
	report $? "the GPU server handles mutated messages"
	kill -0 "$server" 2>/dev/null
	report $? "the GPU server is running"
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	server=
	no_reports "$work"
	report $? "the sanitizers report no error of the GPU server"
}

# Prints the queries. Each returns one line that begins with its number.
queries() {
	cat <<'SQL'
SELECT 1, count(*), sum(c), sum(s), max(m) FROM (SELECT k, gpu_count(*) c, gpu_sum(v) s, gpu_max(v) m FROM fuzzed GROUP BY k) g;
SELECT 2, gpu_count(*), gpu_sum(v), gpu_min(x) FROM fuzzed;
SELECT 3, count(*), sum(c), min(t), max(t), sum(s) FROM (SELECT t, k, gpu_count(*) c, gpu_sum(n) s FROM fuzzed GROUP BY t, k) g;
SELECT 4, count(*), sum(r) FROM (SELECT k, gpu_longest_run(v % 3 = 0 ORDER BY i) r FROM fuzzed GROUP BY k) g;
SELECT 5, count(*), md5(string_agg(h::text, ',' ORDER BY k)) FROM (SELECT k, gpu_histogram(x, 0, 100, 7) h FROM fuzzed GROUP BY k) g;
SELECT 6, sum(a) FROM (SELECT (SELECT gpu_sum(f.v + o.i) FROM fuzzed f WHERE f.k < 3) a FROM generate_series(1, 3) o(i)) g;
SELECT 7, gpu_approx_count_distinct(v) FROM fuzzed;
SELECT 8, count(*) FROM (SELECT i, gpu_sum(v) FROM fuzzed GROUP BY i) g;
SELECT 11, md5(gpu_histogram_equidepth(i, 5)::text), gpu_approx_percentile(i, 0.3), md5(gpu_histogram_auto(i, 20)::text), md5(gpu_exp_histogram(i, 4)::text) FROM fuzzed;
SELECT 12, count(*), md5(string_agg(s::text || c, ',' ORDER BY k)) FROM (SELECT k, gpuagg_exact_stddev_samp(x) s, gpuagg_exact_corr(x, v) c FROM fuzzed GROUP BY k) g;
SELECT 10, count(*), md5(string_agg(c::text || e, ',' ORDER BY k)) FROM (SELECT k, gpu_value_counts(v, 3) c, gpu_entropy(t) e FROM fuzzed GROUP BY k) g;
SQL
}

parallel="SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;"
serial="SET max_parallel_workers_per_gather = 0;"

# script ROUNDS SETTINGS: prints a session that runs all queries ROUNDS + 1 times and then checks its mappings and descriptors
script() {
	# one arena may be mapped: that of the connection that is kept for the next query
	local leaks="SELECT 0, (SELECT count(*) > 1 FROM regexp_split_to_table(pg_read_file('/proc/self/maps'), E'\n') l WHERE l LIKE '%memfd%'),
		(SELECT count(*) > 40 FROM pg_ls_dir('/proc/self/fd')), (SELECT count(*) > 40 FROM pg_ls_dir('/proc/self/fd') f);"

	echo "\\set VERBOSITY verbose
SET statement_timeout = '300s'; SET gpuagg.engine = 'cuda'; SET gpuagg.require = 'require'; SET gpuagg.batch_rows = 4096; $2"
	queries
	for _ in $(seq "$1"); do
		queries | shuf --random-source=<(yes "$seed$1")
		echo 'SELECT count(*) IS NULL FROM gpuagg_devices() WHERE state IS NULL;'
	done | sed 's/^SELECT count(\*) IS NULL/SELECT 9/; s/FROM gpuagg_devices() WHERE state IS NULL/WHERE (SELECT count(*) FROM gpuagg_devices()) IS NOT NULL/'
	echo "$leaks"
}

# session MODE NAME SETTINGS: runs a session, and writes its answers and errors to $work/NAME.out and .err
# Fails if the backend crashed or hung (XX000 is an internal error, 57014 the timeout), or leaked; in mode plain also if an
# answer is wrong.
session() {
	local out=$work/$2.out err=$work/$2.err wrong

	script 2 "$3" | psql -XAtq >"$out" 2>"$err"
	if grep -qE 'server closed the connection|XX000|57014' "$err"; then
		grep -E -A3 'server closed the connection|XX000|57014' "$err" | head -20 | sed "s/^/# $1 $2: /"
		return 1
	fi
	if [[ $1 == plain ]]; then
		wrong=$(sort -u "$out" | comm -23 - "$work/expected")
		[[ -z $wrong ]] || { head -5 <<<"$wrong" | sed "s/^/# $1 $2: wrong answer /"; return 1; }
	fi
	grep -qx '0|f|f|f' "$out" || [[ $1 == any ]] && ! grep -q '^0|.*t' "$out" ||
		{ grep '^0|' "$out" | sed "s/^/# $1 $2: mappings or descriptors leak: /"; return 1; }
}

part_backends() {
	local end mode share n=0 bad=0 answered errors program served

	program=$work/program
	mkdir -p "$program"
	cp "$dir/proxy" "$program/gpuagg-server"
	cp "$dir/gpuagg-server" "$program/gpuagg-server.real"
	chmod -R a+rX "$work"
	[[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install || { echo "not ok - the extension is built and installed"; failed=1; return; }
	pg_start "shared_preload_libraries='gpuagg'" "gpuagg.server_program='$program/gpuagg-server'" \
		max_worker_processes=32 max_parallel_workers=16 jit=off autovacuum=off log_error_verbosity=verbose ||
		{ echo "not ok - the cluster starts"; failed=1; return; }
	psql -XAtq -v ON_ERROR_STOP=1 -f - <<'SQL' || { echo "not ok - the tables are created"; failed=1; return; }
CREATE EXTENSION gpuagg;
CREATE TABLE fuzzed AS SELECT i, i % 37 AS k, i * 7919 % 1000 AS v, i % 100 + 0.5::float8 AS x, (i % 11)::text AS t,
	CASE WHEN i % 5000 = 0 THEN 'NaN' ELSE (i % 100)::numeric(10,2) END AS n FROM generate_series(1, 40000) i;
ANALYZE fuzzed;
SQL
	pg_await_server || { echo "not ok - the GPU server starts"; failed=1; return; }
	{ echo 'SET gpuagg.engine = cpu;'; queries; echo "SELECT 9;"; echo "SELECT 0, false, false, false;"; } | psql -XAtq | sort -u >"$work/expected"
	[[ $(grep -c '' "$work/expected") == 13 ]]
	report $? "the CPU engine gives the expected answers"
	rm -f "$pg_root/data/gpuagg.fuzz"
	session plain clean "$serial" && [[ $(sort -u "$work/clean.out" | grep -c '') == 13 ]]
	report $? "answers are right if nothing is changed"
	served=$(psql -XAtqc 'SELECT sum(queries) FROM gpuagg_devices()')
	((served > 0))
	report $? "queries reach the GPU server ($served)"
	end=$((SECONDS + seconds))
	while ((SECONDS < end && bad == 0)); do
		mode=$([[ $((n % 2)) == 0 ]] && echo plain || echo any)
		share=$([[ $((n / 2 % 2)) == 0 ]] && echo 0.05 || echo 0.3)
		echo "$mode $((seed + n)) $share" >"$pg_root/data/gpuagg.fuzz"
		session "$mode" "s$n" "$serial" &
		local first=$!
		session "$mode" "p$n" "$parallel" || bad=1
		wait "$first" || bad=1
		n=$((n + 1))
	done
	report "$bad" "backends handle mutated answers"
	rm -f "$pg_root/data/gpuagg.fuzz"
	pg_await_server
	session plain after "$serial" && [[ $(sort -u "$work/after.out" | grep -c '') == 13 ]]
	report $? "answers are right after the mutations"
	! grep -E "PANIC|TRAP|AddressSanitizer|runtime error|process \(PID [0-9]*\) was terminated by signal" "$pg_root/log"
	report $? "no backend crashed, and the sanitizers report no error"
	answered=$(cat "$work"/[sp][0-9]*.out | grep -c '^[1-8]|')
	errors=$(cat "$work"/[sp][0-9]*.err | grep -c 'ERROR:')
	echo "# $n rounds, $answered answers, $errors errors; $(psql -XAtqc 'SELECT sum(queries) FROM gpuagg_devices()') queries at the server"
	cat "$work"/[sp][0-9]*.err | grep -o 'ERROR:.*' | sed 's/[0-9]\{3,\}/N/g' | sort | uniq -c | sort -rn | head -12 | sed 's/^/# /'
	((answered > 0))
	report $? "queries were answered"
	cp "$pg_root/log" "$top/test/results/fuzz-server.log" 2>/dev/null
	pg_stop
}

pg_need || exit 2
make -C "$top" -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG" fuzz-programs || { echo "not ok - the programs are built"; exit 1; }
mkdir -p "$top/test/results"
for part in "${parts[@]}"; do
	work=$(mktemp -d "$pg_tmp/gpuagg-fuzz.XXXXXX")
	chmod 755 "$work"
	"part_$part"
	rm -rf "$work"
done
exit $failed
