#!/usr/bin/env bash
# Compares the speed of gpuagg with that of PostgreSQL's own aggregates: the seven standard queries, one with a WHERE, one over real
# flights (text keys), and TPC-H's query 1 (numerics).
#
#	test/bench/bench.sh [--rows N] [--repeat N] [--workers N] [--configs a,b,...] [--set name=value]...
#		[--queries FILE] [--base CONFIG] [--cpu-time] [--library FILE]
#
#	--rows N			rows of the standard table (default 8000000); the others have a quarter of them
#	--repeat N			executions per query and configuration (default 5)
#	--workers N			parallel workers of the parallel configurations (default: the number of processors)
#	--configs a,b,...	configurations, see below
#	--set name=value	a setting for all configurations, e.g. gpuagg.feed=tuples
#	--queries FILE		queries in the form of queries.txt, the default
#	--base CONFIG		the configuration with which others are compared (default: the first; for parallel ones core-parallel)
#	--cpu-time			measures CPU time, on which other processes have less influence: of the session's process, or of all threads of
#						DuckDB
#	--library FILE		DuckDB's library (default: $DUCKDB_LIBRARY)
#	PGHOST				if set, runs in this running server, which must preload the extension, and keeps the tables there
#
# Configurations (default: core, core-parallel, cpu, cpu-parallel, and with a GPU cuda, cuda-parallel):
#	core, core-parallel			PostgreSQL's aggregates, without and with parallel workers
#	cpu, cpu-parallel			gpuagg on the CPU engine, from heap pages
#	cpu-cache, cpu-cache-parallel	the same, from the column cache, which has all of the columns
#	cpu-tuples					the same, with rows from the child plan instead of pages
#	cuda, cuda-parallel			gpuagg on the GPU, from heap pages
#	cuda-cache, cuda-cache-parallel	the same, from the column cache
#	cuda-tuples					the same, with rows from the child plan
#	builtin, builtin-parallel	PostgreSQL's names with gpuagg.replace_builtin, where the planner chooses gpuagg, from heap pages
#	builtin-cache, builtin-cache-parallel	the same, from the column cache
#	auto, auto-parallel			gpuagg where the planner chooses it, with the column cache
#	duckdb, duckdb-parallel		DuckDB on its own copy in memory; see duckdb.sh
#
# Checks that all configurations give equal answers, then prints the median time of each. The exit status is 0 if answers are equal. Times
# are the server's own for SELECT count(s) FROM (query) s, so they do not include the client. All data is in memory, jit is off, and
# work_mem is 256 MB.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rows=8000000 repeat=5 workers=$(nproc) sets=() queries=$here/queries.txt base= cpu_time= library=${DUCKDB_LIBRARY:-}
configs=core,core-parallel,cpu,cpu-parallel
[[ ! -e /dev/nvidiactl ]] || configs+=,cuda,cuda-parallel
while [[ $# -gt 0 ]]; do
	case $1 in
	--rows) rows=$2 ;;
	--repeat) repeat=$2 ;;
	--workers) workers=$2 ;;
	--configs) configs=$2 ;;
	--queries) queries=$2 ;;
	--set) sets+=("$2") ;;
	--base) base=$2 ;;
	--library) library=$2 ;;
	--cpu-time) cpu_time=1 && shift && continue ;;
	*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2 ;;
	esac
	shift 2
done
IFS=, read -ra configs <<<"$configs"
# shellcheck source=test/bench/library.sh
source "$here/library.sh"
work=$(mktemp -d)
cleanup() {
	[[ -z ${duck_pid:-} ]] || kill "$duck_pid"
	[[ -z ${own_cluster:-} ]] || pg_stop
	rm -rf "$work"
}
trap cleanup EXIT

if [[ -z ${PGHOST:-} ]]; then
	# shellcheck source=test/pg.sh
	source "$here/../pg.sh"
	own_cluster=1
	pg_need && pg_install || exit 1
	pg_start "shared_preload_libraries='gpuagg'" shared_buffers=2GB gpuagg.cache_memory=2GB max_worker_processes=64 \
		max_parallel_workers=64 autovacuum=off checkpoint_timeout=1h || exit 1
fi

