#!/usr/bin/env bash
# The aggregates that PostgreSQL does not have (histograms.txt): beside the SQL that people write instead, and DuckDB's nearest.
#
#	test/bench/histograms.sh [rows] [repeat]	default 1000000, 3
#
#	LIBRARY		DuckDB's library, see duckdb.sh
#	ONLY		a regular expression: the names of the queries that run
#	GPU			1: times of the GPU engine, too, on a GPU host. All times are then elapsed ones, with THREADS threads or
#				processes (default: the machine's processors), but one process beside the GPU. Plain SQL runs once
#
# One process, the column cache is warm, DuckDB has one thread. Prints the median of processor time in ms of each query, without groups and by
# 100 groups, and the quotients. Answers are compared where they have the same form, floats to nine digits.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=${LIBRARY:-}
# shellcheck source=test/bench/library.sh
source "$here/library.sh"
# shellcheck source=test/pg.sh
source "$here/../pg.sh"
rows=${1:-1000000} repeat=${2:-3} status=0
work=$(mktemp -d)
cleanup() {
	[[ -z ${duck_pid:-} ]] || kill "$duck_pid"
	pg_stop
	rm -rf "$work"
}
trap cleanup EXIT
pg_need && { [[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install; } || exit 1
gpu=${GPU:-} threads=${THREADS:-$([[ -z ${GPU:-} ]] && echo 1 || nproc)}
pg_start "shared_preload_libraries='gpuagg'" "shared_buffers=$((rows / 4000 + 256))MB" "gpuagg.cache_memory=$((rows / 8000 + 128))MB" autovacuum=off jit=off work_mem=256MB \
	max_worker_processes=64 max_parallel_workers=64 "max_parallel_workers_per_gather=$((threads - 1))" gpuagg.engine=cpu ${SERVER:+"gpuagg.server_program='$SERVER'"} || exit 1
sql -c "SET client_min_messages = warning; CREATE EXTENSION gpuagg" \
	-c "CREATE TABLE t AS SELECT (h % 100)::int AS g, (1000 * ((h >> 8) % 10007 / 10007.0) ^ 4)::int AS i, ((h >> 12) % ($rows / 2 + 1))::int AS u,
		exp(((h >> 16) % 1000003) / 1000003.0::float8 * 4.6) AS x, 100 * sqrt(((h >> 20) % 1000003) / 1000003.0::float8) AS y
		FROM (SELECT abs(hashint8extended(n, 1)) AS h FROM generate_series(1::int8, $rows) n) s" \
	-c "VACUUM (FREEZE, ANALYZE) t" -c "SELECT gpuagg_cache_prewarm('t')" >/dev/null || exit 1
[[ -z $gpu ]] || pg_await_server || exit 1
if [[ -e $library ]]; then
	duck_start "$threads"
	duck_copy t
else
	echo "without DuckDB: its library is not found, see duckdb.sh"
fi

# expand QUERY GROUPED: replaces what depends on the groups
expand() {
	if [[ -n $2 ]]; then
		sed -e 's/{k,}/g,/g; s/{by}/GROUP BY g/g; s/{on}/USING (g)/g; s/{part}/PARTITION BY g/g; s/2{g+1}, 1{g+1}/2, 3/' <<<"$1"
	else
		sed -e 's/{k,}//g; s/{by}//g; s/{on}/ON true/g; s/{part}//g; s/2{g+1}, 1{g+1}/1, 2/' <<<"$1"
	fi
}

# cpu SYSTEM QUERY: prints the median of processor time in ms; the first execution does not count
cpu() {
	local r

	if [[ $1 == duckdb ]]; then
		echo "$2" >"$work/timed.sql"
		for ((r = 0; r <= repeat; r++)); do duck "$work/timed.sql"; done | awk 'NR > 1 {print $3} /^error/ {print > "/dev/stderr"}' | median
		return
	fi
	{
		echo 'SELECT pg_backend_pid() AS pid \gset'
		[[ $1 == gpuagg ]] && echo "SET gpuagg.require = require; SET gpuagg.cache = eager;" || echo "SET gpuagg.enabled = off;"
		for ((r = 0; r <= repeat; r++)); do
			# shellcheck disable=SC2016
			printf '%s\n' '\echo `cut -d" " -f1 /proc/:pid/schedstat`' "$2 \\g /dev/null" '\echo `cut -d" " -f1 /proc/:pid/schedstat`'
		done
	} | sql | awk 'NR % 2 {from = $1; next} NR > 2 {print ($1 - from) / 1e6}' | median
}

# elapsed SYSTEM QUERY: prints the median of elapsed times in ms; the first execution does not count, but of plain SQL. Of the GPU engine, "cpu" if it
# did not run the query
elapsed() {
	local r settings last=$repeat

	case $1 in
	duckdb)
		echo "$2" >"$work/timed.sql"
		for ((r = 0; r <= repeat; r++)); do duck "$work/timed.sql"; done | awk 'NR > 1 {print $2}' | median
		return ;;
	plain) settings="SET gpuagg.enabled = off" last=0 ;;
	gpuagg) settings="SET gpuagg.require = require; SET gpuagg.cache = eager" ;;
	gpu) settings="SET gpuagg.require = require; SET gpuagg.cache = eager; SET gpuagg.engine = cuda; SET max_parallel_workers_per_gather = 0" ;;
	esac
	if [[ $1 == gpu ]] && ! sql -c "$settings" -c "EXPLAIN (ANALYZE, COSTS OFF) $2" | grep -q 'Engine: cuda'; then
		echo cpu
		return
	fi
	{
		echo "$settings;"
		echo '\timing on'
		for ((r = 0; r <= last; r++)); do printf '%s\n' "$2 \\g /dev/null"; done
	} | sql | awk -v skip="$((last > 0))" '/^Time:/ && ++n > skip {print $2}' | median
}

