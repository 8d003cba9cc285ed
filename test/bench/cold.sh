#!/usr/bin/env bash
# Compares gpuagg with PostgreSQL's own aggregates over tables that are not in memory. Before each query the server is restarted, and the
# kernel drops the cached pages of the tables.
#
#	test/bench/cold.sh [--rows N] [--repeat N] [--workers N] [--queries FILE]
#
#	--rows N		rows of the standard table (default 2000000)
#	--repeat N		executions per query (default 5)
#	--workers N		parallel workers of both (default 0)
#	--queries FILE	queries in the form of queries.txt, the default
#
# Prints the median times and their ratio. Does not compare answers; bench.sh does.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rows=2000000 repeat=5 workers=0 queries=$here/queries.txt
while [[ $# -gt 0 ]]; do
	case $1 in
	--rows) rows=$2 ;;
	--repeat) repeat=$2 ;;
	--workers) workers=$2 ;;
	--queries) queries=$2 ;;
	*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2 ;;
	esac
	shift 2
done
work=$(mktemp -d)
# shellcheck source=test/pg.sh
source "$here/../pg.sh"
trap 'pg_stop; rm -rf "$work"' EXIT
pg_need && pg_install || exit 1
pg_start "shared_preload_libraries='gpuagg'" shared_buffers=128MB autovacuum=off checkpoint_timeout=1h || exit 1
# fill the tables
"$here/bench.sh" --rows "$rows" --repeat 1 --queries "$queries" --configs core >"$work/fill" || { cat "$work/fill"; exit 1; }

# Removes the tables from the memory of the server and of the kernel.
drop_caches() {
	local file

	(cd "$pg_root" && as_pg pg_ctl -D "$pg_root/data" -l "$pg_root/log" -m fast -w restart >/dev/null) || exit 1
	while read -r file; do
		for file in "$pg_root/data/$file"*; do
			dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 status=none
		done
	done <"$work/files"
}

# run CONFIG QUERY: appends the time of a query in ms to $work/CONFIG.ms. The first statement loads catalogs, which are not cached either.
run() {
	local sets="SET jit = off; SET work_mem = '256MB'; SET max_parallel_workers_per_gather = $workers;
		SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;" query=$2

	case $1 in
	core) sets+="SET gpuagg.enabled = off;" query=${query//agg:/} ;;
	cpu) sets+="SET gpuagg.require = 'require'; SET gpuagg.engine = 'cpu';" query=${query//agg:/gpu_} ;;
	esac
	drop_caches
	psql -XqAt -v ON_ERROR_STOP=1 <<-EOF | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' >>"$work/$1.ms"
		$sets
		EXPLAIN SELECT count(s) FROM ($query OFFSET 0) s \g /dev/null
		\timing on
		SELECT count(s) FROM ($query OFFSET 0) s \g /dev/null
	EOF
}

median() {
	sort -n "$work/$1.ms" | awk '{a[NR] = $1} END {print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2}'
}

psql -XqAt -c "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relname LIKE 'gpuagg\_bench%'" >"$work/files"
echo "gpuagg, cold: $rows rows, $workers workers, $(psql -XqAt -c "SELECT split_part(version(), ' (', 1)"), median of $repeat"
printf '%-26s%15s%15s%16s\n' milliseconds core cpu 'cpu x'
while IFS='|' read -r name query _; do
	rm -f "$work"/*.ms
	for ((r = 0; r < repeat; r++)); do
		run core "$query" && run cpu "$query" || exit 1
	done
	core=$(median core) cpu=$(median cpu)
	printf '%-26s%15.1f%15.1f%16s\n' "$(xargs <<<"$name")" "$core" "$cpu" \
		"$(awk -v a="$core" -v b="$cpu" 'BEGIN {printf "%.2f", a / b}')"
done < <(grep -v '^#' "$queries")
