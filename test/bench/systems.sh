# shellcheck shell=bash
# Compares systems over the queries of one benchmark, in one run and with several numbers of processes. hits.sh, groupby.sh, ssb.sh and
# tpch.sh source this file with $here set to this folder, set the variables below, and call systems_option, systems_start and systems_run.
#
#	title		the name of the benchmark
#	table		its table, or its largest one
#	tables		if there are several: all of them
#	parallel	the tables that several processes scan (default: $table)
#	joins		if set, the queries join tables, and those whose joins PostgreSQL executes are listed
#	rows		the number of rows by default
#	row_bytes	about how many bytes of shared buffers a row takes
#	discard		if set, answers are large: their rows are counted as they are discarded, and not sent to the client
#
# and the function expand QUERY, which prints a query of the file with its placeholders replaced. The queries' file has lines of the form
# "number and name | kind | query | comparison". Queries of kind "a" are in a sum of their own and in the lists after the table.
discard=${discard:-} tables=${tables:-$table} parallel=${parallel:-$table} joins=${joins:-} library=${DUCKDB_LIBRARY:-}
processes=1 repeat=5 systems=core,pages,warm,duckdb only= cpu_time= prewarm=1 answers=1 planned= ties=1 times= limit=1.5 sets=()
# shellcheck source=test/bench/library.sh
source "$here/library.sh"

# systems_option OPTION VALUE: reads an option that all benchmarks have. Sets $option_words to the number of words of the option, or 0
# if it has another meaning.
systems_option() {
	option_words=2
	case $1 in
	--rows) rows=$2 ;;
	--processes) processes=$2 ;;
	--repeat) repeat=$2 ;;
	--systems) systems=$2 ;;
	--only) only=$2 ;;
	--set) sets+=("$2") ;;
	--limit) limit=$2 ;;
	--times) times=$2 ;;
	--library) library=$2 ;;
	--planned) planned=1 option_words=1 ;;
	--no-ties) ties= option_words=1 ;;
	--no-answers) answers= option_words=1 ;;
	--no-prewarm) prewarm= option_words=1 ;;
	--cpu-time) cpu_time=1 option_words=1 ;;
	*) option_words=0 ;;
	esac
}

systems_cleanup() {
	[[ -z ${duck_pid:-} ]] || kill "$duck_pid"
	[[ -z ${own_cluster:-} ]] || pg_stop
	rm -rf "$work"
}

# has SYSTEM: succeeds if the system is measured
has() {
	[[ " ${systems[*]} " == *" $1 "* ]]
}

# Starts a cluster with memory for the table and all of its columns, unless PGHOST is set.
systems_start() {
	local mb=$((rows * row_bytes / 1000000))

	IFS=, read -ra systems <<<"$systems"
	IFS=, read -ra processes <<<"$processes"
	work=$(mktemp -d)
	trap systems_cleanup EXIT
	if has duckdb && [[ ! -e $library ]]; then
		echo "without DuckDB: its library is not found, see duckdb.sh"
		read -ra systems <<<"${systems[*]/duckdb/}"
	fi
	if [[ -z ${PGHOST:-} ]]; then
		# shellcheck source=test/pg.sh
		source "$here/../pg.sh"
		own_cluster=1
		pg_need && { [[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install; } || exit 1
		pg_start "shared_preload_libraries='gpuagg'" "shared_buffers=$((mb * 5 / 4 + 256))MB" "gpuagg.cache_memory=$((mb + 256))MB" \
			max_worker_processes=64 max_parallel_workers=64 autovacuum=off checkpoint_timeout=1h || exit 1
	fi
	sql -c "SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS gpuagg" || exit 1
}

# fill_concurrently FILE ROWS [NAME=VALUE]...: executes the SQL of FILE in concurrent sessions, each for a range of the rows
fill_concurrently() {
	local file=$1 rows=$2 part n value settings=() fillers=()

	shift 2
	for value in "$@"; do settings+=(-v "$value"); done
	n=$(nproc)
	for ((part = 0; part < n; part++)); do
		sql -v "rows=$rows" -v from=$((rows * part / n + 1)) -v to=$((rows * (part + 1) / n)) ${settings[@]+"${settings[@]}"} \
			-f "$file" 2>>"$work/err" &
		fillers+=($!)
	done
	wait "${fillers[@]}"
	[[ ! -s $work/err ]] || { cat "$work/err"; exit 1; }
}

# systems_fill FILE [NAME=VALUE]...: fills the table by the SQL of FILE, in concurrent sessions, unless it has the right number of rows
systems_fill() {
	[[ $(sql -c "SELECT count(*) FROM $table") != "$rows" ]] || return 0
	sql -c "TRUNCATE $table" || exit 1
	fill_concurrently "$1" "$rows" "${@:2}"
	sql -c "VACUUM (FREEZE, ANALYZE) $table"
}

# system_sets SYSTEM PROCESSES: prints the SET commands of a system
system_sets() {
	local s

	echo "RESET ALL; SET jit = off; SET work_mem = '256MB'; SET max_parallel_workers_per_gather = $(($2 - 1));"
	(($2 == 1)) || echo "SET min_parallel_table_scan_size = 0;"
	case $1 in
	core) echo "SET gpuagg.enabled = off;" ;;
	pages) echo "SET gpuagg.replace_builtin = on; SET gpuagg.engine = 'cpu'; SET gpuagg.cache = off;" ;;
	gpu) echo "SET gpuagg.replace_builtin = on;" ;;
	warm) echo "SET gpuagg.replace_builtin = on; SET gpuagg.engine = 'cpu';" ;;
	*) echo "unknown system: $1" >&2 && return 1 ;;
	esac
	for s in ${sets[@]+"${sets[@]}"}; do
		echo "SET ${s%%=*} = '${s#*=}';"
	done
}

