#!/usr/bin/env bash
# db-benchmark's ten questions about grouping (groupby.txt) over a generated table of three text keys, three integer keys and three values:
# PostgreSQL, gpuagg from heap pages, gpuagg from the warm column cache, and DuckDB on its own copy in memory, in one run, with PostgreSQL's
# names of aggregates and gpuagg.replace_builtin.
#
#	test/bench/groupby.sh [option]...
#
#	--rows N			rows of the table (default 1000000); a row takes about 0.1 kB in PostgreSQL, and as much again in the caches
#	--groups K			values of id1, id2, id4 and id5 (default 100); id3 and id6 have N / K
#
# All options of hits.sh but --no-ties, and the same columns. All systems discard the rows of the answers as they come: those of the tenth
# question are about as many as the table's. To compare such answers takes much longer than to measure; --no-answers omits it.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
title=groupby table=gpuagg_bench_groupby rows=1000000 row_bytes=110 discard=1 groups=100
# shellcheck source=test/bench/systems.sh
source "$here/systems.sh"
ties=
while [[ $# -gt 0 ]]; do
	systems_option "$1" "${2:-}"
	case $1 in
	--groups) groups=${2:-} option_words=2 ;;
	--no-ties) option_words=0 ;;
	esac
	((option_words > 0)) || { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2; }
	shift $((option_words < $# ? option_words : $#))
done
((groups > 0 && groups <= rows)) || { echo "--groups must be between 1 and the number of rows" >&2 && exit 2; }
title+=" by $groups"

# expand QUERY: prints the query, which has no placeholders
expand() {
	echo "$1"
}

systems_start
sql -c "SET client_min_messages = warning" -f "$here/groupby.sql" || exit 1
[[ $(sql -c "SELECT max(id4) FROM gpuagg_bench_groupby") == "$groups" ]] || sql -c "TRUNCATE gpuagg_bench_groupby" || exit 1
systems_fill "$here/groupby_rows.sql" "groups=$groups"
systems_run "$here/groupby.txt" " questions"
