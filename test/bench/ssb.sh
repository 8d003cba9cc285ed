#!/usr/bin/env bash
# The Star Schema Benchmark's 13 queries (ssb.txt) over generated tables: a fact table and four dimensions. PostgreSQL, gpuagg from heap
# pages, gpuagg from the warm column cache, and DuckDB on its own copy in memory, in one run, with PostgreSQL's names of aggregates and
# gpuagg.replace_builtin.
#
#	test/bench/ssb.sh [option]...
#
#	--sf X				scale factor (default 1): lineorder has 6 million * X rows; one takes about 0.13 kB in PostgreSQL
#	--rows N			rows of lineorder, in place of --sf
#
# All other options of hits.sh, and the same columns. "plan" has "+joins" where gpuagg executes the joins too. Rows of the dimensions:
# customer 30,000 * X, supplier 2,000 * X, part 200,000 * floor(1 + log2 X), or 200,000 * X where X is below 1, dates 2,556. They are at
# least 250, 250 and 1,000.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
title=ssb table=lineorder tables="lineorder customer supplier part dates" joins=1 rows=6000000 row_bytes=150
# shellcheck source=test/bench/systems.sh
source "$here/systems.sh"
while [[ $# -gt 0 ]]; do
	systems_option "$1" "${2:-}"
	[[ $1 != --sf ]] || { rows=$(awk -v x="${2:-}" 'BEGIN {printf "%d", 6e6 * x}') && option_words=2; }
	((option_words > 0)) || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2; }
	shift $((option_words < $# ? option_words : $#))
done
((rows > 0)) || { echo "--sf must be above 0" >&2 && exit 2; }

# expand QUERY: prints the query, which has no placeholders
expand() {
	echo "$1"
}

# prints the numbers of customers, suppliers and parts for a number of rows
dimension_rows() {
	awk -v x="$rows" 'function least(n, m) {return n < m ? m : int(n)}
		BEGIN {x /= 6e6; print least(30000 * x, 250), least(2000 * x, 250), least(x < 1 ? 200000 * x : 200000 * int(1 + log(x) / log(2) + 1e-9), 1000)}'
}

export PGOPTIONS="${PGOPTIONS:-} -c search_path=gpuagg_ssb,public"
systems_start
sql -c "SET client_min_messages = warning" -f "$here/ssb.sql" || exit 1
read -r customers suppliers parts < <(dimension_rows)
if [[ $(sql -c "SELECT count(*), (SELECT count(*) FROM part) FROM lineorder") != "$rows|$parts" ]]; then
	sql -v "customers=$customers" -v "suppliers=$suppliers" -v "parts=$parts" -f "$here/ssb_dimensions.sql" || exit 1
	sql -c "TRUNCATE lineorder" || exit 1
	systems_fill "$here/ssb_rows.sql" "customers=$customers" "suppliers=$suppliers" "parts=$parts"
fi
systems_run "$here/ssb.txt" " queries"
