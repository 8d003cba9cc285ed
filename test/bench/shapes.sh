#!/usr/bin/env bash
# Tests the planner's choice between PostgreSQL's plan and gpuagg at default costs, for queries of many shapes. No query should take more
# than 1.2 times PostgreSQL's time. Takes about four minutes.
#
#	test/bench/shapes.sh [--rows N] [--repeat N] [--workers N] [--only REGEX] [--forced] [--details]
#		[--set name=value]... [--limit RATIO]
#
#	--rows N			rows of the largest table (default 300000)
#	--repeat N			least number of executions (default 5)
#	--workers N			parallel workers of a query (default 0)
#	--only REGEX		only shapes whose names match
#	--forced			also measures the configurations must and must+
#	--details			also prints costs and times of each configuration
#	--set name=value	a setting for all configurations except core
#	--limit RATIO		ratios above it are marked (default 1.2)
#	PGHOST				if set, runs in this running server, which must preload the extension; the tables are dropped at the end
#
# Configurations:
#	core			gpuagg.enabled = off: the base
#	gpu, gpu+		the query with gpu_* aggregates, without the column cache, and with all columns in it
#	own, own+		the query with PostgreSQL's aggregates and gpuagg.replace_builtin, without and with the column cache
#	must, must+		like own and own+, with a custom scan wherever one can be used
#
# A ratio is the shortest time of a configuration divided by the shortest time of core. The first ratio is of elapsed time. The second one,
# after a slash, is of CPU time of the session's process, on which other processes have less influence; it is not available with workers,
# or if the server is on another machine. "=" marks plans without a custom scan. "!" marks shapes for which both ratios are above the
# limit. Times do not include planning. Queries are in shapes.txt, tables in shapes.sql.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rows=300000 repeat=5 workers=0 only=. details= limit=1.2 sets='' configs=(core gpu gpu+ own own+)
while [[ $# -gt 0 ]]; do
	case $1 in
	--rows) rows=$2 ;;
	--repeat) repeat=$2 ;;
	--workers) workers=$2 ;;
	--only) only=$2 ;;
	--limit) limit=$2 ;;
	--set) sets+="SET ${2%%=*} = '${2#*=}';" ;;
	--forced) configs+=(must must+) && shift && continue ;;
	--details) details=1 && shift && continue ;;
	*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" && exit 2 ;;
	esac
	shift 2
done

sql() {
	psql -XqAt -v ON_ERROR_STOP=1 "$@"
}

tables=gpuagg_shapes,gpuagg_shapes_dim,gpuagg_shapes_customer,gpuagg_shapes_small,gpuagg_shapes_part
drop_tables() {
	sql -c 'SET client_min_messages = warning' -c "DROP VIEW IF EXISTS gpuagg_shapes_view" \
		-c "DROP TABLE IF EXISTS $tables" -c 'DROP FUNCTION IF EXISTS gpuagg_shapes_mix'
}

cleanup() {
	drop_tables
	[[ -z ${own_cluster:-} ]] || pg_stop
	rm -rf "$work"
}

work=$(mktemp -d)
trap cleanup EXIT
if [[ -z ${PGHOST:-} ]]; then
	# shellcheck source=test/pg.sh
	source "$here/../pg.sh"
	own_cluster=1
	pg_need && pg_install || exit 1
	pg_start "shared_preload_libraries='gpuagg'" shared_buffers=1GB gpuagg.cache_memory=1GB autovacuum=off \
		checkpoint_timeout=1h || exit 1
fi
sql -c 'SET client_min_messages = warning' -c 'CREATE EXTENSION IF NOT EXISTS gpuagg' || exit 1
drop_tables && sql -v rows="$rows" -f "$here/shapes.sql" >"$work/setup" || exit 1
# caches all columns, as a second query of each table would; tables of a few blocks are never cached
sql -c "SELECT gpuagg_cache_prewarm(oid) FROM pg_class WHERE relname ~ '^gpuagg_shapes' AND relkind = 'r'" >"$work/setup" || exit 1

# config_sets CONFIG: prints the SET commands of a configuration
config_sets() {
	echo "RESET ALL; SET jit = off; SET work_mem = '64MB'; SET max_parallel_workers_per_gather = $workers;"
	case $1 in
	core) echo 'SET gpuagg.enabled = off;' && return ;;
	own*) echo 'SET gpuagg.replace_builtin = on;' ;;
	must*) echo "SET gpuagg.replace_builtin = on; SET gpuagg.require = 'require';" ;;
	esac
	[[ $1 == *+ ]] || echo 'SET gpuagg.cache = off;'
	echo "$sets"
}

config_query() {
	[[ $1 == gpu* ]] && echo "${2//agg:/gpu_}" || echo "${2//agg:/}"
}

# config_applies CONFIG QUERY: succeeds unless the configuration needs gpu_* aggregates and the query has none
config_applies() {
	[[ $1 != gpu* || $2 == *agg:* ]]
}

# run CONFIG: prints lines for psql that execute the query once, and print "RUN CONFIG" and the times
run() {
	config_sets "$1"
	echo "\\echo RUN $1"
	[[ -z $cpu ]] || echo "\\echo From: \`cut -d' ' -f1 /proc/:pid/schedstat\`"
	echo '\timing on'
	echo "EXECUTE \"$1\" \\g /dev/null"
	echo '\timing off'
	[[ -z $cpu ]] || echo "\\echo To: \`cut -d' ' -f1 /proc/:pid/schedstat\`"
}

