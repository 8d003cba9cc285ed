#!/usr/bin/env bash
# Tests the GPU engine on a GPU host, in a running cluster with the extension preloaded and a GPU server.
#
#	test/gpu_server.sh [part...]		default: regress diff faults first bench
#
#	regress		runs the regression tests with gpuagg.engine = cuda; then runs tests that choose the CPU engine without this choice,
#				where only EXPLAIN may differ
#	diff		runs QUERIES (default 1000) random queries in JOBS processes (default 1), with seeds from SEED (default 1) on
#	faults		prints a table of faults of the GPU server and of what a session sees
#	first		prints the times of the first GPU queries of a new backend
#	bench		runs test/bench/bench.sh with ROWS (default 8000000), REPEAT (default 3) and CONFIGS (default
#				core,cpu-tuples,cuda-tuples)
#	explain		prints the lines of EXPLAIN ANALYZE about the GPU for the benchmark's queries; needs the tables of bench
#	demo		runs test/demo.sh, and prints its lines about the engine and the answers
#	sanitizer	runs some queries of diff and some tests of regress (TESTS) with the server under compute-sanitizer; needs a superuser
#	postmaster	kills the postmaster, and checks that the GPU server ends; the cluster is down afterwards
#
#	PGHOST, PGPORT, PGUSER	the cluster, which must run on this host
#	SERVER_LOG				the cluster's log. If set, regress and diff count the queries by engine, with the reasons for the CPU engine
#	SERVER					the GPU server's program for the part faults (default: the installed one)
#	OUT_DIR					the folder for output (default: a new one)
#	TESTS					the regression tests of regress and sanitizer
#	OMIT					regression tests that regress omits, if TESTS is not set
#	PG_REGRESS				the program pg_regress
#
# The exit status is 0 if all parts passed.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${OUT_DIR:-$(mktemp -d)}
chmod 777 "$out"
failed=0
cuda='-c gpuagg.engine=cuda -c jit=off'
log_options=

sql() {
	psql -XAtq -v ON_ERROR_STOP=1 "$@"
}

ready() {
	[[ $(sql -c 'SELECT state FROM gpuagg_devices() LIMIT 1' 2>/dev/null) == ready ]]
}

# Waits until the server is ready, up to 300 s. Prints the time in ms.
await_ready() {
	local since

	since=$(date +%s%N)
	until ready || (($(date +%s%N) - since > 300000000000)); do
		sleep 0.02
	done
	echo $((($(date +%s%N) - since) / 1000000))
}

# Makes the server log the engine of each query from now on, if the log can be read.
log_engines() {
	[[ -n ${SERVER_LOG:-} ]] || return
	sql -c "ALTER SYSTEM SET log_line_prefix = '%a> '" -c 'SELECT pg_reload_conf()' >/dev/null
	log_offset=$(stat -c %s "$SERVER_LOG")
	log_options=' -c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0 -c auto_explain.log_nested_statements=on'
}