# config_sets CONFIG: prints the SET commands of a configuration
config_sets() {
	local s

	echo "SET jit = off; SET work_mem = '256MB';"
	case $1 in
	*-parallel)
		echo "SET max_parallel_workers_per_gather = $workers; SET min_parallel_table_scan_size = 0;
			ALTER TABLE gpuagg_bench SET (parallel_workers = $workers);
			ALTER TABLE gpuagg_bench_flights SET (parallel_workers = $workers);
			ALTER TABLE gpuagg_bench_lineitem SET (parallel_workers = $workers);"
		;;
	*) echo "SET max_parallel_workers_per_gather = 0;" ;;
	esac
	case $1 in
	core*) echo "SET gpuagg.enabled = off;" ;;
	duckdb*) return 0 ;;
	cpu*) echo "SET gpuagg.require = 'require'; SET gpuagg.engine = 'cpu';" ;;
	cuda*) echo "SET gpuagg.require = 'require'; SET gpuagg.engine = 'cuda';" ;;
	builtin*) echo "SET gpuagg.replace_builtin = on; SET gpuagg.engine = 'cpu';" ;;
	auto*) ;;
	*) echo "unknown configuration: $1" >&2 && return 1 ;;
	esac
	[[ $1 != *-tuples ]] || echo "SET gpuagg.feed = 'tuples';"
	[[ $1 == *-cache* || $1 == auto* ]] || echo "SET gpuagg.cache = off;"
	for s in ${sets[@]+"${sets[@]}"}; do
		echo "SET ${s%%=*} = '${s#*=}';"
	done
}

# config_query CONFIG QUERY: prints the query with the names of aggregates that the configuration uses
config_query() {
	[[ $1 == core* || $1 == duckdb* || $1 == builtin* ]] && echo "${2//agg:/}" || echo "${2//agg:/gpu_}"
}

# duck_load THREADS: starts DuckDB with this number of threads, and copies the tables of the queries into it
duck_load() {
	local table

	duck_start "$1"
	duck_sql "CREATE MACRO width_bucket(x, lo, hi, n) AS
		CASE WHEN x < lo THEN 0 WHEN x >= hi THEN n + 1 ELSE CAST(floor((x - lo) / (hi - lo) * n) AS INTEGER) + 1 END"
	duck_sql "CREATE MACRO to_char(x, format) AS strftime(x, CASE format WHEN 'YYYY-MM' THEN '%Y-%m' END)"
	for table in $(grep -o 'gpuagg_bench\w*' <<<"$text" | sort -u); do
		duck_copy "$table"
	done
	head -1 "$work/duckdb.err"
}

# ---- queries ---------------------------------------------------------------------

# answer CONFIG QUERY KEYS: writes the answer, sorted by its first KEYS columns, to $work/CONFIG
answer() {
	local order=

	for ((i = 1; i <= $3; i++)); do
		order+=${order:+, }$i
	done
	if [[ $1 == duckdb* ]]; then
		duck_sql "COPY ($(config_query "$1" "$2") ${order:+ORDER BY $order}) TO '$work/$1' (FORMAT csv, HEADER false)"
		return
	fi
	{
		config_sets "$1"
		echo "COPY ($(config_query "$1" "$2") ${order:+ORDER BY $order}) TO STDOUT (FORMAT csv);"
	} | sql >"$work/$1"
}

# run_all QUERY: executes a query in one session, in all configurations in turn, and writes the times in ms to $work/CONFIG.ms. The first
# execution does not count, as it maps the pages of the table.
run_all() {
	local c r

	config_query duckdb "$1" >"$work/timed.sql"
	{
		echo 'SELECT pg_backend_pid() AS pid \gset'
		for ((r = 0; r <= repeat; r++)); do
			for c in "${configs[@]}"; do
				echo 'RESET ALL;'
				config_sets "$c"
				echo "\\echo RUN $r $c"
				if [[ $c == duckdb* ]]; then
					echo "\\echo Duck: \`echo $work/timed.sql >$work/requests; cat $work/replies\`"
					continue
				fi
				[[ -z $cpu_time ]] || echo '\echo From: `cut -d" " -f1 /proc/:pid/schedstat`'
				echo '\timing on'
				echo "SELECT count(s) FROM ($(config_query "$c" "$1") OFFSET 0) s \\g /dev/null"
				echo '\timing off'
				[[ -z $cpu_time ]] || echo '\echo To: `cut -d" " -f1 /proc/:pid/schedstat`'
			done
		done
	} | sql | awk -v work="$work" -v cpu="$cpu_time" '
		function result(ms) {if (r > 0) print ms > (work "/" c ".ms")}
		/^RUN/ {r = $2; c = $3}
		/^Time:/ && !cpu {result($2)}
		/^From:/ {from = $2}
		/^To:/ {result(($2 - from) / 1e6)}
		/^Duck: ms/ {result(cpu ? $4 : $3)}'
}

sql -c "CREATE EXTENSION IF NOT EXISTS gpuagg" 2>/dev/null || exit 1
# fill TABLE ROWS FILE SESSIONS: fills the table by the SQL of FILE, in concurrent sessions, unless it has this number of rows
fill() {
	local table=$1 n=$2 part

	grep -q "$table\b" <<<"$text" || return 0
	[[ $(sql -c "SELECT count(*) FROM $table") != "$n" ]] || return 0
	sql -c "TRUNCATE $table"
	for ((part = 0; part < $4; part++)); do
		sql -v from=$((n * part / $4 + 1)) -v to=$((n * (part + 1) / $4)) -f "$3" \
			<"$work/flights.csv" >/dev/null 2>>"$work/err" &
	done
	wait
	[[ ! -s $work/err ]] || { cat "$work/err"; exit 1; }
	sql -c "VACUUM (FREEZE, ANALYZE) $table"
}