# answer SYSTEM QUERY: prints the answer, with commas between all numbers, and sorted
answer() {
	if [[ $1 == duckdb ]]; then
		duck_sql "COPY ($2) TO '$work/answer' (FORMAT csv, HEADER false)"
		cat "$work/answer"
	else
		sql -c "SET gpuagg.enabled = $([[ $1 == gpuagg ]] && echo on || echo off)" -c "COPY ($2) TO STDOUT (FORMAT csv)"
	fi | tr -d '"[]{} ' | sort -t, -n
}

[[ -z $gpu ]] || printf '%-34s%10s%10s%10s%10s\n' "ms, $rows rows, $threads threads" plain cpu gpu DuckDB
[[ -n $gpu ]] || printf '%-34s%10s%10s%10s%14s%14s\n' "ms of processor time" plain gpuagg DuckDB plain/gpuagg DuckDB/gpuagg
while IFS=$'\x1f' read -r name plain gpuagg duckdb compared; do
	[[ $name =~ ${ONLY:-.} ]] || continue
	for grouped in "" 1; do
		[[ -z $grouped || $name != *"(no groups)" ]] || continue
		a=$(expand "$plain" "$grouped") b=$(expand "$gpuagg" "$grouped") c=$(expand "$duckdb" "$grouped")
		if [[ -n $compared ]]; then
			answer plain "$a" >"$work/expected"
			for system in gpuagg $([[ $compared != all || -z ${duck_pid:-} ]] || echo duckdb); do
				answer "$system" "$([[ $system == gpuagg ]] && echo "$b" || echo "$c")" >"$work/found"
				awk -F, -v other="$work/expected" -v absolute=1e-9 -f "$here/compare.awk" "$work/found" | cut -c1-300 || { echo "$name: another answer of $system"; status=1; }
			done
		fi
		if [[ -n $gpu ]]; then
			z=-
			[[ -z ${duck_pid:-} ]] || z=$(elapsed duckdb "$c")
			printf '%-34s%10s%10s%10s%10s\n' "$name${grouped:+, 100 groups}" "$(elapsed plain "$a")" "$(elapsed gpuagg "$b")" "$(elapsed gpu "$b")" "$z"
			continue
		fi
		x=$(cpu plain "$a") y=$(cpu gpuagg "$b") z=
		[[ -z ${duck_pid:-} ]] || z=$(cpu duckdb "$c")
		awk -v name="$name${grouped:+, 100 groups}" -v x="$x" -v y="$y" -v z="$z" 'BEGIN {printf "%-34s%10.1f%10.1f%10s%14.1f%14s\n", name, x, y, z == "" ? "-" : sprintf("%.1f", z), x / y, z == "" ? "-" : sprintf("%.1f", z / y)}'
	done
done < <(grep -v '^#' "$here/histograms.txt" | sed 's/ *| */\x1f/g')
exit $status
