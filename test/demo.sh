#!/usr/bin/env bash
# Demonstrates gpuagg on real data, 230,770 flights (make demo).
#
#	test/demo.sh
#
#	COPIES		how many times the flights are repeated (default 13)
#	PGHOST		if set, the demonstration runs in a new database of this running server, which must preload the extension. Default:
#				a private cluster. Both are removed at the end
#	PG_CONFIG	the PostgreSQL for the private cluster
#
# Each answer is compared with that of PostgreSQL's own aggregates. The exit status is 0 if all are equal.
set -uo pipefail
copies=${COPIES:-13}
work=$(mktemp -d)
bold= plain=
[[ ! -t 1 ]] || bold=$(tput bold 2>/dev/null) plain=$(tput sgr0 2>/dev/null)
status=0

sql() {
	psql -Xq -v ON_ERROR_STOP=1 "$@"
}

heading() {
	printf '\n%s%s%s\n' "$bold" "$*" "$plain"
}

# time_of QUERY: prints the least of three execution times in ms; rows are discarded
time_of() {
	sql -At <<-SQL | awk '/^Time:/ {if (best == "" || $2 < best) best = $2} END {printf "%.0f", best}'
		$settings
		\\timing on
		\\o /dev/null
		$1;
		$1;
		$1;
	SQL
}

