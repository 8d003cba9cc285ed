#!/usr/bin/env bash
# The GPU engine on a GPU host, against the running cluster that PGHOST names: one
# whose server host is this one, with the extension preloaded and a GPU server.
#
#	test/gpu_server.sh [part...]
#
#	regress		the regression tests with gpuagg.engine = cuda; those that choose the CPU engine
#				without that, where only EXPLAIN may differ
#	diff		the differential test likewise: QUERIES (default 1000) in JOBS processes (default 1),
#				seeds from SEED on
#	faults		what goes wrong with the GPU server and around it, in a table
#	first		times of the first and second GPU query of a fresh backend
#	bench		test/bench/bench.sh: core, CPU engine and GPU engine; ROWS (default 8000000),
#				CONFIGS (default core,cpu-tuples,cuda-tuples)
#	explain		what EXPLAIN ANALYZE says of the benchmark's queries; after bench
#	demo		test/demo.sh, which must say that it runs on the GPU
#	sanitizer	a part of diff and of regress (TESTS) with the server under compute-sanitizer; needs to
#				be superuser and to find compute-sanitizer
#	postmaster	kills the postmaster, which must take the GPU server along; the cluster is down then
#
# Where SERVER_LOG names the cluster's log, the engines that ran the queries of
# regress and diff are counted, with the reasons for the CPU engine.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${OUT_DIR:-$(mktemp -d)}
chmod 777 "$out"
failed=0
cuda='-c gpuagg.engine=cuda -c jit=off'
watching=

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
	until ready || (($(date +%s%N) - since > 300000000000)); do
		sleep 0.02
	done
	echo $((($(date +%s%N) - since) / 1000000))
}

# watch: from now on the server logs the engine of every query, if we can read that.
watch() {
	[[ -n ${SERVER_LOG:-} ]] || return
	sql -c "ALTER SYSTEM SET log_line_prefix = '%a> '" -c 'SELECT pg_reload_conf()' >/dev/null
	logged=$(stat -c %s "$SERVER_LOG")
	watching=' -c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0 -c auto_explain.log_nested_statements=on'
}

