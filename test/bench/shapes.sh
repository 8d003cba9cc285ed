#!/usr/bin/env bash
# Plans at default costs: queries of many shapes, where the planner chooses between core's plan and gpuagg, against
# core's time.  None should take more than 1.2 times as long.
#
#	test/bench/shapes.sh [--rows N] [--repeat N] [--workers N] [--only REGEX] [--forced] [--details]
#		[--set name=value]... [--limit RATIO]
#
# Configurations:
#	core			gpuagg.enabled = off: the base
#	gpu, gpu+		the query with gpu_* aggregates, without the column cache, and with all columns in it
#	own, own+		the query with core's own aggregates and gpuagg.replace_builtin, the same
#	must, must+		with --forced: own, with a custom scan wherever one can be used
# A ratio is the shortest time of a configuration, divided by core's shortest time.  The first ratio is of elapsed
# time; the second one, after a slash, is of processor time of the session's process, which other processes disturb less (not with workers,
# nor where the server is on another machine).  "=": the plan has no custom scan.  "!": the smaller one of
# both ratios is above --limit (default: 1.2).  Planning is not part of the time.
#
# --rows N: rows of the largest table (default: 300000); --only: shapes whose names match; --workers N: parallel workers
# of a query (default: 0); --details: costs and times in ms of each configuration as well; --set adds a setting to all but core.
#
# Runs in a private cluster, or, where PGHOST is set, in the running server that it names, which must have the extension
# preloaded; the tables are dropped again.  It takes about four minutes.  Queries: shapes.txt; tables: shapes.sql.
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
# all columns of all tables, as the second query of each would have them; tables of a few blocks are read as they are
sql -c "SELECT gpuagg_cache_prewarm(oid) FROM pg_class WHERE relname ~ '^gpuagg_shapes' AND relkind = 'r'" >"$work/setup" || exit 1

# What makes a configuration.
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

# Has the configuration a query of its own?
config_applies() {
	[[ $1 != gpu* || $2 == *agg:* ]]
}

# One run; its times follow "RUN config".
run() {
	config_sets "$1"
	echo "\\echo RUN $1"
	[[ -z $cpu ]] || echo "\\echo From: \`cut -d' ' -f1 /proc/:pid/schedstat\`"
	echo '\timing on'
	echo "EXECUTE \"$1\" \\g /dev/null"
	echo '\timing off'
	[[ -z $cpu ]] || echo "\\echo To: \`cut -d' ' -f1 /proc/:pid/schedstat\`"
}

# All runs of a query in one session, the configurations by turns; the first ones do not count: they make the plans, and map pages.
# So do a few more where a run takes little time, as more of them are made then.
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

# Lines "config wall cpu cost taken", times in ms, and cpu as NULL where it is not known.
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

# Quick queries are run more often.
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
	"$(sql -c "SELECT split_part(version(), ' (', 1)"), shortest of $repeat or more; elapsed time${cpu:+ / processor time}"
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
					printf "    %-8s %-6s cost %12.1f  elapsed %9.2f  processor %9.2f\n", configs[i], taken[configs[i]],
						cost[configs[i]], wall[configs[i]], cpu[configs[i]]
		}' "$work/minima"
	sed -n 's/^//p' "$work/above" >>"$work/all" 2>/dev/null
	rm -f "$work/above"
done <<<"$(grep -Ev '^(#|$)' "$here/shapes.txt" | sed 's/ | /\x1f/')"
echo
if [[ -s $work/all ]]; then
	echo "Above $limit times core's time:"
	sed 's/^/    /' "$work/all"
else
	echo "None takes more than $limit times core's time."
fi
