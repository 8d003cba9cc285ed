#!/usr/bin/env bash
# TPC-H's 22 queries (tpch.txt) over generated tables: PostgreSQL, gpuagg from heap pages, gpuagg from the warm column cache, and DuckDB on
# its own copy in memory, in one run, with PostgreSQL's names of aggregates and gpuagg.replace_builtin.
#
#	test/bench/tpch.sh [option]...
#
#	--sf X				scale factor (default 1, at least 0.01): lineitem has 6 million * X rows; a row takes about 0.2 kB in PostgreSQL
#						with the other tables' share
#	--rows N			rows of lineitem, in place of --sf
#
# All other options of hits.sh, and the same columns. "plan" has "+joins" where gpuagg executes joins too. This is not a TPC-H result: the
# generator is another one, and only the queries' times are measured.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
title=tpch table=lineitem tables="lineitem orders customer partsupp part supplier nation region" parallel="lineitem orders customer partsupp part"
joins=1 rows=6000000 row_bytes=400
# shellcheck source=test/bench/systems.sh
source "$here/systems.sh"
while [[ $# -gt 0 ]]; do
	systems_option "$1" "${2:-}"
	[[ $1 != --sf ]] || { rows=$(awk -v x="${2:-}" 'BEGIN {printf "%d", 6e6 * x}') && option_words=2; }
	((option_words > 0)) || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2; }
	shift $((option_words < $# ? option_words : $#))
done
((rows >= 60000)) || { echo "--sf must be at least 0.01" >&2 && exit 2; }
# seven orders have 28 lines
orders=$((rows / 28 * 7))
rows=$((orders * 4))

# expand QUERY: replaces {fraction} by 0.0001 divided by the scale factor
expand() {
	awk -v x="$rows" '{sub(/\{fraction\}/, sprintf("%.10f", 0.0001 / (x / 6e6))); print}' <<<"$1"
}

export PGOPTIONS="${PGOPTIONS:-} -c search_path=gpuagg_tpch,public"
systems_start
if [[ $(sql -c "SELECT count(*) FROM lineitem" 2>/dev/null) != "$rows" ]]; then
	sizes=("customers=$((rows / 40))" "suppliers=$((rows / 600))" "parts=$((rows / 30))")
	sql -c "SET client_min_messages = warning" -f "$here/tpch.sql" || exit 1
	sql -v "${sizes[0]}" -v "${sizes[1]}" -v "${sizes[2]}" -f "$here/tpch_dimensions.sql" || exit 1
	fill_concurrently "$here/tpch_rows.sql" "$orders" "${sizes[@]}"
	sql -f "$here/tpch_keys.sql" || exit 1
fi
systems_run "$here/tpch.txt" " queries"
