#!/usr/bin/env bash
# ClickBench's 43 queries (hits.txt) over a generated table of web hits with its 105 columns (hits.sql, hits_rows.sql): PostgreSQL, gpuagg
# from heap pages, gpuagg from the warm column cache, and DuckDB on its own copy in memory, in one run, with PostgreSQL's names of
# aggregates and gpuagg.replace_builtin.
#
#	test/bench/hits.sh [option]...
#
#	--rows N			rows of the table (default 1000000); a row takes about 0.6 kB in PostgreSQL, and as much again in the caches
#	--processes N,M,...	numbers of processes per query of PostgreSQL, and threads of DuckDB (default 1)
#	--repeat N			executions per query and system that count (default 5)
#	--systems a,b,...	some of core, pages, warm, gpu, duckdb (default: all but gpu); DuckDB only if its library is found; gpu: as warm, and
#						the planner chooses the engine, so the first execution uploads columns
#	--only N,M,...		only the queries of these numbers
#	--set name=value	a setting for all systems but DuckDB, e.g. gpuagg.engine=cuda
#	--planned			the planner chooses the number of processes, up to that of --processes; otherwise the table asks for all of them
#	--no-ties			measures the queries without the columns that make the order of answers definite; answers are compared with them
#	--no-answers		does not compare answers
#	--no-prewarm		columns enter the cache by the queries, not by gpuagg_cache_prewarm()
#	--cpu-time			measures processor time: of the session's process, so for one process, or of all threads of DuckDB
#	--limit X			lists queries that take more than X times DuckDB's time from the cache (default 1.5)
#	--times FILE		writes the times to a file: number of the query, system, processes, milliseconds
#	--library FILE		DuckDB's library, see duckdb.sh
#	PGHOST				if set, runs in this running server, which must preload the extension, and keeps the table there
#
# Times are medians in ms, as psql sees them, and as DuckDB's interface does. "plan" is the number of processes of the plan for the warm
# cache, or "core" if gpuagg does not execute the query. Numbers of rows in the queries, as in HAVING count(*) > 100000, are for 100 M rows,
# and here in proportion. The exit status is 0 if all answers are equal, numbers within 1e-9.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
title=hits table=gpuagg_bench_hits rows=1000000 row_bytes=650
# shellcheck source=test/bench/systems.sh
source "$here/systems.sh"
while [[ $# -gt 0 ]]; do
	systems_option "$1" "${2:-}"
	((option_words > 0)) || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2; }
	shift $((option_words < $# ? option_words : $#))
done

# expand QUERY: replaces {sums} by 90 sums of a column plus a number, and {N} by N in proportion to the rows of the table, at least 1
expand() {
	awk -v rows="$rows" '{
		for (i = 0; i < 90; i++)
			sums = sums (i ? ", sum(resolutionwidth + " i ")" : "sum(resolutionwidth)")
		sub(/\{sums\}/, sums)
		while (match($0, /\{[0-9]+\}/)) {
			n = int(substr($0, RSTART + 1, RLENGTH - 2) * rows / 1e8)
			$0 = substr($0, 1, RSTART - 1) (n > 1 ? n : 1) substr($0, RSTART + RLENGTH)
		}
		print
	}' <<<"$1"
}

systems_start
sql -c "SET client_min_messages = warning" -f "$here/hits.sql" || exit 1
systems_fill "$here/hits_rows.sql"
systems_run "$here/hits.txt" " that aggregate"
