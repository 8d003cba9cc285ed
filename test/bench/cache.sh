#!/usr/bin/env bash
# Measures the cost and the gain of the column cache, in a private cluster, with one process per query.
#
#	test/bench/cache.sh [--rows N] [--repeat N] [--settle SECONDS] [--parts a,b,...]
#
#	--rows N			rows of the standard table (default 2000000)
#	--repeat N			executions per measurement (default 5)
#	--settle SECONDS	time for the refresh of changed ranges after each change of dml (default 5)
#	--parts a,b,...		measurements (default: all of the following)
#
#	first	each standard query with gpuagg.cache off, and its first (cold), second (filling) and third (warm) execution
#	bytes	bytes per row of the cache and of the heap, for the tables of these queries
#	dml		a table that is loaded and not vacuumed, vacuumed, 1 % updated, 1 % appended, vacuumed again: the heap feed, the first query
#			after each change, and a warm one; answers are compared with PostgreSQL's
#	wide	late columns of a table of 100 columns: PostgreSQL, the heap feed, the cache
#	pgbench	TPC-B without the library, and with it and with cached accounts, in turn
#	proof	the cost of proving that a block is unchanged, by the visibility map and by pages, extrapolated to 1 TB
#
# Times are medians of the CPU time of the query's process in ms, on which other processes have less influence.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rows=2000000 repeat=5 settle=5 parts=first,bytes,dml,wide,pgbench,proof
while [[ $# -gt 0 ]]; do
	case $1 in
	--rows) rows=$2 ;;
	--repeat) repeat=$2 ;;
	--settle) settle=$2 ;;
	--parts) parts=$2 ;;
	*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2 ;;
	esac
	shift 2
done
work=$(mktemp -d)
# shellcheck source=test/pg.sh
source "$here/../pg.sh"
trap 'pg_stop; rm -rf "$work"' EXIT
pg_need && pg_install || exit 1
pg_start "shared_preload_libraries='gpuagg'" shared_buffers=2GB gpuagg.cache_memory=1GB autovacuum=off \
	checkpoint_timeout=1h || exit 1

psql -Xqc 'CREATE EXTENSION gpuagg' || exit 1

# has_part NAME: succeeds if the measurement was chosen
has_part() {
	[[ ,$parts, == *,$1,* ]]
}

sql() {
	psql -XqAt -v ON_ERROR_STOP=1 "$@" || exit 1
}

median() {
	sort -n | awk '{a[NR] = $1} END {print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2}'
}

ratio() {
	awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f", b ? a / b : 0}'
}

settings="SET jit = off; SET work_mem = '256MB'; SET max_parallel_workers_per_gather = 0;
	SET gpuagg.require = 'require'; SET gpuagg.engine = 'cpu';"