text=$(grep -Ev '^(#|--)' "$queries")
sql -f "$here/tables.sql" 2>/dev/null || exit 1
zcat "$here/../data/flights.csv.gz" >"$work/flights.csv" || exit 1
fill gpuagg_bench "$rows" "$here/bench.sql" "$(nproc)"
fill gpuagg_bench_lineitem $((rows / 4)) "$here/lineitem.sql" "$(nproc)"
fill gpuagg_bench_flights $((rows / 4)) "$here/flights.sql" 1
[[ $text != *gpuagg_bench_airports* ]] || sql -f "$here/airports.sql" || exit 1

case " ${configs[*]} " in
*" duckdb-parallel "*) duck_load $((workers + 1)) ;;
*" duckdb "*) duck_load 1 ;;
esac
echo "gpuagg benchmark: $rows rows ($(sql -c "SELECT pg_size_pretty(pg_relation_size('gpuagg_bench'))")), $(nproc) cores," \
	"$(sql -c "SELECT split_part(version(), ' (', 1)"), median of $repeat${cpu_time:+, processor time}"
# base_of CONFIG: prints the configuration with which another is compared
base_of() {
	if [[ -n $base ]]; then
		echo "$base"
	elif [[ $1 == *-parallel && " ${configs[*]} " == *" core-parallel "* ]]; then
		echo core-parallel
	else
		echo "${configs[0]}"
	fi
}

printf '%-26s' 'milliseconds'
for c in "${configs[@]}"; do printf '%15s' "$c"; done
for c in "${configs[@]}"; do [[ $c == "$(base_of "$c")" ]] || printf '%16s' "$c x"; done
echo
status=0
# not_taken CONFIG QUERY: prints why the planner did not choose gpuagg, or nothing if it did
not_taken() {
	{
		config_sets "$1"
		echo "EXPLAIN (VERBOSE) $(config_query "$1" "$2")"
	} | sql | awk '/Custom Scan \(GpuAgg\)/ {taken = 1} sub(/^GpuAgg: not used: /, "") {why = $0} END {if (!taken) print why ? why : "no aggregation of gpuagg"}'
}

declare -A total=()
nqueries=0 not_taken_reasons=()
while IFS=$'\x1f' read -r name query keys; do
	name=$(xargs <<<"$name") query=$(xargs -0 <<<"$query") keys=$(xargs <<<"$keys")
	for c in "${configs[@]}"; do
		answer "$c" "$query" "$keys" || { status=1; continue 2; }
		if [[ $c != "${configs[0]}" ]] &&
			! awk -F, -v other="$work/${configs[0]}" -f "$here/compare.awk" "$work/$c"; then
			echo "$name: the answer of $c is not that of ${configs[0]}"
			status=1
		fi
	done
	run_all "$query"
	printf '%-26s' "$name"
	declare -A ms=()
	for c in "${configs[@]}"; do
		ms[$c]=$(median <"$work/$c.ms")
		rm "$work/$c.ms"
		printf '%15.1f' "${ms[$c]}"
		total[$c]=$(awk -v a="${total[$c]:-0}" -v b="${ms[$c]}" 'BEGIN {print a + b}')
	done
	((nqueries++))
	for c in "${configs[@]}"; do
		with=$(base_of "$c")
		[[ $c == "$with" ]] || printf '%16s' "$(awk -v a="${ms[$with]}" -v b="${ms[$c]}" 'BEGIN {printf "%.2f", a / b}')"
	done
	echo
	for c in "${configs[@]}"; do
		[[ $c == builtin ]] && why=$(not_taken "$c" "$query") && [[ -n $why ]] && not_taken_reasons+=("$name: $why")
	done
done <<<"$(sed 's/ | /\x1f/g' <<<"$text")"
printf '%-26s' 'all'
for c in "${configs[@]}"; do printf '%15.1f' "${total[$c]}"; done
for c in "${configs[@]}"; do
	with=$(base_of "$c")
	[[ $c == "$with" ]] || printf '%16s' "$(awk -v a="${total[$with]}" -v b="${total[$c]}" 'BEGIN {printf "%.2f", a / b}')"
done
echo
[[ " ${configs[*]} " != *" builtin "* ]] || echo "$((nqueries - ${#not_taken_reasons[@]})) of $nqueries queries were executed by gpuagg."
[[ ${#not_taken_reasons[@]} == 0 ]] || printf 'Executed by PostgreSQL: %s\n' "${not_taken_reasons[@]}"
[[ $status != 0 ]] || echo "The answers of all configurations are equal."
exit $status
