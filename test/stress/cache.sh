#!/usr/bin/env bash
# Stress test of the column cache. Writers change tables and their definitions in many ways, while readers compare the answers of the
# cache with PostgreSQL's own, each pair under one snapshot. Runs in a private cluster with a standby, with crashes and a promotion.
#
#	cache.sh [--seconds N] [--sessions N] [--seed S] [--memory "MB..."] [--server PROGRAM]
#
#	--seconds	total time (default 30), divided evenly among the rounds
#	--sessions	number of sessions (default 6); one half writes, the other half reads
#	--seed		seed of random numbers (default 1)
#	--memory	gpuagg.cache_memory of each round in MB (default "256 8 2")
#	--server	readers use the GPU engine with this server program. It is repeatedly killed, stopped, and given other limits of memory
#	PG_CONF		more settings of the cluster (test/pg.sh)
#
# Prints counts, and at the end a line "ok" or "not ok". The exit status is 0 if the test passed. The output of the sessions is written
# to test/results/stress.
#
# In each round, a backend is killed after 40 % of the time, the server crashes after 55 %, and the standby is promoted after 70 % and
# gets a writer. If a round did not reach the code that the test is for, as happens on a busy machine, up to 10 more rounds follow.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/pg.sh
source "$here/../pg.sh"
seconds=30 sessions=6 seed=1 memory="256 8 2" server= engine=cpu

while [[ $# -gt 1 ]]; do
	case $1 in
	--seconds) seconds=$2 ;;
	--sessions) sessions=$2 ;;
	--seed) seed=$2 ;;
	--memory) memory=$2 ;;
	--server) server=$2 engine=cuda ;;
	*) exit 2 ;;
	esac
	shift 2
done
results=$top/test/results/stress
failed=0
settings=("shared_preload_libraries='gpuagg'" jit=off max_worker_processes=16 max_parallel_workers=6 max_prepared_transactions=40
	max_connections=80 shared_buffers=96MB wal_level=replica max_standby_streaming_delay=500ms wal_keep_size=1GB
	restart_after_crash=on allow_in_place_tablespaces=on autovacuum_naptime=1s deadlock_timeout=200ms)

fail() {
	echo "not ok $1"
	failed=1
}

# session ROLE NAME [option...]: starts a session that ends at the time $until
session() {
	local role=$1 name=$2

	shift 2
	seed=$((seed + 1))
	perl "$here/cache.pl" "$role" --name "$name" --seed "$seed" --until "$until" --directory "$pg_root/copy" "$@" \
		>"$out/$role-$name.log" 2>&1 &
	pids+=($!)
}

# cluster NAME ARGS...: runs pg_ctl for the cluster data or standby
cluster() {
	(cd "$pg_root" && as_pg pg_ctl -D "$pg_root/$1" -l "$pg_root/$1.log" -w -t 60 "${@:2}" >>"$out/pg_ctl.log" 2>&1)
}

start_standby() {
	(cd "$pg_root" && as_pg pg_basebackup -D "$pg_root/standby" -R -c fast --no-sync -h "$PGHOST" -p "$PGPORT" -U postgres) \
		>>"$out/pg_ctl.log" 2>&1 || return 1
	echo "port=5433" >>"$pg_root/standby/postgresql.conf"
	cluster standby start
}

# Kills a random backend: the server then ends all other sessions and creates its shared memory again.
kill_backend() {
	local pid

	pid=$(psql -XAtqc "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1")
	[[ -z $pid ]] || kill -9 "$pid"
}

# Kills or stops the GPU server, or changes its limits of memory, every few seconds until $until.
disturb_server() {
	local pid n=0

	while (($(date +%s) + 2 < until)); do
		sleep "$((1 + RANDOM % 3))"
		pid=$(psql -XAtqc 'SELECT server_pid FROM gpuagg_status' 2>/dev/null)
		case $((n++ % 6)) in
		0 | 3) [[ -z $pid ]] || kill -KILL "$pid" ;;
		4) [[ -z $pid ]] || kill -STOP "$pid" ;;
		1) psql -XAtqc "ALTER SYSTEM SET gpuagg.device_cache_memory = '2MB'" -c 'SELECT pg_reload_conf()' ;;
		2) psql -XAtqc "ALTER SYSTEM SET gpuagg.device_memory_limit = '64MB'" -c 'SELECT pg_reload_conf()' ;;
		5) psql -XAtqc 'ALTER SYSTEM RESET gpuagg.device_cache_memory' -c 'ALTER SYSTEM RESET gpuagg.device_memory_limit' \
			-c 'SELECT pg_reload_conf()' ;;
		esac >/dev/null 2>&1
	done
	echo "count disturbances: $n" >"$out/disturbances.log"
}

# at PERCENT: waits until this share of the round has passed
at() {
	local pause=$((begun + length * $1 / 100 - $(date +%s)))

	((pause <= 0)) || sleep "$pause"
}

