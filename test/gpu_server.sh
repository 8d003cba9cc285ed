#!/usr/bin/env bash
# The GPU engine on a GPU host, against the running cluster that PGHOST names: one
# whose server host is this one, with the extension preloaded and a GPU server.
#
#	test/gpu_server.sh [part...]
#
#	regress		the regression tests with gpuagg.engine = cuda
#	diff		the differential test likewise; QUERIES (default 1000), SEED
#	faults		kills of the GPU server, idle and in a query, in a table
#	first		times of the first and second GPU query of a fresh backend
#	bench		test/bench/bench.sh: core, CPU engine and GPU engine; ROWS (default 8000000)
#	sanitizer	a part of diff with the server under compute-sanitizer; needs to be superuser
#				and to find compute-sanitizer
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${OUT_DIR:-$(mktemp -d)}
chmod 777 "$out"
failed=0
cuda='-c gpuagg.engine=cuda -c jit=off'

sql() {
	psql -XAtq -v ON_ERROR_STOP=1 "$@"
}

ready() {
	[[ $(sql -c 'SELECT state FROM gpuagg_devices() LIMIT 1' 2>/dev/null) == ready ]]
}

# Waits for the server; the milliseconds it took.
await_ready() {
	local since

	since=$(date +%s%N)
	for _ in $(seq 400); do
		ready && break
		sleep 0.02
	done
	echo $((($(date +%s%N) - since) / 1000000))
}

part_regress() {
	local tests expected=

	mkdir -p "$out/regress"
	ln -sfn "$top/expected" "$out/regress/expected"
	"$PG_REGRESS" --help | grep -q -e --expecteddir && expected=--expecteddir=$top
	# settings.sql lists what is set, and here the engine is
	tests=$(cd "$top/test/sql" && for t in *.sql; do [[ $t != settings.sql && -f $top/expected/${t%.sql}.out ]] && echo "${t%.sql}"; done)
	# shellcheck disable=SC2086
	PGOPTIONS=$cuda "$PG_REGRESS" --inputdir="$top/test" --outputdir="$out/regress" $expected \
		--bindir="$(dirname "$(command -v psql)")" --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" \
		--dbname=regress --load-extension=gpuagg $tests >"$out/regress.log" 2>&1 || failed=1
	grep -E '^(test|ok|not ok)|tests' "$out/regress.log"
	head -"${DIFF_LINES:-100}" "$out/regress/regression.diffs" 2>/dev/null
}

part_diff() {
	PGOPTIONS=$cuda perl "$top/test/diff/difftest.pl" --scripts "$out" --queries "${QUERIES:-1000}" \
		--seed "${SEED:-1}" >"$out/diff.log" 2>&1 || failed=1
	grep -v '^ok query' "$out/diff.log" | tail -"${DIFF_LINES:-100}"
}

make_rows() {
	sql <<'SQL'
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuagg;
CREATE TABLE IF NOT EXISTS gpu_rows AS
SELECT i, i % 1000 AS k, (i * 7919::int8 % 1000003)::int AS many, i::float8 AS x FROM generate_series(1, 5000000) i;
VACUUM ANALYZE gpu_rows;
SQL
}

query='SELECT sum(c), sum(s), count(*) FROM (SELECT k, many % 8 AS m, gpu_count(*) c, gpu_sum(i) s FROM gpu_rows GROUP BY k, many % 8) g'
settings="SET max_parallel_workers_per_gather = 0; SET gpuagg.require = require; SET gpuagg.engine = auto; SET gpuagg.feed = tuples;
	SET client_min_messages = debug1;"