# session QUERY N: prints lines for psql that execute the query N times in each configuration, in turn. The executions before "BEGIN" do not
# count: they make the plans, and map pages.
session() {
	local c r

	echo 'SELECT pg_backend_pid() AS pid \gset'
	for c in "${configs[@]}"; do
		config_applies "$c" "$1" || continue
		echo "PREPARE \"$c\" AS $(config_query "$c" "$1");"
		run "$c"
		echo "\\echo PLAN $c"
		echo "EXPLAIN EXECUTE \"$c\";"
	done
	echo '\echo BEGIN'
	for ((r = 0; r < $2; r++)); do
		for c in "${configs[@]}"; do
			config_applies "$c" "$1" && run "$c"
		done
	done
}

# Prints lines "config wall cpu cost taken" with the shortest times in ms. cpu is NULL if it is not available.
minima() {
	awk '
		/^BEGIN$/ {counts = 1}
		/^RUN/ {c = $2; plan = ""}
		/^PLAN/ {plan = $2; next}
		plan && /cost=/ && !(plan in cost) {split($0, part, /\.\.| rows=/); cost[plan] = part[2]}
		plan && /Custom Scan \(GpuAgg\)/ {taken[plan] = 1}
		/^From:/ {from = $2}
		/^Time:/ && counts {if (!(c in wall) || $2 < wall[c]) wall[c] = $2}
		/^To:/ && counts {ms = ($2 - from) / 1e6; if (!(c in cpu) || ms < cpu[c]) cpu[c] = ms}
		END {for (c in wall) print c, wall[c], c in cpu ? cpu[c] : "NULL", cost[c], c in taken ? "taken" : "core"}'
}

# repeats QUERY: prints the number of executions, which is greater for short queries
repeats() {
	local ms

	ms=$({
		config_sets core
		echo '\timing on'
		config_query core "$1"
		echo '\g /dev/null'
	} | sql | sed -n 's/^Time: \([0-9]*\).*/\1/p' | tail -1)
	echo $((repeat + (ms < 40 ? (40 - ms) / 2 : 0)))
}

cpu=
[[ $workers != 0 || -z $(sql -c "SELECT pg_read_file('/proc/self/schedstat', 0, 1000, true)" 2>/dev/null) ]] || cpu=1
[[ -z $cpu || -r /proc/$(sql -c 'SELECT pid FROM pg_stat_activity WHERE backend_type = $$checkpointer$$')/schedstat ]] || cpu=

echo "gpuagg, plans at default costs: $rows rows, $workers workers, $(nproc) cores," \
	"$(sql -c "SELECT split_part(version(), ' (', 1)"), shortest of $repeat or more; elapsed time${cpu:+ / CPU time}"
printf '%-32s%10s' '' 'core, ms'
for c in "${configs[@]:1}"; do printf '%14s' "$c"; done
echo
while IFS=$'\x1f' read -r name query; do
	name=$(xargs <<<"$name")
	[[ $name =~ $only ]] || continue
	query=$(sed -E 's/\bFACT\b/gpuagg_shapes/g; s/\b(DIM|CUSTOMER|SMALL|PART|VIEW)\b/gpuagg_shapes_\L\1/g' <<<"$query")
	session "$query" "$(repeats "$query")" | sql >"$work/out" || { echo "$name: failed"; exit 1; }
	minima <"$work/out" >"$work/minima"
	awk -v name="$name" -v order="${configs[*]}" -v limit="$limit" -v details="$details" -v above="$work/above" '
		{wall[$1] = $2; cpu[$1] = $3; cost[$1] = $4; taken[$1] = $5}
		END {
			n = split(order, configs, " ")
			line = sprintf("%-32s%10.1f", name, wall["core"])
			for (i = 2; i <= n; i++) {
				c = configs[i]
				if (!(c in wall)) {
					line = line sprintf("%14s", "")
					continue
				}
				ratio = least = wall[c] / wall["core"]
				text = sprintf("%.2f", ratio)
				if (cpu[c] != "NULL") {
					text = text sprintf("/%.2f", cpu[c] / cpu["core"])
					least = cpu[c] / cpu["core"] < ratio ? cpu[c] / cpu["core"] : ratio
				}
				marked = least > limit && c !~ /^must/
				if (marked)
					print name ": " c, text > above
				line = line sprintf("%14s", text (taken[c] == "core" ? "=" : "") (marked ? "!" : " "))
			}
			print line
			for (i = 1; details && i <= n; i++)
				if (configs[i] in wall)
					printf "    %-8s %-6s cost %12.1f  elapsed %9.2f  CPU %9.2f\n", configs[i], taken[configs[i]],
						cost[configs[i]], wall[configs[i]], cpu[configs[i]]
		}' "$work/minima"
	sed -n 's/^//p' "$work/above" >>"$work/all" 2>/dev/null
	rm -f "$work/above"
done <<<"$(grep -Ev '^(#|$)' "$here/shapes.txt" | sed 's/ | /\x1f/')"
echo
if [[ -s $work/all ]]; then
	echo "Above $limit times PostgreSQL's time:"
	sed 's/^/    /' "$work/all"
else
	echo "No query takes more than $limit times PostgreSQL's time."
fi
