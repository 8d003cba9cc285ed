#!/usr/bin/env bash
# Compares PostgreSQL's aggregates, gpuagg from heap pages, gpuagg from the warm column cache, and DuckDB on its own copy of the rows in
# memory, for the standard queries.
#
#	test/bench/duckdb.sh [--threads N] [--library FILE] [option of bench.sh]...
#
#	--threads N		threads of DuckDB, and processes per query of PostgreSQL (default 1)
#	--library FILE	DuckDB's library (default: $DUCKDB_LIBRARY, or node_modules in this folder, in the source tree or in the current folder)
#
# The last columns are DuckDB's time divided by the others: above 1, DuckDB is slower. Answers are compared with PostgreSQL's, numbers
# within 1e-9. DuckDB's time ends when the result is in its memory.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
threads=1 library=${DUCKDB_LIBRARY:-} args=()
while [[ $# -gt 0 ]]; do
	case $1 in
	--threads) threads=$2 && shift 2 ;;
	--library) library=$2 && shift 2 ;;
	--cpu-time) args+=("$1") && shift ;;
	--help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2 ;;
	*) args+=("$1" "${2:-}") && shift $(($# > 1 ? 2 : 1)) ;;
	esac
done
# shellcheck source=test/bench/library.sh
source "$here/library.sh"
if [[ ! -e $library ]]; then
	echo "libduckdb.so is not found. The npm package @duckdb/node-bindings-linux-x64 has it:
	npm install --no-save @duckdb/node-bindings-linux-x64
or unpack a release of DuckDB, and give the file with --library." >&2
	exit 1
fi
if ((threads == 1)); then
	"$here/bench.sh" --library "$library" --configs core,cpu,cpu-cache,duckdb --base duckdb ${args[@]+"${args[@]}"}
else
	"$here/bench.sh" --library "$library" --workers $((threads - 1)) --base duckdb-parallel \
		--configs core-parallel,cpu-parallel,cpu-cache-parallel,duckdb-parallel ${args[@]+"${args[@]}"}
fi