# set_workers PROCESSES: makes plans of so many processes, unless the planner is to choose
set_workers() {
	local name

	for name in $parallel; do
		if [[ -n $planned || $1 == 1 ]]; then
			echo "ALTER TABLE $name RESET (parallel_workers);"
		else
			echo "ALTER TABLE $name SET (parallel_workers = $(($1 - 1)));"
		fi
	done
}

# answer SYSTEM PROCESSES QUERY COMPARISON: writes the answer to $work/SYSTEM
answer() {
	local query=$3

	[[ $4 != rows ]] || query="SELECT count(*) FROM ($3) s"
	if [[ $1 == duckdb ]]; then
		duck_sql "SET threads = $2"
		duck_sql "COPY ($query) TO '$work/duckdb' (FORMAT csv, HEADER false)"
	else
		{
			set_workers "$2"
			system_sets "$1" "$2"
			echo "COPY ($query) TO STDOUT (FORMAT csv)"
		} | sql >"$work/$1"
	fi
}

# compare_answers NAME QUERY COMPARISON: compares the answers of all systems with that of the first one; that of the first one, which is
# core as a rule, is computed once, with the most processes
compare_answers() {
	local system n first=${systems[0]}

	answer "$first" "${processes[-1]}" "$2" "$3" || return 1
	mv "$work/$first" "$work/expected"
	for n in "${processes[@]}"; do
		for system in "${systems[@]:1}"; do
			answer "$system" "$n" "$2" "$3" || return 1
			# the absolute difference is for correlations near 0
			awk -F, -v other="$work/expected" -v absolute=1e-13 -f "$here/compare.awk" "$work/$system" | cut -c1-500 || {
				echo "$1: the answer of $system with $n processes is not that of $first"
				return 1
			}
		done
	done
}

# plan_of SYSTEM PROCESSES QUERY: prints "core" and the reason if gpuagg does not execute the query, or the number of processes planned. If
# gpuagg executes joins too, "+joins" follows: its plan has a line for each lookup. "[joins]" follows if PostgreSQL executes some. A custom
# scan with lookups executes the hash joins below it, down to other nodes than scans of tables; in inner sides, too.
plan_of() {
	{
		set_workers "$2"
		system_sets "$1" "$2"
		echo "EXPLAIN (VERBOSE) $3"
	} | sql | awk '
		# fed[d]: the custom scan above executes the joins that are children of the node at depth d
		function enter(at, node) {
			while (top > 0 && depth[top] >= at) top--
			inherited = top > 0 && fed[top]
			depth[++top] = at
			fed[top] = inherited && node ~ /^Hash |^Append /
			if (node ~ /^(Parallel )?(Hash|Merge) ([A-Za-z]+ )*Join |^Nested Loop / && !(fed[top] && node ~ /^Hash /)) left = " [joins]"
		}
		/Custom Scan \(GpuAgg(TopRows)?\)/ {taken = 1}
		/^ *Lookup: / && top > 0 {fed[top] = 1; joined = "+joins"}
		/^ *(InitPlan|SubPlan|CTE) / {enter(match($0, /[^ ]/), ""); next}
		match($0, /^ *->  */) || NR == 1 {enter(NR == 1 ? 0 : index($0, "->"), substr($0, NR == 1 ? 1 : RLENGTH + 1))}
		/Workers Planned:/ {n = $NF}
		sub(/^GpuAgg: not used: /, "") {why = $0} END {print (taken ? n + 1 joined : "core " (why ? why : "no aggregation of gpuagg")) left}'
}

