#!/usr/bin/env bash
# Core's aggregates, gpuagg from heap pages, gpuagg from the warm column cache, and DuckDB on
# its own copy of the same rows in memory: the standard queries, side by side in one run.
#
#	test/bench/duckdb.sh [--rows N] [--threads N] [--repeat N] [--library PATH] [option of bench.sh]...
#
# --threads N gives DuckDB N threads and PostgreSQL N processes a query (default: 1).  The last
# columns are DuckDB's time divided by theirs: above 1, DuckDB is slower.  Answers are compared with
# core's, numbers within 1e-9.  DuckDB's time ends with the result in its memory.
#
# Needs DuckDB's library: --library, $DUCKDB_LIBRARY, or node_modules of this folder, of the
# source tree or of the current one.
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
	echo "No libduckdb.so.  The npm package @duckdb/node-bindings-linux-x64 has it:
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
