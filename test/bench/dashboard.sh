#!/usr/bin/env bash
# Measures the queries of a dashboard over flights (dashboard.sql), with PostgreSQL's names of aggregates, in one process each:
# PostgreSQL, gpuagg where the planner chooses it (gpuagg.replace_builtin, from heap pages and from the warm column cache), and DuckDB on
# its own copy in memory if its library is found. Prints which queries gpuagg did not execute, and why.
#
#	test/bench/dashboard.sh [--rows N] [--library FILE] [option of bench.sh]...
#
#	--rows N		number of flights (default 3000000)
#	--library FILE	DuckDB's library, see duckdb.sh
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rows=3000000 args=() duck=
library=${DUCKDB_LIBRARY:-}
while [[ $# -gt 0 ]]; do
	case $1 in
	--rows) rows=$2 && shift 2 ;;
	--library) library=$2 && shift 2 ;;
	--cpu-time) args+=("$1") && shift ;;
	--help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2 ;;
	*) args+=("$1" "${2:-}") && shift $(($# > 1 ? 2 : 1)) ;;
	esac
done
# shellcheck source=test/bench/library.sh
source "$here/library.sh"
[[ ! -e $library ]] || duck=,duckdb
exec "$here/bench.sh" --queries "$here/dashboard.sql" --rows $((rows * 4)) --library "$library" \
	--configs "core,builtin,builtin-cache$duck" ${args[@]+"${args[@]}"}