# Queries of custom scans by engine since watch, then the reasons for the CPU engine with the tests they come from.
engines() {
	[[ -n ${SERVER_LOG:-} ]] || return
	tail -c +$((logged + 1)) "$SERVER_LOG" | awk '
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

# at_server NAME COMMAND...: the command, which must have brought queries to the GPU server
at_server() {
	local name=$1 before n

	shift
	before=$(sql -c 'SELECT sum(queries) FROM gpuagg_devices()')
	"$@" || failed=1
	n=$(($(sql -c 'SELECT sum(queries) FROM gpuagg_devices()') - before))
	if ((n > 0)); then
		echo "ok - $name: at the GPU server"
		echo "# $n queries"
	else
		echo "not ok - $name: no query at the GPU server"
		failed=1
	fi
}

# regress DIR TESTS...: pg_regress with the inputs in DIR/sql and the answers in DIR/expected
regress() {
	local dir=$1 expected= debugged rc=0

	shift
	mkdir -p "$out/regress"
	ln -sfn "$dir/expected" "$out/regress/expected"
	"$PG_REGRESS" --help | grep -q -e --expecteddir && expected=--expecteddir=$dir
	# shellcheck disable=SC2086
	PGOPTIONS=$cuda$watching "$PG_REGRESS" --inputdir="$dir" --outputdir="$out/regress" $expected \
		--bindir="$(dirname "$(command -v psql)")" --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" \
		--dbname=regress --load-extension=gpuagg "$@" >"$out/regress.log" 2>&1 || rc=1
	grep -E '^(test|ok|not ok)|tests' "$out/regress.log"
	return $rc
}

# Names of the regression tests with a line like $1.  settings.sql lists what is set, so it cannot run with
# other settings; what shows messages for debugging would show those of auto_explain too.
tests_with() {
	local t

	for t in "$top"/test/sql/*.sql; do
		t=$(basename "$t" .sql)
		if [[ -z $watching ]] || ! grep -q 'client_min_messages = debug' "$top/test/sql/$t.sql"; then
			[[ $t != settings && -f $top/expected/$t.out ]] && grep -q "$1" "$top/test/sql/$t.sql" && echo "$t"
		fi
	done
}

# leaves_engine NAME: whether a regression test runs with another engine than the CPU's, which it may choose
leaves_engine() {
	! grep -q "$pinned" "$top/test/sql/$1.sql" ||
		grep -E 'gpuagg\.engine|(RESET|DISCARD) ALL|^\\c ' "$top/test/sql/$1.sql" | grep -qv "$pinned"
}

# Answers without the lines of plans that tell engines apart, and without what depends on their width.
without_engines() {
	sed -E '/^ *(Engine|Strategy|Strategy Changes|Memory|Batches|Groups|Spilled|Spill Partitions|Device Memory|Device Limit|To Device|From Device|Retries)[:=]/d
		/^-+$/d; /^\([0-9]+ rows?\)$/d; s/^ +//; s/ *\+?$//' "$1"
}

# ... where plans may differ
regress_plans() {
	regress "$@" >/dev/null || true
}

part_regress() {
	local pinned="SET gpuagg.engine = 'cpu'" dir=$out/inputs tests t differences=

	rm -rf "$dir"
	mkdir -p "$dir"
	cp -r "$top/expected" "$top"/test/{sql,include,data} "$dir"
	[[ -n ${TESTS:-} ]] || regress "$dir" explain || failed=1
	watch
	# those that never leave the CPU engine say what they say without a GPU server (part regress of test/run.sh)
	tests=$(for t in $(tests_with ''); do ! leaves_engine "$t" || echo "$t"; done)
	# shellcheck disable=SC2086
	at_server "the tests as they are" regress "$dir" ${TESTS:-$tests}
	head -"${DIFF_LINES:-100}" "$out/regress/regression.diffs" 2>/dev/null
	engines
	[[ -z ${TESTS:-} ]] || return
	# memory.sql is about the memory of the CPU engine, float_bits.sql, float_means.sql and cached_forms.sql about its order of
	# additions, column_cache.sql about what its feed reads, shared_parts.sql about how participants merge, rescan.sql about
	# rows of the plan below, progress.sql about its phases, first_groups.sql about stopping early, and group_bits.sql,
	# top_groups.sql and grouping_sets.sql about its strategies and, the latter, its order of additions; plan_shapes.sql is about
	# plans that its prices make
	tests=$(tests_with "$pinned" | grep -vxE 'memory|float_bits|float_means|cached_forms|column_cache|progress|group_bits|top_groups|grouping_sets|shared_parts|rescan|first_groups|plan_shapes')
	echo "without the choice of the CPU engine; only EXPLAIN may differ:" $tests
	sed -i "s/$pinned/SET gpuagg.engine = 'cuda'/" "$dir"/sql/*.sql "$dir"/expected/*.out
	[[ -z ${SERVER_LOG:-} ]] || logged=$(stat -c %s "$SERVER_LOG")
	# shellcheck disable=SC2086
	at_server "those that choose the CPU engine, without that" regress_plans "$dir" $tests
	for t in $tests; do
		differences+=$(diff <(without_engines "$dir/expected/$t.out") <(without_engines "$out/regress/results/$t.out"))
	done
	if [[ -n $differences ]]; then
		echo "not ok - the same answers, plans aside"
		head -40 <<<"$differences"
		failed=1
	else
		echo "ok - the same answers, plans aside"
	fi
	engines
}

part_diff() {
	watch
	mkdir -p "$out/diff"
	chmod 777 "$out/diff"
	PGAPPNAME=diff PGOPTIONS=$cuda$watching at_server "random queries" "$top/test/diff/run.sh" --gpu --scripts "$out/diff" \
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

# Waits until the server was started more than $1 times again; the milliseconds since $2.
await_restart() {
	for _ in $(seq 400); do
		[[ $(device "restarts > $1 AND state = 'ready'") == t ]] && break
		sleep 0.01
	done
	echo $((($(date +%s%N) - $2) / 1000000))
}

# One line of the table: what happened, what the session saw, when the server was back.
row() {
	printf '| %-44s | %-78s | %-9s | %s |\n' "$1" "$2" "$3" \
		"$([[ $(sql -c 'SELECT pg_postmaster_start_time()') == "$started" ]] && echo unchanged || echo CHANGED)"
}

# What came of a query whose answer and messages were written to $out/fault.*.
seen() {
	local why

	why=$(sed -n 's/.*engine "cuda" failed: //p' "$out/fault.log" | head -1)
	if [[ $(<"$out/fault.answer") == "$right" ]]; then
		echo "right answer${why:+, from the CPU engine ($why)}"
	else
		echo "WRONG: $(head -c 60 "$out/fault.answer") $(head -c 200 "$out/fault.log")"
	fi
}

# Starts the query and returns in its middle, with its process in $asked.
begin() {
	sql -c "$settings $query" >"$out/fault.answer" 2>"$out/fault.log" &
	asked=$!
	sleep "$half"
}

# fault NAME WHEN SIGNAL: kills the server, idle or in the middle of a query
fault() {
	local restarts since back

	restarts=$(device restarts)
	: >"$out/fault.log"
	[[ $2 == idle ]] || begin
	since=$(date +%s%N)
	pkill -"$3" -x gpuagg-server
	back=$(await_restart "$restarts" "$since")
	if [[ $2 == idle ]]; then
		sql -c "$settings $query" >"$out/fault.answer" 2>"$out/fault.log"
	else
		wait "$asked"
	fi
	row "$1" "$(seen)" "$back ms"
	((back < 2000)) || failed=1
}

# ask NAME [WHAT]: the query as it is now, the GPU server being what it is, and a value of gpuagg_devices() after it
ask() {
	sql -c "$settings $query" >"$out/fault.answer" 2>"$out/fault.log"
	row "$1" "$(seen)${2:+; $(device "$2")}" -
}

# The engine that EXPLAIN names.
explained() {
	sql -c "SET max_parallel_workers_per_gather = 0; EXPLAIN (COSTS OFF) $query" | sed -n 's/^ *Engine: //p'
}

# setting NAME VALUE: for all, by a reload; waits a moment
setting() {
	sql -c "ALTER SYSTEM $([[ -n ${2-} ]] && echo "SET $1 = '$2'" || echo "RESET $1")" -c 'SELECT pg_reload_conf()' >/dev/null
	sleep 0.3
}

# A program in place of the server, that starts it with a changed environment or something else.
fault_program() {
	printf '#!/bin/sh\n%s\n' "$2" >"$out/server.sh"
	chmod 755 "$out/server.sh"
	setting gpuagg.server_program "$out/server.sh"
	for _ in $(seq 100); do
		[[ $(sql -c "$settings EXPLAIN (COSTS OFF) $query" 2>/dev/null) == *"cpu (no GPU"* ]] && break
		sleep 0.05
	done
	ask "$1; EXPLAIN says $(explained)"
	setting gpuagg.server_program
	await_ready >/dev/null
}

# Sessions and device memory must be gone in a second, whatever became of the backend.
fault_backend() {
	begin
	sql -c "SELECT $1(pid) FROM pg_stat_activity WHERE query LIKE '%gpu_rows%' AND pid <> pg_backend_pid()" >/dev/null
	wait "$asked"
	for _ in $(seq 50); do
		[[ $(device 'sessions + memory_used') == 0 ]] && break
		sleep 0.02
	done
	row "$1 in a query" "$(grep -oE '(ERROR|FATAL): .*' "$out/fault.log" | head -1); sessions and device memory left: $(device 'sessions + memory_used')" -
	[[ $(device 'sessions + memory_used') == 0 ]] || failed=1
}

fault_garbage() {
	local socket answered

	socket=$(sql -c 'SHOW data_directory')/pg_stat_tmp/gpuagg.socket
	answered=$(perl -MIO::Socket::UNIX -e '
		srand(1); my $n = 0;
		foreach my $i (1 .. 200) {
			my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "no connection";
			my $body = join "", map { chr int rand 256 } 1 .. rand 3000;
			$body = pack("L4", 0x47504741, $i % 12, length($body), 0) . $body if $i % 2;
			$body = substr($body, 0, length($body) / 2) if $i % 5 == 0;
			$SIG{PIPE} = "IGNORE"; $s->autoflush(1); print $s $body; shutdown($s, 1);
			my $reply; $n++ if sysread($s, $reply, 4096); }
		print $n' "$socket")
	ask "200 times garbage or half messages on the socket" "'$answered failures sent'"
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
	row '64 sessions at once' "$right_ones right answers, $(($(device queries) - before)) queries at the server; memory left: $(device memory_used)" -
	[[ $right_ones == 64 ]] || failed=1
}

part_faults() {
	local libdir

	libdir=$(sql -c "SELECT setting FROM pg_config() WHERE name = 'PKGLIBDIR'")
	make_rows
	await_ready >/dev/null
	started=$(sql -c 'SELECT pg_postmaster_start_time()')
	right=$(sql -c "SET gpuagg.enabled = off; ${query//gpu_count/count}" | tail -1)
	half=$(sql -c "$settings $query" -c '\timing on' -c "$query" 2>/dev/null | awk '/^Time:/ {print $2 / 2500}')
	row fault 'what the session saw' 'back after' | sed 's/unchanged/start time/'
	fault_many
	fault_garbage
	fault_backend pg_cancel_backend
	fault_backend pg_terminate_backend
	setting gpuagg.device_memory_limit 26MB
	ask 'device memory exhausted' "'out_of_memory is ' || out_of_memory"
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
	ask "no server program; EXPLAIN says $(explained)"
	setting gpuagg.server_program
	await_ready >/dev/null
	ask 'afterwards' "format('restarts %s, sessions %s, device memory %s', restarts, sessions, memory_used)"
	[[ $(sql -c 'SELECT pg_postmaster_start_time()') == "$started" ]] || failed=1
}

# The server must not outlive the postmaster.
part_postmaster() {
	local pid since

	await_ready >/dev/null
	pid=$(head -1 "$(sql -c 'SHOW data_directory')/postmaster.pid")
	since=$(date +%s%N)
	kill -9 "$pid"
	# an ended process stays as a zombie until its new parent reaps it
	while ps -C gpuagg-server -o stat= | grep -qv Z && (($(date +%s%N) - since < 5000000000)); do
		sleep 0.005
	done
	echo "SIGKILL of the postmaster: the GPU server is gone after $((($(date +%s%N) - since) / 1000000)) ms"
	(($(date +%s%N) - since < 1000000000)) || failed=1
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
	"$top/test/bench/bench.sh" --rows "${ROWS:-8000000}" --repeat "${REPEAT:-3}" \
		--configs "${CONFIGS:-core,cpu-tuples,cuda-tuples}" || failed=1
}

# What EXPLAIN says of the GPU's part in the benchmark's queries.
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
	# not exec: the tool outlives the kill of this shell, sees the server end, and sums up
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
