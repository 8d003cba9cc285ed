#!/usr/bin/env bash
# Runs the differential test in a private cluster, or in the running server that
# PGHOST names.  Arguments as of difftest.pl, e.g. --queries 20000 --seed 7.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ -z ${PGHOST:-} ]]; then
	# shellcheck source=test/pg.sh
	source "$here/../pg.sh"
	trap pg_stop EXIT
	pg_need && { [[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install; } || exit 1
	pg_start "shared_preload_libraries='gpuagg'" max_worker_processes=32 max_parallel_workers=16 jit=off \
		autovacuum=off || exit 1
fi
results=$here/../results
mkdir -p "$results"
status=0
perl "$here/difftest.pl" --scripts "$results" "$@" || status=1
if [[ -n ${pg_root:-} ]] && grep -E 'PANIC|was terminated by signal|TRAP' "$pg_root/log"; then
	cp "$pg_root/log" "$results/diff-server.log"
	echo "not ok the server lives"
	status=1
fi
exit $status
