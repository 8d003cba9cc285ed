#!/usr/bin/env bash
# Runs the differential test (difftest.pl) in a private cluster, or in the running cluster that PGHOST names. The latter needs only
# psql and perl.
#
#	run.sh [--jobs N] [--queries N] [--seed S] [--server PROGRAM] ...
#
# --server gives the private cluster this GPU server program, and sets gpuagg.engine = cuda. build/test/gpuagg-server is the server
# over a stub of the CUDA run time. PG_CONF has more settings of the cluster (test/pg.sh).
#
# Each test has its own database, gpuagg_diff_<seed>. --jobs N runs N tests concurrently, with the seeds S, S + 1, ..., and divides the
# queries among them. It prints the differences of all tests, and the sums of their counts. If no participants merged groups in
# partitions in many queries, it fails. All other arguments are passed to difftest.pl.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
results=$here/../results
pages= jobs=1 seed=1 queries=2000 server= rest=()

while [[ $# -gt 0 ]]; do
	case $1 in
	--jobs) jobs=$2 ;;
	--seed) seed=$2 ;;
	--queries) queries=$2 ;;
	--scripts) results=$2 ;;
	--server) server=$2 rest+=(--gpu) ;;
	--pages | --gpu | --joins | --stars | --text | --show)
		[[ $1 == --pages ]] && pages=-pages
		rest+=("$1")
		shift
		continue
		;;
	*) rest+=("$1" "$2") ;;
	esac
	shift 2 || exit 2
done

if [[ -z ${PGHOST:-} ]]; then
	# shellcheck source=test/pg.sh
	source "$here/../pg.sh"
	trap pg_stop EXIT
	pg_need && { [[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install; } || exit 1
	settings=("shared_preload_libraries='gpuagg'" max_worker_processes=32 max_parallel_workers=16 jit=off autovacuum=off)
	if [[ -n $server ]]; then
		program=$(pg_server "$server") || exit 2
		settings+=("gpuagg.server_program='$program'")
	fi
	pg_start "${settings[@]}" || exit 1
elif [[ -n $server ]]; then
	echo "--server needs a private cluster" >&2
	exit 2
fi
if [[ -n $server ]]; then
	psql -Xqc 'CREATE EXTENSION gpuagg'
	pg_await_server || exit 1
	export PGOPTIONS='-c gpuagg.engine=cuda'
fi
mkdir -p "$results"

# run_test SEED QUERIES: one test, in the database PGDATABASE
run_test() {
	perl "$here/difftest.pl" --scripts "$results" --seed "$1" --queries "$2" ${rest[@]+"${rest[@]}"}
}

# sum_reports LOG...: adds the counts of several tests' reports: lines "#   name  n  share %  ..." and "# n answers ..."
sum_reports() {
	awk '
		/^# [0-9]+ (answers|runs|queries)/ {
			kind = $3; total[kind] += $2
			if (kind == "queries") { match($0, /\([0-9]+ raise/); errors += substr($0, RSTART + 1, RLENGTH - 7) }
			next
		}
		/^#   .* %/ {
			name = substr($0, 5, 36); sub(/ +$/, "", name); n = substr($0, 41, 7) + 0
			if (!((kind, name) in sum)) order[++lines] = kind SUBSEP name
			sum[kind, name] += n
		}
		END {
			printf("# all: %d queries, %d raise errors; %d answers of the custom scan, %d watched runs\n",
				total["queries"], errors, total["answers"], total["runs"])
			for (i = 1; i <= lines; i++) {
				split(order[i], part, SUBSEP)
				printf("#   %-36s %7d  %5.1f %% of %s\n", part[2], sum[order[i]],
					total[part[1]] ? 100 * sum[order[i]] / total[part[1]] : 0, part[1])
			}
			# too rare for the share of one test
			if (("runs", "merged parts") in sum && total["runs"] >= 400 && sum["runs", "merged parts"] == 0)
				print "not ok participants of parallel plans merge groups in partitions"
		}' "$@"
}

sql() {
	psql -Xq -v ON_ERROR_STOP=1 -d "$database" -c 'SET client_min_messages = warning' "$@"
}

# with_databases COMMAND...: runs the command with a new database for each seed
with_databases() {
	local j status=0

	for ((j = seed; j < seed + jobs; j++)); do
		sql -c "DROP DATABASE IF EXISTS gpuagg_diff_$j" -c "DROP ROLE IF EXISTS gpuagg_diff_reader_$j" -c "CREATE DATABASE gpuagg_diff_$j" || return 1
	done
	"$@" || status=1
	for ((j = seed; j < seed + jobs; j++)); do
		sql -c "DROP DATABASE IF EXISTS gpuagg_diff_$j" -c "DROP ROLE IF EXISTS gpuagg_diff_reader_$j"
	done
	return $status
}

run_one() {
	PGDATABASE=gpuagg_diff_$seed run_test "$seed" "$queries"
}

# Runs $jobs tests concurrently.
run_several() {
	local j pids=() logs=() failed=0

	for ((j = seed; j < seed + jobs; j++)); do
		logs+=("$results/diff$pages-$j.log")
		PGDATABASE=gpuagg_diff_$j run_test "$j" $(((queries + jobs - 1) / jobs)) >"$results/diff$pages-$j.log" 2>&1 &
		pids+=($!)
	done
	for j in "${!pids[@]}"; do
		wait "${pids[j]}" && continue
		failed=$((failed + 1))
		grep -vE '^ok |^#   [^ ].* %' "${logs[j]}"
	done
	sum_reports "${logs[@]}" | tee "$results/diff$pages-sums.log"
	! grep -q '^not ok' "$results/diff$pages-sums.log" || failed=$((failed + 1))
	[[ $failed == 0 ]] && echo -n 'ok ' || echo -n 'not ok '
	echo "$jobs tests ran concurrently, seeds $seed to $((seed + jobs - 1)); $failed failed"
	[[ $failed == 0 ]]
}

database=${PGDATABASE:-postgres} status=0
if ((jobs > 1)); then
	with_databases run_several || status=1
else
	with_databases run_one || status=1
fi
if [[ -n ${pg_root:-} ]] && grep -E 'PANIC|was terminated by signal|TRAP' "$pg_root/log"; then
	cp "$pg_root/log" "$results/diff-server.log"
	echo "not ok the server did not crash"
	status=1
fi
exit $status