# check_log FILE: fails the test if the server crashed for another reason than the killed backend, or leaked
check_log() {
	local log=$1

	if grep -aE 'PANIC|TRAP|terminated by signal (4|6|7|8|11)|invalid memory alloc|buffer refcount leak|resource was not closed|leaked' "$log" | head -5 | grep .; then
		fail "the server's log has no errors: $(basename "$log")"
		cp "$log" "$results/$(basename "$log")-$seed"
	fi
}

# round MB: runs a round with this size of the cache
round() {
	local mb=$1 standby=1 begun until out=$results/$1-$seed pids=() n

	mkdir -p "$out"
	pg_start "${settings[@]}" "gpuagg.cache_memory=${mb}MB" || { fail "the cluster starts"; return; }
	mkdir "$pg_root/copy"
	chmod 777 "$pg_root/copy"
	perl "$here/cache.pl" setup --directory "$pg_root/copy" --seed "$seed" || { fail "the tables are made"; return; }
	[[ -z $server ]] || pg_await_server || { fail "the GPU server starts"; return; }
	if [[ $(psql -XAtqc 'SHOW wal_level') == minimal ]]; then
		standby=
	else
		start_standby || { fail "the standby starts"; standby=; }
	fi
	begun=$(date +%s) until=$(($(date +%s) + length))
	for ((n = 1; n <= sessions / 2; n++)); do
		session writer "w$n"
		session reader "r$n" --patience "$(((length + 9) / 10))" --engine $engine
	done
	[[ -z $server ]] || { disturb_server & pids+=($!); }
	[[ -z $standby ]] || PGPORT=5433 session reader s1 --standby --patience 2
	at 40
	kill_backend
	at 55
	cluster data -m immediate stop
	cluster data start || fail "the server restarts"
	at 70
	if [[ -n $standby ]]; then
		cluster standby promote || fail "the standby is promoted"
		PGPORT=5433 session writer p1
		PGPORT=5433 session reader p2
	fi
	n=$failed
	for pid in "${pids[@]}"; do
		wait "$pid" || fail "a session ends with status 0"
	done
	# the reason of the failure
	[[ $failed == "$n" ]] || tail -v -n 3 "$out"/{reader,writer}-*.log
	if grep -q '^not ok' "$out"/*.log; then
		failed=1
		grep -h -A40 '^not ok' "$out"/*.log | grep -v '^count' | head -200
	fi
	cp "$pg_root"/*.log "$pg_root/log" "$out" 2>/dev/null
	check_log "$pg_root/log"
	[[ -z $standby ]] || { check_log "$pg_root/standby.log"; check_log "$pg_root/data.log"; cluster standby -m immediate stop; }
	pg_stop
}

finish() {
	[[ -z ${pg_root:-} || ! -d $pg_root/standby ]] || cluster standby -m immediate stop
	pg_stop
}
trap finish EXIT

pg_need && { [[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install; } || exit 1
if [[ -n $server ]]; then
	server=$(pg_server "$server") || exit 2
	settings+=("gpuagg.server_program='$server'" gpuagg.server_timeout=1000)
fi
rm -rf "$results"
mkdir -p "$results"
read -ra rounds <<<"$memory"
length=$((seconds / ${#rounds[@]}))
echo "# seed $seed, $sessions sessions, ${#rounds[@]} rounds of $length seconds"
for mb in "${rounds[@]}"; do
	round "$mb"
done

# Adds up the counts. Sets missing to the counts that are zero although the test is for them.
count() {
	local what needed=(queries 'visibility map' lsn built)

	missing=()
	cat "$results"/*/*.log | sed -n 's/^count //p' | awk -F': ' '{ n[$1] += $2 } END { for (what in n) print what ": " n[what] }' |
		sort >"$results/counts"
	[[ -z $server ]] || needed=(queries 'at the GPU server' 'GPU memory')
	grep -qE '^reader queries: ([5-9][0-9]{2}|[0-9]{4,})' "$results/counts" && needed+=(changed 'old snapshots' 'own changes')
	[[ -z $server ]] || ! grep -qE '^reader explained: [0-9]{4,}' "$results/counts" || needed+=('joins on the GPU')
	for what in "${needed[@]}"; do
		grep -q "^reader $what: [1-9]" "$results/counts" || missing+=("$what")
	done
}

count
for ((more = 0; more < 10 && failed == 0 && ${#missing[@]} > 0; more++)); do
	round "${rounds[more % ${#rounds[@]}]}"
	count
done
sed 's/^/# /' "$results/counts"
for what in ${missing[@]+"${missing[@]}"}; do
	fail "the count of \"$what\" is not zero"
done
[[ $failed == 0 ]] && echo "ok all answers are equal" || echo "not ok all answers are equal"
exit $failed