# show TITLE QUERY PRINTED: runs QUERY with gpuagg's and with PostgreSQL's aggregates, compares answers, and prints times. In QUERY,
# "agg:" is written before each aggregate. The query PRINTED selects from "answer" the rows to print.
show() {
	local title=$1 ours=${2//agg:/gpu_} core=${2//agg:/} printed=$3 a b

	heading "$title"
	sed 's/^/    /' <<<"$ours;"
	echo
	sql -P footer=off -c "WITH answer AS ($ours) $printed"
	sql -At -c "$settings" -c "EXPLAIN (COSTS OFF) $ours" | sed 's/^/    /'
	sql -At -c "SELECT * FROM ($ours) s ORDER BY s::text" >"$work/ours"
	sql -At -c "SELECT * FROM ($core) s ORDER BY s::text" >"$work/core"
	a=$(time_of "$core")
	b=$(time_of "$ours")
	echo
	if cmp -s "$work/ours" "$work/core"; then
		printf '    %s rows, all equal to PostgreSQL'\''s.' "$(wc -l <"$work/ours")"
	else
		printf '    THE ANSWERS DIFFER.'
		status=1
	fi
	printf '  core %s ms, gpuagg %s ms: %s%s times as fast%s\n' "$a" "$b" "$bold" \
		"$(awk -v a="$a" -v b="$b" 'BEGIN {printf "%.1f", a / (b > 0 ? b : 1)}')" "$plain"
}

# Waits until the GPU server has started or has found no GPU, and prints which engine is used.
await_gpu() {
	local state=

	for _ in $(seq 100); do
		state=$(sql -At -c "SELECT state FROM gpuagg_devices() LIMIT 1")
		[[ $state != ready && -e /dev/nvidiactl ]] || break
		sleep 0.2
	done
	if [[ $state == ready ]]; then
		sql -At -c "SELECT format('    On the GPU: %s, %s, driver %s.', name, pg_size_pretty(memory), driver) FROM gpuagg_devices()"
	else
		echo "    On the CPU: no GPU is in use."
	fi
}

if [[ -n ${PGHOST:-} ]]; then
	top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
	trap 'PGDATABASE=postgres sql -c "DROP DATABASE gpuagg_demo"; rm -rf "$work"' EXIT
	PGDATABASE=postgres sql -c "CREATE DATABASE gpuagg_demo" || exit 1
	export PGDATABASE=gpuagg_demo
else
	# shellcheck source=test/pg.sh
	source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
	trap 'pg_stop; rm -rf "$work"' EXIT
	echo "Building gpuagg and starting a private PostgreSQL ..."
	pg_need && pg_install || exit 1
	pg_start "shared_preload_libraries='gpuagg'" shared_buffers=1GB work_mem=64MB jit=off || exit 1
fi
# Both run in one process, so that the times do not depend on the number of free cores.
settings="SET max_parallel_workers_per_gather = 0;"

sql <<-SQL
	SELECT format('ALTER DATABASE %I SET max_parallel_workers_per_gather = 0', current_database()) \gexec
	CREATE EXTENSION gpuagg;
	CREATE TABLE loaded (date timestamp, delay int, distance int, origin text, destination text);
SQL
zcat "$top/test/data/flights.csv.gz" | sql -c "\\copy loaded FROM STDIN (FORMAT csv, HEADER)" || exit 1
sql <<-SQL || exit 1
	CREATE TABLE flights AS
	SELECT date + copy * interval '181 days' AS date, delay, distance, origin, destination
	FROM generate_series(0, $copies - 1) copy, loaded;
	VACUUM (FREEZE, ANALYZE) flights;
SQL
heading "The table"
echo "    United States domestic flights of 2001, repeated $copies times over later years:"
sql -P footer=off -c "SELECT count(*) AS flights, pg_size_pretty(pg_relation_size('flights')) AS size,
	min(date)::date AS first, max(date)::date AS last FROM flights"
await_gpu
echo "    Each query below runs twice: with gpu_count, gpu_avg, ... and with PostgreSQL's count, avg, ..."
echo "    Times are the best of three runs. From the second run on, gpuagg reads the column cache."

show "1. Which airports are the worst?" \
	"SELECT origin, agg:count(*) AS flights, agg:avg(delay) AS delay, agg:max(delay) AS worst
FROM flights GROUP BY origin" \
	"SELECT origin, flights, round(delay, 1) AS \"average delay\", worst FROM answer
	WHERE flights > 1000 ORDER BY delay DESC LIMIT 6"

show "2. When should one fly?" \
	"SELECT date_part('hour', date)::int AS hour, agg:count(*) AS flights, agg:avg(delay) AS delay,
       agg:stddev(delay) AS spread
FROM flights GROUP BY 1" \
	"SELECT hour, flights, round(delay, 1) AS \"average delay\", round(spread, 1) AS spread,
	repeat('#', greatest(0, round(delay)::int)) AS bar FROM answer WHERE hour BETWEEN 5 AND 23 ORDER BY hour"

show "3. How did it go day by day?" \
	"SELECT date::date AS day, agg:count(*) AS flights, agg:sum(distance) AS miles,
       agg:count(*) FILTER (WHERE delay > 60) AS late
FROM flights GROUP BY 1" \
	"SELECT day, to_char(day, 'Day') AS weekday, flights, miles, late FROM answer
	WHERE day < '2001-07-01' ORDER BY late DESC, day LIMIT 5"

heading "4. How are delays distributed?  A histogram in one pass"
histogram="SELECT gpu_histogram(delay, -60, 180, 24) FROM flights"
echo "    SELECT * FROM gpu_histogram_bins(-60, 180, ($histogram));"
echo
sql -P footer=off -c "SELECT bin, round(lower::numeric, 6) AS lower, round(upper::numeric, 6) AS upper, count, bar
	FROM gpu_histogram_bins(-60, 180, ($histogram))"
sql -At -c "EXPLAIN (COSTS OFF) $histogram" | sed 's/^/    /'
core_histogram="SELECT width_bucket(delay, -60, 180, 24) AS bin, count(*) FROM flights WHERE delay IS NOT NULL GROUP BY 1"
sql -At -c "SELECT bin, count FROM gpu_histogram_bins(-60, 180, ($histogram)) WHERE count > 0 ORDER BY 1" >"$work/ours"
sql -At -c "$core_histogram ORDER BY 1" >"$work/core"
a=$(time_of "$core_histogram")
b=$(time_of "$histogram")
echo
if cmp -s "$work/ours" "$work/core"; then
	printf '    Every bin is equal to that of PostgreSQL'\''s width_bucket with GROUP BY.'
else
	printf '    THE ANSWERS DIFFER.'
	status=1
fi
printf '  core %s ms, gpuagg %s ms: %s%s times as fast%s\n' "$a" "$b" "$bold" \
	"$(awk -v a="$a" -v b="$b" 'BEGIN {printf "%.1f", a / (b > 0 ? b : 1)}')" "$plain"

heading "The end"
if [[ $status == 0 ]]; then
	echo "    All answers were equal to PostgreSQL's. Its database or private cluster is removed."
else
	echo "    Some answers differ from PostgreSQL's: this is a bug." >&2
fi
echo "    README.md says how to install gpuagg into a server of your own."
exit $status