# Prints the number of custom scans by engine since log_engines, and the reasons for the CPU engine with the tests.
engines() {
	[[ -n ${SERVER_LOG:-} ]] || return
	tail -c +$((log_offset + 1)) "$SERVER_LOG" | awk '
		/^[^\t]/ {test = $0; sub(/> .*/, "", test); sub(/.*\//, "", test)}
		/^\t *Engine: / {
			sub(/^\t *Engine: /, ""); engine = $1; n[engine]++
			if (engine == "cpu") {
				sub(/^cpu ?/, "")
				why = $0 == "" ? "(chosen by the test)" : $0
				reasons[why]++
				if (!seen[why, test]++) tests[why] = tests[why] " " test
			}
		}
		END {
			for (e in n) print "custom scans on the " e " engine: " n[e]
			for (r in reasons) print "  cpu " r ": " reasons[r] ", in" tests[r]
		}' | cut -c1-"${WIDTH:-200}" | sort
}

# at_server NAME COMMAND...: runs the command, which must send queries to the GPU server
at_server() {
	local name=$1 before n

	shift
	before=$(sql -c 'SELECT sum(queries) FROM gpuagg_devices()')
	"$@" || failed=1
	n=$(($(sql -c 'SELECT sum(queries) FROM gpuagg_devices()') - before))
	if ((n > 0)); then
		echo "ok - $name: queries ran on the GPU server"
		echo "# $n queries"
	else
		echo "not ok - $name: queries ran on the GPU server"
		failed=1
	fi
}

# regress DIR TESTS...: runs pg_regress with the tests in DIR/sql and the expected output in DIR/expected
regress() {
	local dir=$1 expected= rc=0

	shift
	mkdir -p "$out/regress"
	ln -sfn "$dir/expected" "$out/regress/expected"
	"$PG_REGRESS" --help | grep -q -e --expecteddir && expected=--expecteddir=$dir
	# shellcheck disable=SC2086
	PGOPTIONS=$cuda$log_options "$PG_REGRESS" --inputdir="$dir" --outputdir="$out/regress" $expected \
		--bindir="$(dirname "$(command -v psql)")" --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" \
		--dbname=regress --load-extension=gpuagg "$@" >"$out/regress.log" 2>&1 || rc=1
	grep -E '^(test|ok|not ok)|tests' "$out/regress.log"
	return $rc
}

# tests_with PATTERN: prints the names of regression tests with a matching line. Omits settings.sql, which lists the settings, and with
# auto_explain the tests that print debug messages.
tests_with() {
	local t

	for t in "$top"/test/sql/*.sql; do
		t=$(basename "$t" .sql)
		if [[ -z $log_options ]] || ! grep -q 'client_min_messages = debug' "$top/test/sql/$t.sql"; then
			[[ " settings ${OMIT:-} " != *" $t "* && -f $top/expected/$t.out ]] && grep -q "$1" "$top/test/sql/$t.sql" && echo "$t"
		fi
	done
}

# leaves_engine NAME: succeeds if a regression test does not use the CPU engine for all of its queries
leaves_engine() {
	! grep -q "$pinned" "$top/test/sql/$1.sql" ||
		grep -E 'gpuagg\.engine|(RESET|DISCARD) ALL|^\\c ' "$top/test/sql/$1.sql" | grep -qv "$pinned"
}

# without_engines FILE: prints output without lines of plans that depend on the engine, and without widths
without_engines() {
	sed -E '/^ *(Engine|Strategy|Strategy Changes|Memory|Batches|Groups|Spilled|Spill Partitions|Device Memory|Device Limit|To Device|From Device|Retries)[:=]/d
		/^-+$/d; /^\([0-9]+ rows?\)$/d; s/^ +//; s/ *\+?$//' "$1"
}

# regress_plans DIR TESTS...: runs regress, and ignores differences
regress_plans() {
	regress "$@" >/dev/null || true
}

part_regress() {
	local pinned="SET gpuagg.engine = 'cpu'" dir=$out/inputs tests t changed differences=

	rm -rf "$dir"
	mkdir -p "$dir"
	cp -r "$top/expected" "$top"/test/{sql,include,data} "$dir"
	[[ -n ${TESTS:-} ]] || regress "$dir" explain || failed=1
	log_engines
	# omit tests that use only the CPU engine: they need no GPU server, and test/run.sh runs them
	tests=$(for t in $(tests_with ''); do ! leaves_engine "$t" || echo "$t"; done)
	# shellcheck disable=SC2086
	at_server "unchanged tests" regress "$dir" ${TESTS:-$tests}
	head -"${DIFF_LINES:-100}" "$out/regress/regression.diffs" 2>/dev/null
	engines
	[[ -z ${TESTS:-} ]] || return
	# Some tests depend on the CPU engine: memory.sql tests its memory, float_bits.sql, float_means.sql and cached_forms.sql its order of
	# additions, column_cache.sql and parallel_cache.sql what its feed reads, shared_parts.sql, shared_values.sql,
	# parallel_distinct.sql and parallel_ordered.sql how participants merge, rescan.sql rows of the plan below, progress.sql its phases, first_groups.sql that
	# it stops early, group_bits.sql, top_groups.sql and grouping_sets.sql its strategies (the last one also its order of additions),
	# plan_shapes.sql plans that its costs make, cache_plans.sql costs of its feed, lookup_order.sql the order of its probes.
	tests=$(tests_with "$pinned" | grep -vxE 'memory|float_bits|float_means|cached_forms|cache_plans|column_cache|progress|group_bits|top_groups|grouping_sets|parallel_cache|early_groups|shared_parts|shared_values|parallel_distinct|parallel_ordered|rescan|first_groups|plan_shapes|lookup_order')
	echo "tests without the choice of the CPU engine; only EXPLAIN may differ:" $tests
	sed -i "s/$pinned/SET gpuagg.engine = 'cuda'/" "$dir"/sql/*.sql "$dir"/expected/*.out
	[[ -z ${SERVER_LOG:-} ]] || log_offset=$(stat -c %s "$SERVER_LOG")
	# shellcheck disable=SC2086
	at_server "tests without the choice of the CPU engine" regress_plans "$dir" $tests
	for t in $tests; do
		changed=$(diff <(without_engines "$dir/expected/$t.out") <(without_engines "$out/regress/results/$t.out"))
		[[ -z $changed ]] || differences+="$t: "$'\n'"$changed"$'\n'
	done
	if [[ -n $differences ]]; then
		echo "not ok - answers are the same, except for plans"
		head -40 <<<"$differences"
		failed=1
	else
		echo "ok - answers are the same, except for plans"
	fi
	engines
}

part_diff() {
	log_engines
	mkdir -p "$out/diff"
	chmod 777 "$out/diff"
	PGAPPNAME=diff PGOPTIONS=$cuda$log_options at_server "random queries" "$top/test/diff/run.sh" --gpu --scripts "$out/diff" \
		--jobs "${JOBS:-1}" --queries "${QUERIES:-1000}" --seed "${SEED:-1}" >"$out/diff.log" 2>&1
	tail -"${DIFF_LINES:-200}" "$out/diff.log"
	engines
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

device() {
	sql -c "SELECT $1 FROM gpuagg_devices() ORDER BY device LIMIT 1" 2>/dev/null
}

# await_restart N SINCE: waits until the server has restarted more than N times. Prints the ms since SINCE (ns).
await_restart() {
	for _ in $(seq 400); do
		[[ $(device "restarts > $1 AND state = 'ready'") == t ]] && break
		sleep 0.01
	done
	echo $((($(date +%s%N) - $2) / 1000000))
}

# print_row FAULT SEEN BACK: prints a line of the table: the fault, what the session saw, when the server was ready again
print_row() {
	printf '| %-44s | %-78s | %-9s | %s |\n' "$1" "$2" "$3" \
		"$([[ $(sql -c 'SELECT pg_postmaster_start_time()') == "$started" ]] && echo unchanged || echo CHANGED)"
}

# Prints the outcome of a query whose answer and messages are in $out/fault.answer and $out/fault.log.
query_outcome() {
	local why

	why=$(sed -n 's/.*engine "cuda" failed: //p' "$out/fault.log" | head -1)
	if [[ $(<"$out/fault.answer") == "$right" ]]; then
		echo "right answer${why:+, from the CPU engine ($why)}"
	else
		echo "WRONG: $(head -c 60 "$out/fault.answer") $(head -c 200 "$out/fault.log")"
	fi
}

# Starts the query, waits until about half of its time has passed, and sets query_pid to its process.
start_query() {
	sql -c "$settings $query" >"$out/fault.answer" 2>"$out/fault.log" &
	query_pid=$!
	sleep "$half_time"
}

# fault NAME WHEN SIGNAL: sends a signal to the server, while it is idle or during a query (busy)
fault() {
	local restarts since back

	restarts=$(device restarts)
	: >"$out/fault.log"
	[[ $2 == idle ]] || start_query
	since=$(date +%s%N)
	pkill -"$3" -x gpuagg-server
	back=$(await_restart "$restarts" "$since")
	if [[ $2 == idle ]]; then
		sql -c "$settings $query" >"$out/fault.answer" 2>"$out/fault.log"
	else
		wait "$query_pid"
	fi
	print_row "$1" "$(query_outcome)" "$back ms"
	((back < 2000)) || failed=1
}

# run_query NAME [EXPRESSION]: runs the query, and prints its outcome, with a value of gpuagg_devices() after it
run_query() {
	sql -c "$settings $query" >"$out/fault.answer" 2>"$out/fault.log"
	print_row "$1" "$(query_outcome)${2:+; $(device "$2")}" -
}

# Prints the engine that EXPLAIN names.
explained() {
	sql -c "SET max_parallel_workers_per_gather = 0; EXPLAIN (COSTS OFF) $query" | sed -n 's/^ *Engine: //p'
}

# setting NAME [VALUE]: sets or resets a setting in the server's configuration, and waits for its reload
setting() {
	sql -c "ALTER SYSTEM $([[ -n ${2-} ]] && echo "SET $1 = '$2'" || echo "RESET $1")" -c 'SELECT pg_reload_conf()' >/dev/null
	sleep 0.3
}

# fault_program NAME COMMAND: replaces the server by a script, until the CPU engine is chosen, and runs the query
fault_program() {
	printf '#!/bin/sh\n%s\n' "$2" >"$out/server.sh"
	chmod 755 "$out/server.sh"
	setting gpuagg.server_program "$out/server.sh"
	for _ in $(seq 100); do
		[[ $(sql -c "$settings EXPLAIN (COSTS OFF) $query" 2>/dev/null) == *"cpu (no GPU"* ]] && break
		sleep 0.05
	done
	run_query "$1; EXPLAIN says $(explained)"
	setting gpuagg.server_program
	await_ready >/dev/null
}

# fault_backend FUNCTION: cancels or terminates the backend during a query. The server must release its session and memory in 1 s.
fault_backend() {
	start_query
	sql -c "SELECT $1(pid) FROM pg_stat_activity WHERE query LIKE '%gpu_rows%' AND pid <> pg_backend_pid()" >/dev/null
	wait "$query_pid"
	for _ in $(seq 50); do
		[[ $(device 'sessions + memory_used') == 0 ]] && break
		sleep 0.02
	done
	print_row "$1 in a query" "$(grep -oE '(ERROR|FATAL): .*' "$out/fault.log" | head -1); sessions and device memory left: $(device 'sessions + memory_used')" -
	[[ $(device 'sessions + memory_used') == 0 ]] || failed=1
}

fault_garbage() {
	local socket nfailures

	socket=$(sql -c 'SHOW data_directory')/pg_stat_tmp/gpuagg.socket
	nfailures=$(perl -MIO::Socket::UNIX -e '
		srand(1); my $n = 0;
		foreach my $i (1 .. 200) {
			my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "no connection";
			my $body = join "", map { chr int rand 256 } 1 .. rand 3000;
			$body = pack("L4", 0x47504741, $i % 12, length($body), 0) . $body if $i % 2;
			$body = substr($body, 0, length($body) / 2) if $i % 5 == 0;
			$SIG{PIPE} = "IGNORE"; $s->autoflush(1); print $s $body; shutdown($s, 1);
			my $reply; $n++ if sysread($s, $reply, 4096); }
		print $n' "$socket")
	run_query "200 invalid or incomplete messages on the socket" "'$nfailures failures sent'"
}

fault_many() {
	local i right_ones before

	before=$(device queries)
	rm -f "$out"/many.*
	for ((i = 0; i < 64; i++)); do
		sql -c "${settings/engine = auto/engine = cuda} $query" >"$out/many.$i" 2>/dev/null &
	done
	wait
	right_ones=$(grep -lFx "$right" "$out"/many.* | wc -l)
	print_row '64 concurrent sessions' "$right_ones right answers, $(($(device queries) - before)) queries at the server; memory left: $(device memory_used)" -
	[[ $right_ones == 64 ]] || failed=1
}

part_faults() {
	local libdir

	libdir=$(sql -c "SELECT setting FROM pg_config() WHERE name = 'PKGLIBDIR'")
	make_rows
	await_ready >/dev/null
	started=$(sql -c 'SELECT pg_postmaster_start_time()')
	right=$(sql -c "SET gpuagg.enabled = off; ${query//gpu_count/count}" | tail -1)
	half_time=$(sql -c "$settings $query" -c '\timing on' -c "$query" 2>/dev/null | awk '/^Time:/ {print $2 / 2500}')
	print_row fault 'what the session saw' 'ready after' | sed 's/unchanged/start time/'
	fault_many
	fault_garbage
	fault_backend pg_cancel_backend
	fault_backend pg_terminate_backend
	setting gpuagg.device_memory_limit 26MB
	run_query 'device memory exhausted' "'out_of_memory is ' || out_of_memory"
	setting gpuagg.device_memory_limit
	for signal in KILL SEGV ABRT; do
		fault "SIG$signal of the server, idle" idle "$signal"
		sleep 1
		fault "SIG$signal of the server, in a query" busy "$signal"
		sleep 5
	done
	fault_program 'no device' "CUDA_VISIBLE_DEVICES= GPUAGG_STUB_DEVICES=0 exec ${SERVER:-$libdir/gpuagg-server} \"\$@\""
	: >"$out/libcuda.so.1"
	fault_program 'no libcuda' "LD_LIBRARY_PATH=$out GPUAGG_STUB_DEVICES=0 exec ${SERVER:-$libdir/gpuagg-server} \"\$@\""
	setting gpuagg.server_program /nonexistent
	run_query "no server program; EXPLAIN says $(explained)"
	setting gpuagg.server_program
	await_ready >/dev/null
	run_query 'after all faults' "format('restarts %s, sessions %s, device memory %s', restarts, sessions, memory_used)"
	[[ $(sql -c 'SELECT pg_postmaster_start_time()') == "$started" ]] || failed=1
}

# The server must not outlive the postmaster.
part_postmaster() {
	local pid since

	await_ready >/dev/null
	pid=$(head -1 "$(sql -c 'SHOW data_directory')/postmaster.pid")
	since=$(date +%s%N)
	kill -9 "$pid"
	# a process that has ended is a zombie until its new parent reaps it
	while ps -C gpuagg-server -o stat= | grep -qv Z && (($(date +%s%N) - since < 5000000000)); do
		sleep 0.005
	done
	echo "SIGKILL of the postmaster: the GPU server has ended after $((($(date +%s%N) - since) / 1000000)) ms"
	(($(date +%s%N) - since < 1000000000)) || failed=1
}

part_first() {
	make_rows
	await_ready >/dev/null
	# the CPU engine runs first, so that the times do not include mapping the pages of the table
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
	"$top/test/bench/bench.sh" --rows "${ROWS:-8000000}" --repeat "${REPEAT:-3}" \
		--configs "${CONFIGS:-core,cpu-tuples,cuda-tuples}" || failed=1
}

# Prints the lines of EXPLAIN ANALYZE about the GPU for the benchmark's queries.
part_explain() {
	local name query feed

	for feed in tuples heap; do
		while IFS='|' read -r name query _; do
			echo "$feed, $(xargs <<<"$name"): $(sql -c "SET max_parallel_workers_per_gather = 0; SET gpuagg.engine = cuda;
				SET work_mem = '256MB'; SET gpuagg.feed = $feed; EXPLAIN (ANALYZE, COSTS OFF) ${query//agg:/gpu_}" |
				sed -nE 's/^ *((Engine|Strategy|Strategy Changes|To Device|From Device|Device Memory|Copy Time|Kernel Time|Retries|Execution Time): )/\1/p' |
				paste -sd';')"
		done < <(grep -v '^#' "$top/test/bench/queries.txt")
	done
}

part_demo() {
	"$top/test/demo.sh" >"$out/demo.log" 2>&1 || failed=1
	grep -E 'On the|Engine|equal|DIFFER|ERROR' "$out/demo.log"
}

part_sanitizer() {
	local libdir tool

	libdir=$(sql -c "SELECT setting FROM pg_config() WHERE name = 'PKGLIBDIR'")
	tool=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
	rm -f "$out"/sanitizer.*.log
	# without exec, the tool survives the kill of this shell, and prints its summary when the server ends
	cat >"$out/server.sh" <<SH
#!/bin/sh
$tool --tool memcheck --log-file $out/sanitizer.%p.log $libdir/gpuagg-server "\$@"
exit \$?
SH
	chmod 755 "$out/server.sh"
	setting gpuagg.server_program "$out/server.sh"
	await_ready >/dev/null
	QUERIES=${QUERIES:-60} part_diff
	TESTS=${TESTS:-histogram special_floats sketch overflow} part_regress
	setting gpuagg.server_program
	for _ in $(seq 100); do
		grep -q SUMMARY "$out"/sanitizer.*.log && break
		sleep 0.1
	done
	await_ready >/dev/null
	grep -h '^=' "$out"/sanitizer.*.log | sed 's/0x[0-9a-f]*/0x/g; s/([0-9]*,[0-9]*,[0-9]*)/()/g' | sort | uniq -c | sort -rn | head -40
	ls -l "$out"/sanitizer.*.log
	grep -q 'ERROR SUMMARY: 0 errors' "$out"/sanitizer.*.log && ! grep -q 'ERROR SUMMARY: [1-9]' "$out"/sanitizer.*.log || failed=1
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