# timed NAME QUERY: prints lines for psql that run a query and print the CPU times before and after it
timed() {
	cat <<-EOF
		\\set from \`cut -d" " -f1 /proc/:pid/schedstat\`
		SELECT count(s) FROM ($2 OFFSET 0) s \\g /dev/null
		\\set to \`cut -d" " -f1 /proc/:pid/schedstat\`
		\\echo $1: :from :to
	EOF
}

# Runs the lines on standard input in one session. The CPU times of each NAME go to $work/NAME.ms.
session() {
	{
		echo "$settings"
		echo 'SELECT pg_backend_pid() AS pid \gset'
		cat
	} | sql | awk -v work="$work" '/^[a-z0-9_]+: / {sub(":", "", $1); print ($3 - $2) / 1e6 > (work "/" $1 ".ms")}'
}

# ms NAME: prints the median of the times of NAME
ms() {
	median <"$work/$1.ms"
}

# compare QUERY KEYS: prints a message if the answers with and without the cache differ; the first KEYS columns are keys
compare() {
	local order='' i

	for ((i = 1; i <= $2; i++)); do order+=${order:+, }$i; done
	sql -c "SET gpuagg.enabled = off" -c "COPY (${1//agg:/} ${order:+ORDER BY $order}) TO STDOUT (FORMAT csv)" >"$work/core.csv"
	sql -c "$settings" -c "COPY (${1//agg:/gpu_} ${order:+ORDER BY $order}) TO STDOUT (FORMAT csv)" >"$work/cache.csv"
	awk -F, -v other="$work/core.csv" -f "$here/compare.awk" "$work/cache.csv" || echo "the answer is not PostgreSQL's: $1"
}

tables="gpuagg_bench gpuagg_bench_flights gpuagg_bench_lineitem"
evict=$(printf "SELECT gpuagg_cache_evict('%s');\n" $tables)
# Prints the lines of queries.txt for `while IFS='|' read -r name query keys`.
queries() {
	grep -v '^#' "$here/queries.txt" | sed 's/ *| */|/g'
}
machine="$(nproc) cores, $(sql -c "SELECT split_part(version(), ' (', 1)"), median of $repeat, ms of CPU time"

if has_part first || has_part bytes || has_part dml; then
	# fill the tables
	"$here/bench.sh" --rows "$rows" --repeat 1 --configs core >"$work/fill" || { cat "$work/fill"; exit 1; }
	echo "gpuagg column cache: $rows rows, $machine"
fi

if has_part first; then
	printf '\n%-26s%12s%12s%12s%12s%12s\n' '' 'cache off' first filling warm 'first/off'
	while IFS='|' read -r name query _; do
		query=${query//agg:/gpu_}
		{
			echo 'SET gpuagg.cache = off;'
			timed unused "$query"
			for ((r = 0; r < repeat; r++)); do
				echo "$evict SET gpuagg.cache = off;"
				timed off "$query"
				echo 'SET gpuagg.cache = on;'
				timed first "$query"
				timed filling "$query"
				timed warm "$query"
			done
		} | session
		printf '%-26s%12.1f%12.1f%12.1f%12.1f%12s\n' "$name" "$(ms off)" "$(ms first)" "$(ms filling)" "$(ms warm)" \
			"$(ratio "$(ms first)" "$(ms off)")"
	done < <(queries)
fi

if has_part bytes; then
	while IFS='|' read -r _ query _; do
		sql -c "$settings SET gpuagg.cache = eager" -c "SELECT count(s) FROM (${query//agg:/gpu_} OFFSET 0) s" >/dev/null
	done < <(queries)
	printf '\n%-26s%12s%12s%14s%14s  %s\n' 'bytes per row' cache heap 'cache, MB' 'heap, MB' columns
	sql -F '|' -c "SELECT relation, sum(bytes) / max(rows), pg_relation_size(relation) / max(rows)::float8,
			sum(bytes) / 1e6, pg_relation_size(relation) / 1e6,
			string_agg(coalesce(\"column\", 'proofs') || ' ' || round(bytes / rows::numeric, 2), ', ' ORDER BY bytes DESC)
		FROM (SELECT *, max(rows) OVER (PARTITION BY relation) AS n FROM gpuagg_cache WHERE relation IS NOT NULL) c
		WHERE rows > 0 GROUP BY relation ORDER BY relation::text" |
		while IFS='|' read -r name cache heap mb heap_mb columns; do
			printf '%-26s%12.1f%12.1f%14.1f%14.1f  %s\n' "$name" "$cache" "$heap" "$mb" "$heap_mb" "$columns"
		done
fi

# dml_state TITLE: measures queries 1, 3, 5 and 8 in one state of the table of dml
dml_state() {
	local name query keys

	while IFS='|' read -r name query keys; do
		query=${query//gpuagg_bench/gpuagg_bench_dml}
		{
			echo 'SET gpuagg.cache = off;'
			timed unused "${query//agg:/gpu_}"
			echo 'SET gpuagg.cache = on;'
			timed next "${query//agg:/gpu_}"
			timed unused "${query//agg:/gpu_}"
			echo "SELECT pg_sleep($settle) \\g /dev/null"
			timed unused "${query//agg:/gpu_}"
			for ((r = 0; r < repeat; r++)); do
				echo 'SET gpuagg.cache = off;'
				timed off "${query//agg:/gpu_}"
				echo 'SET gpuagg.cache = on;'
				timed warm "${query//agg:/gpu_}"
			done
		} | session
		compare "$query" "$keys"
		printf '%-34s%-26s%12.1f%12.1f%12.1f%12s\n' "$1" "$name" "$(ms off)" "$(ms next)" "$(ms warm)" \
			"$(ratio "$(ms warm)" "$(ms off)")"
	done < <(queries | grep '^[1358] ')
}

if has_part dml; then
	sql -c "$evict" >/dev/null
	sql -c 'CREATE TABLE gpuagg_bench_dml (LIKE gpuagg_bench)'
	sql -c 'INSERT INTO gpuagg_bench_dml SELECT * FROM gpuagg_bench'
	printf '\n%-34s%-26s%12s%12s%12s%12s\n' '' '' 'cache off' next warm 'warm/off'
	dml_state 'loaded, not vacuumed'
	sql -c 'VACUUM (FREEZE, ANALYZE) gpuagg_bench_dml'
	dml_state 'vacuumed'
	sql -c 'UPDATE gpuagg_bench_dml SET v1 = v1 + 1 WHERE random() < 0.01'
	dml_state '1 % updated at random'
	sql -c "INSERT INTO gpuagg_bench_dml SELECT * FROM gpuagg_bench LIMIT $((rows / 100))"
	dml_state '1 % appended'
	sql -c 'VACUUM (ANALYZE) gpuagg_bench_dml'
	dml_state 'vacuumed again'
	sql -c 'DROP TABLE gpuagg_bench_dml'
fi

if has_part wide; then
	sql -v rows=300000 -f "$here/wide.sql" >/dev/null
	grep -E '^some (sums of 90|sum|max|by)' "$here/wide.txt" | grep -v 'sums of 5\|by c7' >"$work/wide.txt"
	echo
	"$here/bench.sh" --rows 300000 --repeat "$repeat" --queries "$work/wide.txt" --configs core,cpu,cpu-cache --cpu-time
	sql -c 'DROP TABLE gpuagg_wide, gpuagg_wide_nulls, gpuagg_wide_filled'
fi

# ---- pgbench ---------------------------------------------------------------------

# restart LIBRARIES: restarts the server with these shared_preload_libraries
restart() {
	(cd "$pg_root" && as_pg pg_ctl -D "$pg_root/data" -l "$pg_root/log" -m fast -w \
		-o "-c shared_preload_libraries='$1'" restart >/dev/null) || exit 1
}

# Prints the CPU time of the server's processes that have ended, in ticks.
ended_ticks() {
	sed 's/.*) //' "/proc/$(head -1 "$pg_root/data/postmaster.pid")/stat" | awk '{print $14 + $15}'
}

# pgbench_round LIBRARIES: prints the transactions per second, and the CPU time per transaction in microseconds
pgbench_round() {
	local from

	restart "$1"
	sql -c 'VACUUM pgbench_accounts' -c 'SELECT count(*) FROM pgbench_history' >/dev/null
	for i in 1 2 3; do
		sql -c "SELECT bid, sum(abalance) FROM pgbench_accounts GROUP BY bid" >/dev/null
	done
	from=$(ended_ticks)
	pgbench -n -M prepared -c 1 -T 10 >"$work/pgbench" 2>&1 || cat "$work/pgbench" >&2
	sleep 0.2
	awk -v ticks=$(($(ended_ticks) - from)) -v hz="$(getconf CLK_TCK)" '
		/number of transactions actually processed/ {n = $NF}
		/^tps/ {printf "%s %.2f\n", $3, ticks / hz * 1e6 / n}' "$work/pgbench"
}

if has_part pgbench; then
	pgbench -i -q -s 10 >/dev/null 2>&1 || exit 1
	rm -f "$work"/*.ms
	for ((r = 0; r <= repeat; r++)); do
		for c in core cache; do
			read -r tps us < <(pgbench_round "$([[ $c == core ]] || echo gpuagg)")
			((r > 0)) || continue
			echo "$tps" >>"$work/tps_$c.ms"
			echo "$us" >>"$work/us_$c.ms"
		done
	done
	printf '\n%-26s%14s%14s%10s\n' "pgbench, TPC-B, scale 10" 'without' 'with cache' ratio
	printf '%-26s%14.1f%14.1f%10s\n' 'transactions per second' "$(ms tps_core)" "$(ms tps_cache)" \
		"$(awk -v a="$(ms tps_cache)" -v b="$(ms tps_core)" 'BEGIN {printf "%.3f", a / b}')"
	printf '%-26s%14.1f%14.1f%10s\n' 'CPU us per transaction' "$(ms us_core)" "$(ms us_cache)" \
		"$(awk -v a="$(ms us_cache)" -v b="$(ms us_core)" 'BEGIN {printf "%.3f", a / b}')"
	restart gpuagg
fi

# ---- proofs ----------------------------------------------------------------------

# proof_table NAME BLOCKS: makes a table with one row per block
proof_table() {
	sql -c "CREATE TABLE $1 (x int, pad text) WITH (fillfactor = 10)" -c "ALTER TABLE $1 ALTER pad SET STORAGE PLAIN"
	sql -c "INSERT INTO $1 SELECT i, repeat('x', 700) FROM generate_series(1, $2) i"
}

# proof_time TABLE NAME: measures a sum over a cached table. With so few rows, the proof takes nearly all of the time.
proof_time() {
	{
		echo 'SET gpuagg.cache = eager;'
		for ((r = 0; r < 100; r++)); do
			timed "$2" "SELECT gpu_sum(x) FROM $1"
		done
	} | session
}

if has_part proof; then
	blocks=131072
	proof_table gpuagg_proof $blocks
	proof_table gpuagg_proof_few $((blocks / 8))
	for how in pages map; do
		[[ $how == pages ]] || sql -c 'VACUUM (FREEZE) gpuagg_proof' -c 'VACUUM (FREEZE) gpuagg_proof_few' \
			-c "SELECT gpuagg_cache_evict('gpuagg_proof'), gpuagg_cache_evict('gpuagg_proof_few')" >/dev/null
		proof_time gpuagg_proof_few few
		proof_time gpuagg_proof all
		sql -c "$settings SET gpuagg.cache = eager" -c 'EXPLAIN (ANALYZE, COSTS off, TIMING off) SELECT gpu_sum(x) FROM gpuagg_proof' |
			grep -i 'proved\|cache' | sed 's/^ */  /' >"$work/explained"
		awk -v all="$(ms all)" -v few="$(ms few)" -v n=$blocks -v how=$how 'BEGIN {
			ns = (all - few) * 1e6 / (n * 7 / 8)
			printf "\nproof by %s: %d blocks (%d ranges) %.3f ms, %d blocks %.3f ms: %.2f ns per block, %.2f s for 1 TB (2^27 blocks)\n",
				how == "map" ? "the visibility map" : "pages", n, n / 256, all, n / 8, few, ns, ns * 2 ^ 27 / 1e9}'
		cat "$work/explained"
	done
	sql -c "SELECT format('descriptors: %s bytes per block, %s for 1 TB', round(bytes / blocks::numeric, 1),
			pg_size_pretty((bytes / blocks::numeric * 2 ^ 27)::bigint))
		FROM (SELECT sum(bytes) FILTER (WHERE \"column\" IS NULL) AS bytes, max(blocks) AS blocks
			FROM gpuagg_cache WHERE relation = 'gpuagg_proof'::regclass) s"
	echo "(Extrapolated from a table whose descriptors and map fit into the processor's caches. Those of 1 TB do not.)"
fi
