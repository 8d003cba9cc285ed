#!/usr/bin/env bash
# Tries to make the column cache give a wrong answer: writers change tables and their
# definitions in every way, while readers compare the cache's answers with core's, each pair
# with one snapshot; in a private cluster with a standby, through crashes and a promotion.
#
#	cache.sh [--seconds N] [--sessions N] [--seed S] [--memory "MB..."] [--server PROGRAM]
#
# With --server, readers ask the GPU engine, by that server program, which is killed and
# stopped now and then and is given other limits of memory.
#
# The time is divided among rounds, one for each cache_memory of the list (default "256 8 2").  There are more of them
# while nothing was seen of what the test is about, as on a busy machine.
# A round: tables, a standby, half of the sessions write and half read; a backend
# is killed at 40 % of the time, the server crashes at 55 %, and at 70 % the standby is promoted
# and gets a writer of its own.  PG_CONF has settings (test/pg.sh).  What the sessions
# have said is kept in test/results/stress.
#
# Ends with what was counted, and a line "ok" or "not ok".
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

# session ROLE NAME [option...]: starts one, until $until
session() {
	local role=$1 name=$2

	shift 2
	seed=$((seed + 1))
	perl "$here/cache.pl" "$role" --name "$name" --seed "$seed" --until "$until" --directory "$pg_root/copy" "$@" \
		>"$out/$role-$name.log" 2>&1 &
	pids+=($!)
}

cluster() {
	(cd "$pg_root" && as_pg pg_ctl -D "$pg_root/$1" -l "$pg_root/$1.log" -w -t 60 "${@:2}" >>"$out/pg_ctl.log" 2>&1)
}

start_standby() {
	(cd "$pg_root" && as_pg pg_basebackup -D "$pg_root/standby" -R -c fast --no-sync -h "$PGHOST" -p "$PGPORT" -U postgres) \
		>>"$out/pg_ctl.log" 2>&1 || return 1
	echo "port=5433" >>"$pg_root/standby/postgresql.conf"
	cluster standby start
}

# The server process of some session, killed: all others are thrown out, and shared memory is made anew.
kill_backend() {
	local pid

	pid=$(psql -XAtqc "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1")
	[[ -z $pid ]] || kill -9 "$pid"
}

# Kills the GPU server, stops it, or changes what memory it may use, every few seconds until $until.
trouble() {
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
	echo "count trouble: $n" >"$out/trouble.log"
}

# at PERCENT: waits until so much of the round is over
at() {
	local pause=$((begun + length * $1 / 100 - $(date +%s)))

	((pause <= 0)) || sleep "$pause"
}

# Did the server crash for another reason than the killed backend?
look_at_log() {
	local log=$1

	if grep -aE 'PANIC|TRAP|terminated by signal (4|6|7|8|11)|invalid memory alloc|buffer refcount leak|resource was not closed|leaked' "$log" | head -5 | grep .; then
		fail "the server's log has errors: $(basename "$log")"
		cp "$log" "$results/$(basename "$log")-$seed"
	fi
}

round() {
	local mb=$1 standby=1 begun until out=$results/$1-$seed pids=() n

	mkdir -p "$out"
	pg_start "${settings[@]}" "gpuagg.cache_memory=${mb}MB" || { fail "no cluster"; return; }
	mkdir "$pg_root/copy"
	chmod 777 "$pg_root/copy"
	perl "$here/cache.pl" setup --directory "$pg_root/copy" --seed "$seed" || { fail setup; return; }
	[[ -z $server ]] || pg_await_server || { fail "no GPU server"; return; }
	if [[ $(psql -XAtqc 'SHOW wal_level') == minimal ]]; then
		standby=
	else
		start_standby || { fail "no standby"; standby=; }
	fi
	begun=$(date +%s) until=$(($(date +%s) + length))
	for ((n = 1; n <= sessions / 2; n++)); do
		session writer "w$n"
		session reader "r$n" --patience "$(((length + 9) / 10))" --engine $engine
	done
	[[ -z $server ]] || { trouble & pids+=($!); }
	[[ -z $standby ]] || PGPORT=5433 session reader s1 --standby --patience 2
	at 40
	kill_backend
	at 55
	cluster data -m immediate stop
	cluster data start || fail "no restart"
	at 70
	if [[ -n $standby ]]; then
		cluster standby promote || fail "no promotion"
		PGPORT=5433 session writer p1
		PGPORT=5433 session reader p2
	fi
	n=$failed
	for pid in "${pids[@]}"; do
		wait "$pid" || fail "a session ended badly"
	done
	# what it has died of
	[[ $failed == "$n" ]] || tail -v -n 3 "$out"/{reader,writer}-*.log
	if grep -q '^not ok' "$out"/*.log; then
		failed=1
		grep -h -A40 '^not ok' "$out"/*.log | grep -v '^count' | head -200
	fi
	cp "$pg_root"/*.log "$pg_root/log" "$out" 2>/dev/null
	look_at_log "$pg_root/log"
	[[ -z $standby ]] || { look_at_log "$pg_root/standby.log"; look_at_log "$pg_root/data.log"; cluster standby -m immediate stop; }
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

# What was counted, to say something?  Sets missing.
count() {
	local what needed=(queries 'visibility map' lsn built)

	missing=()
	cat "$results"/*/*.log | sed -n 's/^count //p' | awk -F': ' '{ n[$1] += $2 } END { for (what in n) print what ": " n[what] }' |
		sort >"$results/counts"
	[[ -z $server ]] || needed=(queries 'at the GPU server' 'GPU memory')
	grep -qE '^reader queries: ([5-9][0-9]{2}|[0-9]{4,})' "$results/counts" && needed+=(changed 'old snapshots' 'own changes')
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
	fail "none of: $what"
done
[[ $failed == 0 ]] && echo "ok no answer differs" || echo "not ok stress"
exit $failed