# One line of the table: what happened, what the session saw, when the server was back.
fault() {
	local name=$1 when=$2 signal=$3 answer seen back

	if [[ $when == idle ]]; then
		pkill -"$signal" -x gpuagg-server
		answer=$(sql -c "$settings $query" 2>"$out/fault.log")
	else
		sql -c "$settings $query" >"$out/fault.answer" 2>"$out/fault.log" &
		sleep "$when"
		pkill -"$signal" -x gpuagg-server
		wait $!
		answer=$(<"$out/fault.answer")
	fi
	seen=$(grep -o 'engine "cuda" failed: .*' "$out/fault.log" | head -1)
	back=$(await_ready)
	[[ $answer == "$right" ]] || { answer="WRONG: $answer $(<"$out/fault.log")"; failed=1; }
	[[ $answer != "$right" ]] || answer='right answer'
	printf '%-26s | %s%s | back after %s ms\n' "$name" "$answer" "${seen:+, $seen}" "$back"
	((back < 2000)) || failed=1
}

part_faults() {
	local started

	make_rows
	await_ready >/dev/null
	started=$(sql -c 'SELECT pg_postmaster_start_time()')
	right=$(sql -c "SET gpuagg.enabled = off; ${query//gpu_count/count}")
	for signal in KILL SEGV ABRT; do
		fault "SIG$signal, idle" idle "$signal"
		sleep 1
		fault "SIG$signal, in a query" 0.3 "$signal"
		sleep 5
	done
	[[ $(sql -c 'SELECT pg_postmaster_start_time()') == "$started" ]] && echo "cluster start time unchanged" || failed=1
	sql -c 'SELECT sum(memory_used), sum(sessions) FROM gpuagg_devices()' | sed 's/^/device memory and sessions left: /'
}

part_first() {
	make_rows
	await_ready >/dev/null
	# the CPU engine first: a backend that reads a table for the first time maps its pages
	psql -Xq <<SQL | grep Time
SET max_parallel_workers_per_gather = 0; SET gpuagg.require = require;
SET gpuagg.engine = cpu;
SELECT count(s) FROM (SELECT k, gpu_count(*), gpu_sum(x) FROM gpu_rows GROUP BY k) s \g $out/answer
SET gpuagg.engine = cuda;
\timing on
SELECT count(s) FROM (SELECT k, gpu_count(*), gpu_sum(x) FROM gpu_rows GROUP BY k) s \g $out/answer
SELECT count(s) FROM (SELECT k, gpu_count(*), gpu_sum(x) FROM gpu_rows GROUP BY k) s \g $out/answer
SELECT count(s) FROM (SELECT k, gpu_count(*), gpu_sum(x) FROM gpu_rows GROUP BY k) s \g $out/answer
SQL
}

part_bench() {
	"$top/test/bench/bench.sh" --rows "${ROWS:-8000000}" --configs "${CONFIGS:-core,cpu,cuda}" \
		${FEED:+--set gpuagg.feed=$FEED} || failed=1
}

part_sanitizer() {
	local libdir tool

	libdir=$(sql -c "SELECT setting FROM pg_config() WHERE name = 'PKGLIBDIR'")
	tool=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
	cat >"$out/server.sh" <<SH
#!/bin/sh
exec $tool --tool memcheck --log-file $out/sanitizer.%p.log $libdir/gpuagg-server "\$@"
SH
	chmod 755 "$out/server.sh"
	sql -c "ALTER SYSTEM SET gpuagg.server_program = '$out/server.sh'" -c 'SELECT pg_reload_conf()' >/dev/null
	sleep 1
	await_ready >/dev/null
	QUERIES=${QUERIES:-60} part_diff
	sql -c 'ALTER SYSTEM RESET gpuagg.server_program' -c 'SELECT pg_reload_conf()' >/dev/null
	sleep 1
	grep -h '^=' "$out"/sanitizer.*.log | sort | uniq -c | sort -rn | head -60
}

sql -c 'SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS gpuagg' || exit 1
await_ready >/dev/null
sql -c 'SELECT * FROM gpuagg_devices()'
[[ $# -gt 0 ]] || set -- regress diff faults first bench
for part in "$@"; do
	echo "== $part"
	"part_$part"
done
exit $failed