# measure QUERY: executes a query in one session in all systems in turn, and writes the times in ms to $work/SYSTEM.PROCESSES. The first
# execution does not count.
measure() {
	local r n system

	rm -f "$work"/*.[0-9]*
	echo "$1" >"$work/timed.sql"
	{
		echo 'SELECT pg_backend_pid() AS pid \gset'
		for n in "${processes[@]}"; do
			set_workers "$n"
			echo "SET threads = $n" >"$work/threads.$n"
			for ((r = 0; r <= repeat; r++)); do
				for system in "${systems[@]}"; do
					echo "\\echo RUN $r $system.$n"
					if [[ $system == duckdb ]]; then
						((r > 0)) || echo "\\echo Threads: \`echo $work/threads.$n >$work/requests; cat $work/replies\`"
						echo "\\echo Duck: \`echo $work/timed.sql >$work/requests; cat $work/replies\`"
						continue
					fi
					system_sets "$system" "$n"
					# loads the catalog
					echo "EXPLAIN $1 \\g /dev/null"
					[[ -z $cpu_time ]] || echo '\echo From: `cut -d" " -f1 /proc/:pid/schedstat`'
					echo '\timing on'
					echo "$1 \\g /dev/null"
					echo '\timing off'
					[[ -z $cpu_time ]] || echo '\echo To: `cut -d" " -f1 /proc/:pid/schedstat`'
				done
			done
		done
	} | sql | awk -v work="$work" -v cpu="$cpu_time" '
		function result(ms) {if (r > 0) print ms > (work "/" c)}
		/^RUN/ {r = $2; c = $3}
		/^Time:/ && !cpu {result($2)}
		/^From:/ {from = $2}
		/^To:/ {result(($2 - from) / 1e6)}
		/^Duck: ms/ {result(cpu ? $4 : $3)}
		/^Duck: error/'
}

# quotient A B: prints A / B, or "-" if one is missing
quotient() {
	awk -v a="$1" -v b="$2" 'BEGIN {if (a == "" || b == "" || b == 0) print "-"; else printf "%.2f", a / b}'
}

# Sets ratio_names: the pairs of systems whose times are divided. "warm/warm" is the time with the first number of processes divided by that
# with this one.
choose_ratios() {
	ratio_names=()
	! has core || ! has pages || ratio_names+=(core/pages)
	! has core || ! has warm || ratio_names+=(core/warm)
	! has warm || ! has duckdb || ratio_names+=(warm/duckdb)
	! has warm || ((${#processes[@]} == 1)) || ratio_names+=(warm/warm)
}

# print_head: prints the names of the columns
print_head() {
	local name

	printf '%-32s%5s' milliseconds proc
	for name in "${systems[@]}"; do printf '%12s' "$name"; done
	for name in "${ratio_names[@]}"; do printf '%12s' "${name/warm\/warm/scaling}"; done
	printf '%7s\n' plan
}

# print_line NAME PROCESSES PLAN: prints a line of the table with the times in ms[]
print_line() {
	local name

	printf '%-32s%5s' "$1" "$2"
	for name in "${systems[@]}"; do printf '%12.1f' "${ms[$name]}"; done
	[[ $2 != "${processes[0]}" ]] || first_warm=${ms[warm]:-}
	for name in "${ratio_names[@]}"; do
		if [[ $name == warm/warm ]]; then
			printf '%12s' "$(quotient "$first_warm" "${ms[warm]}")"
		else
			printf '%12s' "$(quotient "${ms[${name%/*}]}" "${ms[${name#*/}]}")"
		fi
	done
	printf '%7s\n' "$3"
}

# add SUM: adds the times in ms[] to the sum of this name
add() {
	local system

	for system in "${systems[@]}"; do
		total[$1.$system]=$(awk -v a="${total[$1.$system]:-0}" -v b="${ms[$system]}" 'BEGIN {print a + b}')
	done
	count[$1]=$((${count[$1]:-0} + 1))
}

# above A B LIMIT: succeeds if A is more than LIMIT times B
above() {
	[[ -n $1 && -n $2 ]] && awk -v a="$1" -v b="$2" -v limit="$3" 'BEGIN {exit !(a > limit * b)}'
}

