#!/usr/bin/env bash
# Compares gpuagg with PostgreSQL's own aggregates over tables of 100 columns, in a private cluster: sums and groups over late columns (90
# to 99) of each type and over early ones (5 to 9), and count(*), with NULLs in some columns, in all, and in none.
#
#	test/bench/wide.sh [--rows N] [option of bench.sh]...
#
#	--rows N	rows of each table (default 300000)
#
# bench.sh compares answers, measures and prints times, with one process per query unless --configs is given.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rows=300000 args=()
while [[ $# -gt 0 ]]; do
	case $1 in
	--rows) rows=$2 && shift 2 ;;
	*) args+=("$1") && shift ;;
	esac
done
# shellcheck source=test/pg.sh
source "$here/../pg.sh"
trap pg_stop EXIT
pg_need && pg_install || exit 1
pg_start "shared_preload_libraries='gpuagg'" shared_buffers=1500MB autovacuum=off checkpoint_timeout=1h || exit 1
psql -XqAt -v ON_ERROR_STOP=1 -v rows="$rows" -f "$here/wide.sql" >/dev/null || exit 1
psql -XqAt -c "SELECT format('%s rows of 100 columns, ', $rows) || string_agg(pg_size_pretty(pg_relation_size(oid)), ', ' ORDER BY oid)
	FROM pg_class WHERE relname LIKE 'gpuagg\_wide%'"
"$here/bench.sh" --rows "$rows" --queries "$here/wide.txt" --configs core,cpu ${args[@]+"${args[@]}"}