# run_query NAME KIND QUERY COMPARISON: compares the answers, measures, and prints the lines of a query
run_query() {
	local n system plan query tied gpuagg=

	tied=$(sed -E 's/\{\+([^}]*)\}/\1/g' <<<"$3")
	query=$tied
	[[ -n $ties ]] || query=$(sed -E 's/\{\+[^}]*\}//g' <<<"$3")
	if [[ -n $answers ]] && ! compare_answers "$1" "$tied" "$4"; then
		status=1
		different+=("$1")
	fi
	# a number of rows that no answer has
	[[ -z $discard ]] || query+=" OFFSET 1000000000000"
	measure "$query"
	for system in "${systems[@]}"; do
		[[ $system != warm && $system != pages ]] || gpuagg=$system
	done
	for n in "${processes[@]}"; do
		for system in "${systems[@]}"; do
			[[ -s $work/$system.$n ]] || { echo "$1: $system has no time"; status=1; return; }
			ms[$system]=$(median <"$work/$system.$n")
			[[ -z $times ]] || printf '%s\t%s\t%s\t%s\n' "${1%% *}" "$system" "$n" "${ms[$system]}" >>"$times"
		done
		plan=
		[[ -z $gpuagg ]] || plan=$(plan_of "$gpuagg" "$n" "$query")
		[[ -z $joins || $plan != *"[joins]" ]] || not_joined+=("$1 ($n)")
		plan=${plan% \[joins\]}
		[[ $plan != core* || $2 == o ]] || not_taken+=("$1 ($n): ${plan#core }")
		print_line "$1" "$n" "${plan%% *}"
		add "all.$n"
		[[ $2 == a ]] || continue
		add "a.$n"
		! above "${ms[warm]:-}" "${ms[duckdb]:-}" "$limit" || slow+=("$1 ($n): $(quotient "${ms[warm]}" "${ms[duckdb]}")")
		! above "${ms[pages]:-}" "${ms[core]:-}" 1 || slower+=("$1 ($n): $(quotient "${ms[pages]}" "${ms[core]}")")
	done
}

# print_sum SUM NAME: prints the lines of a sum, one for each number of processes
print_sum() {
	local n system

	for n in "${processes[@]}"; do
		[[ -n ${count[$1.$n]:-} ]] || continue
		for system in "${systems[@]}"; do ms[$system]=${total[$1.$n.$system]}; done
		print_line "sum of ${count[$1.$n]}$2" "$n" ""
	done
}

# list NAME LINE...: prints the lines, each after the name
list() {
	local name=$1

	shift
	(($# == 0)) || printf "$name: %s\n" "$@"
}

# systems_run FILE SUM_NAME: compares answers, measures all queries of the file and prints the tables
systems_run() {
	local name kind query comparison ratio_names=() first_warm=
	local -A ms=() total=() count=()

	status=0 not_taken=() not_joined=() slow=() slower=() different=()
	[[ -z $times ]] || : >"$times"
	if { has warm || has gpu; } && [[ -n $prewarm ]]; then
		for name in $tables; do
			sql -c "SELECT gpuagg_cache_prewarm('$name')" >/dev/null || exit 1
		done
	fi
	if has duckdb; then
		duck_start "$(nproc)"
		for name in $tables; do duck_copy "$name"; done
		head -1 "$work/duckdb.err"
	fi
	echo "$title: $rows rows ($(sql -c "SELECT pg_size_pretty(pg_relation_size('$table')) || ', column cache ' ||
		pg_size_pretty(cache_used) FROM gpuagg_status")), $(nproc) cores, $(sql -c "SELECT split_part(version(), ' (', 1)")," \
		"median of $repeat${cpu_time:+, processor time}"
	choose_ratios
	print_head
	while IFS=$'\x1f' read -r name kind query comparison; do
		[[ -z $only || ,$only, == *,${name%% *},* ]] || continue
		run_query "$name" "$kind" "$(expand "$query")" "$comparison"
	done < <(grep -v '^#' "$1" | sed 's/ *| */\x1f/g')
	print_sum a "$2"
	[[ ${count[a.${processes[0]}]:-0} == "${count[all.${processes[0]}]:-0}" ]] || print_sum all ""
	list "executed by PostgreSQL" ${not_taken[@]+"${not_taken[@]}"}
	list "joins executed by PostgreSQL" ${not_joined[@]+"${not_joined[@]}"}
	list "warm, more than $limit times DuckDB's time" ${slow[@]+"${slow[@]}"}
	list "heap pages, slower than core" ${slower[@]+"${slower[@]}"}
	[[ -z $answers || $status != 0 ]] || echo "The answers of all systems are equal."
	return $status
}
