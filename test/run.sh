#!/usr/bin/env bash
# Runs the tests and counts them.
#
#	test/run.sh [part...]
#
# Without arguments it runs all parts, long ones first. The number of parts that run concurrently is two more than the number of
# processors, because a part waits half of its time. Each part starts its own clusters. The parts are:
#
#	strict		all of src/ compiles under -Wall -Wextra -Werror; the layout of the sources (test/format.pl)
#	layers		folders of src/ include and call only lower folders (test/layers.pl); recursive functions check the
#				stack (test/recursion.pl); each TAP test has its own number
#	build		a build in another directory, with clang if it is installed; install, uninstall, clean; META.json
#				(test/build.sh)
#	unit		C tests that need no PostgreSQL: test/unit/*_test.c
#	sanitize	the same tests under AddressSanitizer and UndefinedBehaviorSanitizer
#	regress		pg_regress: test/sql/*.sql, serially in one database
#	cached		regression tests of what is read, and random queries, with columns cached by the first query that reads them
#	server		regression tests of groups and their states, and random queries, through the GPU server, over a stub of the
#				CUDA run time (test/gpu_server.sh)
#	isolation	test/specs/*.spec
#	tap			test/t/*.pl
#	diff		random queries (test/diff/), and half as many over tables whose pages have a history
#	cases		random cases of aggregates that PostgreSQL does not have, against their definitions in plain SQL (test/cases.sh)
#	states		forged states and rows of aggregates (test/states.sh)
#	fuzz		mutated messages to the GPU server and to backends (test/fuzz.sh)
#	stress		writers of all kinds against readers of the column cache (test/stress/cache.sh); then half as long
#				with the cache in GPU memory, over the stub
#	fdw			aggregates over foreign partitions, on three clusters (test/fdw.sh)
#	citus		aggregates over tables of Citus, if it is installed (test/citus.sh)
#	clients		client drivers of several languages; those that are not installed are skipped (test/clients.sh)
#	monitoring	.packaging/monitoring with prometheus-postgres-exporter, if it is installed (test/monitoring.sh)
#	docs		README.md and sql/*.md against the catalog; their SQL is run (test/docs.sh)
#	gpu			the kernels, on a host with a GPU
#
# These variables select tests. Each has a list of names or shell patterns, such as REGRESS="group_bits heap_*". A name
# that matches no test is an error.
#
#	REGRESS		tests of the parts regress, cached and server
#	TAP			tests of the part tap
#	UNIT		tests of the parts unit and sanitize
#	SPECS		tests of the part isolation
#	FDW			sections of the part fdw (test/fdw.sh lists them)
#	CITUS		a regular expression instead: the names of tests of the part citus
#	CLIENTS		clients of the part clients (test/clients.sh lists them)
#
# These variables set numbers and seeds of random tests, and seconds:
#
#	DIFF_QUERIES, DIFF_SEED			600, 1; half of the queries in the part cached, a third in the part server
#	CASES, CASES_SEED				40, 1; cases of each aggregate
#	STATES, STATES_SEED				2000, 1
#	FUZZ_SECONDS, FUZZ_SEED			5, 1; seconds for the server, and as many for backends
#	STRESS_SECONDS, STRESS_SEED		16, 1
#
# EVERYTHING=1 runs all regression tests in the parts cached and server, too, except those for which the part's setting has no effect.
# Without it these parts omit tests of code that does not depend on the setting (omitted, below).
#
# Each part's output appears when the part has ended, and ends with the part's seconds. Tests that cannot run here are
# listed as skipped. If a test failed, all failed tests are listed at the end, with the first lines of each cause. The last
# line is "N passed, N failed[, N skipped]". The exit status is 0 if no test failed. Logs are in test/results.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"

results=$top/test/results
passed=0 failed=0 skipped=0

pass() {
	echo "ok       $1"
	passed=$((passed + 1))
}

fail() {
	echo "FAILED   $1"
	failed=$((failed + 1))
}

skip() {
	echo "skipped  $1: $2"
	skipped=$((skipped + 1))
}

# check NAME COMMAND...: runs a command as one test. Its output is in test/results/NAME.log.
check() {
	local name=$1 log=$results/${1//[\/ ]/_}.log

	shift
	if "$@" >"$log" 2>&1; then
		pass "$name"
	else
		fail "$name"
		tail -40 "$log"
	fi
}

# tap_lines PREFIX: counts the result lines on stdin, in the format of pg_regress (before and since 16), of "prove -v" or
# of the unit tests. Fails if there is no such line.
tap_lines() {
	local prefix=$1 line name any=

	while IFS= read -r line; do
		case $line in
		"ok "* | "not ok "*)
			[[ $line =~ ^(not\ )?ok\ *[0-9]*\ *[-+]*\ *(.*)$ ]]
			name=${BASH_REMATCH[2]}
			[[ ! $name =~ ^(.*[^ ])\ {2,}[0-9]+\ ms$ ]] || name=${BASH_REMATCH[1]}
			;;
		"test "*"... "*)
			[[ $line =~ ^test\ +([^ ]*) ]]
			name=${BASH_REMATCH[1]}
			[[ $line == *"... ok"* ]] && line="ok $name" || line="not ok $name"
			;;
		*) continue ;;
		esac
		any=1
		case $line in
		"ok "*"# SKIP"*) skip "$prefix/${name%%# SKIP*}" "${name##*# SKIP }" ;;
		"ok "*) pass "$prefix/$name" ;;
		*) fail "$prefix/$name" ;;
		esac
	done
	[[ -n $any ]]
}

# select_tests VARIABLE FILE...: prints the names of the files that the list in VARIABLE selects, without folder and suffix;
# all of them if the list is empty. Fails if a name or pattern of the list matches no file.
select_tests() {
	local variable=$1 file name pattern patterns found status=0
	local -A selected=()

	read -rd '' -a patterns <<<"${!variable:-*}"
	for pattern in "${patterns[@]}"; do
		found=
		for file in "${@:2}"; do
			name=${file##*/}
			name=${name%.*}
			# shellcheck disable=SC2053
			[[ $name == $pattern ]] || continue
			found=1
			[[ -n ${selected[$name]:-} ]] || echo "$name"
			selected[$name]=1
		done
		[[ -n $found ]] || { echo "$variable: there is no test \"$pattern\"" >&2; status=1; }
	done
	return $status
}

# tests_of PART: prints the selected tests of a part that select_tests can list
tests_of() {
	case $1 in
	regress | cached | server) select_tests REGRESS "$top"/test/sql/*.sql ;;
	tap) select_tests TAP "$top"/test/t/*.pl ;;
	unit | sanitize) select_tests UNIT "$top"/test/unit/*_test.c ;;
	isolation) select_tests SPECS "$top"/test/specs/*.spec ;;
	esac
}

part_strict() {
	check "strict build" make -C "$top" -s -k -j"$(nproc)" PG_CONFIG="$PG_CONFIG" strict-objects
	"$top/test/format.pl" >"$results/format.log" 2>&1
	tap_lines format <"$results/format.log" || fail format
	grep '^#' "$results/format.log"
}

part_build() {
	PG_CONFIG=$PG_CONFIG "$top/test/build.sh" >"$results/build.log" 2>&1
	tap_lines build <"$results/build.log" || fail build
	grep -v '^ok ' "$results/build.log"
}

# Fails if two TAP tests have the same number, and prints the numbers.
tap_numbers_are_unique() {
	! basename -a "$top"/test/t/*.pl | sed 's/_.*//' | sort | uniq -d | grep .
}

part_layers() {
	check "layers build" make -C "$top" -s -k -j"$(nproc)" PG_CONFIG="$PG_CONFIG" layers-objects
	"$top/test/layers.pl" >"$results/layers.log" 2>&1
	tap_lines layers <"$results/layers.log" || fail layers
	grep '^#' "$results/layers.log"
	"$top/test/recursion.pl" >"$results/recursion.log" 2>&1
	tap_lines recursion <"$results/recursion.log" || fail recursion
	grep '^#' "$results/recursion.log"
	check "layers/TAP tests have different numbers" tap_numbers_are_unique
}

# unit_targets DIR: what make builds for the selected unit tests
unit_targets() {
	if [[ -n ${UNIT:-} ]]; then
		tests_of unit | sed "s|^|$1/|"
	else
		echo unit-tests
	fi
}

# part_unit [sanitize]: the unit tests, or those built with sanitizers
part_unit() {
	local prefix=${1:-unit} dir=build/unit${1:+-$1} t tests status

	tests=$(tests_of unit)
	# shellcheck disable=SC2046
	check "$prefix build" make -C "$top" -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG" ${1:+SANITIZE=1} $(unit_targets "$dir")
	# one per processor concurrently, the longest one first
	tests=$(grep -x resident_test <<<"$tests"; grep -vx resident_test <<<"$tests")
	ASAN_OPTIONS=detect_leaks=0 xargs -P"$(nproc)" -I{} sh -c '"$0/{}" >"$1-{}.log" 2>&1; echo $? >"$1-{}.status"' \
		"$top/$dir" "$results/$prefix" <<<"$tests"
	for t in $tests; do
		status=$(cat "$results/$prefix-$t.status")
		tap_lines "$prefix/$t" <"$results/$prefix-$t.log" || [[ $status != 0 ]] || pass "$prefix/$t"
		if [[ $status != 0 ]]; then
			fail "$prefix/$t (exit status $status)"
			grep -v '^ok' "$results/$prefix-$t.log" | tail -40
		fi
	done
}

part_sanitize() {
	part_unit sanitize
}

# regress_dirs DIR: makes an empty output folder, and prints pg_regress's options for folders. Before release 16 pg_regress
# looks for expected/ in the output folder, since then an option names it.
regress_dirs() {
	rm -rf "${1:?}"
	mkdir -p "$1"
	ln -s "$top/expected" "$1/expected"
	echo "--inputdir=$top/test --outputdir=$1 --dlpath=$pg_pkglibdir --bindir=$pg_bindir"
	if "$PG_REGRESS" --help | grep -q -e --expecteddir; then
		echo "--expecteddir=$top"
	fi
}

part_regress() {
	local out=$results/regress tests options

	tests=$(tests_of regress)
	pg_start "shared_preload_libraries='gpuagg'" max_worker_processes=32 max_parallel_workers=16 jit=off \
		autovacuum=off max_connections=20 autovacuum_max_workers=1 || { fail "regress (no cluster)"; return; }
	options=$(regress_dirs "$out")
	# shellcheck disable=SC2086
	"$PG_REGRESS" $options --host="$PGHOST" --port="$PGPORT" --user=postgres --dbname=regress \
		--load-extension=gpuagg $tests >"$results/regress.log" 2>&1
	tap_lines regress <"$results/regress.log" || { fail regress; cat "$results/regress.log"; }
	[[ ! -s $out/regression.diffs ]] || head -200 "$out/regression.diffs"
	server_alive regress
	pg_stop
}

# sets_the_cache TEST: whether a regression test sets gpuagg.cache at its beginning and never resets it. Then the setting of the
# cluster has no effect on the test.
sets_the_cache() {
	local file=$top/test/sql/$1.sql

	head -12 "$file" | grep -qE '^SET gpuagg\.cache = (eager|off|on);' &&
		! grep -qE '^\\c( |$)|RESET gpuagg\.cache;|RESET ALL|DISCARD ALL' "$file"
}

# Regression tests that a part omits unless EVERYTHING is set. The part cached omits tests of what happens to values after they were
# read. The part server omits tests of how rows are read and joined, of plans, of states that the CPU engine alone has, and of what
# participants of parallel plans exchange. Random queries of both parts have all of these, too.
omitted_cached='aggregates_modes argextreme_types early_groups eager_aggregation extension fallback_memory final_values first_groups forged_states
	group_bits grouping_sets hash_flooding heap_bitmaps heap_dead_entries heap_indexes histogram2d histogram_edges histogram_tools
	interval_states kept_groups long_lists lookup_order lookup_plans memory memory_settings moments nested_groups ordered ordered_cases
	ordered_grouping_sets ordered_large ordered_sets ordered_sorts own_aggregates own_states parallel_bitmaps parallel_distinct
	parallel_ordered parallel_pieces partial_states plan_shapes regression_states row_orders set_operations shared_parts
	exact_sums exact_sums_engines float_bits percentiles progress reentrant_types rounding several_scales shared_values sketch sorted states_of_databases
	states_of_releases stored_states strategy summary top_groups top_n top_rows value_counts'
omitted_server='argextreme_types early_groups cached_forms cache_bounds cache_extremes cache_memo eager_aggregation extension fallback_memory feed_columns few_times
	few_values forged_states heap_bitmaps heap_indexes heap_pages heap_tables histogram_tools lookup_many lookup_order lookup_plans
	lookup_subplans long_lists memory_settings nested_groups ordered_cases own_aggregates own_states parallel_bitmaps
	parallel_distinct parallel_ordered parallel_pieces partial_states plan_shapes reentrant_types set_operations several_scales
	shared_parts kept_groups own_types rounding shared_values states_of_databases states_of_releases strategy summary top_n top_rows usual_scales
	value_counts wide_tuples'

# omitted PART: prints the names of the tests that a part omits
omitted() {
	local list=omitted_$1

	[[ -n ${EVERYTHING:-}${REGRESS:-} ]] || xargs -n1 <<<"${!list}"
}

# The regression tests and the differential test with eager caching, without tests for which nothing would differ from the part
# regress. The seed differs from that of the part diff, so the queries differ too.
part_cached() {
	local results=$results/cached
	local -x PG_CONF="gpuagg.cache=eager;gpuagg.cache_memory=64MB"
	local DIFF_QUERIES=$((${DIFF_QUERIES:-600} / 2)) DIFF_SEED=$((${DIFF_SEED:-1} + 5000)) t

	mkdir -p "$results"
	REGRESS=$(tests_of cached | grep -vxFf <(omitted cached) | while read -r t; do sets_the_cache "$t" || echo "$t"; done | xargs)
	[[ -z $REGRESS ]] || part_regress
	part_diff
}

part_isolation() {
	local out=$results/isolation tests options

	tests=$(tests_of isolation)
	pg_start "shared_preload_libraries='gpuagg'" jit=off autovacuum=off max_prepared_transactions=4 \
		gpuagg.cache_renew=0 || { fail "isolation (no cluster)"; return; }
	options=$(regress_dirs "$out")
	# shellcheck disable=SC2086
	"$PG_ISOLATION" $options --host="$PGHOST" --port="$PGPORT" --user=postgres --dbname=isolation \
		--load-extension=gpuagg $tests >"$results/isolation.log" 2>&1
	tap_lines isolation <"$results/isolation.log" || { fail isolation; cat "$results/isolation.log"; }
	[[ ! -s $out/regression.diffs ]] || head -200 "$out/regression.diffs"
	server_alive isolation
	pg_stop
}

# through_server NAME PROGRAM QUERIES: regression tests, and QUERIES random queries, through the GPU server PROGRAM
through_server() {
	local out=$results/$1 program status

	program=$(pg_server "$2") || { fail "$1 (no server)"; return; }
	rm -rf "$out"
	mkdir -p "$out"
	pg_start "shared_preload_libraries='gpuagg'" "gpuagg.server_program='$program'" \
		max_worker_processes=32 max_parallel_workers=16 jit=off autovacuum=off || { fail "$1 (no cluster)"; return; }
	TESTS=${REGRESS:+$(tests_of server | xargs)} OMIT=$(omitted server | xargs) OUT_DIR=$out QUERIES=$3 SEED=${DIFF_SEED:-1} \
		"$top/test/gpu_server.sh" regress diff >"$results/$1.log" 2>&1
	status=$?
	tap_lines "$1" <"$results/$1.log" || status=1
	[[ $status == 0 ]] || { fail "$1"; tail -n 200 "$results/$1.log"; }
	server_alive "$1"
	pg_stop
}

part_server() {
	check "server build" make -C "$top" -s PG_CONFIG="$PG_CONFIG" server-stub
	through_server server "$top/build/test/gpuagg-server" $((${DIFF_QUERIES:-600} / 3))
}

# server_alive NAME: fails if a process of the cluster crashed during the part
server_alive() {
	cp "$pg_root/log" "$results/$1-server.log"
	if grep -qE 'PANIC|was terminated by signal|TRAP' "$results/$1-server.log"; then
		fail "$1: the server crashed"
		pg_crashes "$pg_root"
	fi
}

# tap_cause WORK TEST: prints in about 20 lines why a TAP test failed: its messages at the first failure, or its last lines;
# crashes; and the last errors in the logs of its clusters, some of which the test may expect.
tap_cause() {
	local log=$1/tmp_check/log/regress_log_$2

	# without initdb's messages, and without the times at the beginnings of lines, which newer releases print
	sed -E -e 's/^\[[0-9:.]+\]\([0-9.]+s\) //' -e '/^The files belonging to this database/,/-l logfile start$/d' \
		-e '/^(# (Running|Checking|Postmaster PID|No postmaster|issuing query)|###|waiting for server|server st|ok |$)/d' "$log" |
		awk '/^not ok|^error running SQL|^connection error|^psql (error|exited|timed out|returns)|Bail out|timed out| at [^ ]+ line [0-9]+\.$/ && !from { from = NR }
			{ line[NR] = $0 }
			END {
				if (!from) from = NR > 10 ? NR - 9 : 1
				for (n = from; n <= NR && n < from + 10; n++) print substr(line[n], 1, 400)
			}'
	pg_crashes "$1/tmp_check/log/$2"_*.log "$1/tmp_check/t_$2"_*
	find "$1/tmp_check/log" -name "$2_*.log" -exec grep -hE -A2 ' (ERROR|FATAL): ' {} + | cut -c1-240 | tail -n 8
	echo "--- the last lines:"
	tail -n 30 "$results/tap-$2.log" "$log"
}

# tap_template FOLDER: makes the data of a cluster with the extension in database postgres. The superuser is the system's user, as
# PostgreSQL's modules for tests expect.
tap_template() {
	pg_initdb "$1" && cd "$1" && as_pg pg_ctl -D "$1" -o "-k '$1' -h '' -F -c shared_preload_libraries=gpuagg" -l "$1.log" -w start &&
		as_pg psql -h "$1" -d postgres -Xqc 'CREATE EXTENSION gpuagg' && as_pg pg_ctl -D "$1" -w stop
}

part_tap() {
	local work perl t tests status server temporary

	tests=$(tests_of tap)
	work=$(mktemp -d "$pg_tmp/gpuagg-tap.XXXXXX")
	temporary=$(pg_memory_folder)
	perl=$pg_libdir/pgxs/src/test/perl
	make -C "$top" -s PG_CONFIG="$PG_CONFIG" server-stub interrupt-probe >/dev/null ||
		fail "tap/server-stub, tap/interrupt-probe (do not build)"
	cp -r "$top"/test/t/. "$work"
	server=$(pg_server "$top/build/test/gpuagg-server") || fail "tap/server-stub (not installed)"
	# the tests run as "nobody", so their files are copied to where "nobody" can read them
	mkdir -p "$work/build/test" "$work/src"
	cp "$top/build/test/interrupt_probe.so" "$work/build/test/"
	cp "$top/src/protocol.h" "$work/src/"
	chmod -R go+rX "$work"
	[[ $(id -u) == 0 ]] && chown -R nobody:nogroup "$work"
	(tap_template "$work/template") >"$results/tap-template.log" 2>&1 || { fail "tap (no cluster)"; cat "$results/tap-template.log"; }
	# Each test starts its own clusters. One more than the number of processors run concurrently. The last ones take longest, so
	# they are started first.
	for t in $(tac <<<"$tests"); do
		while (($(jobs -rp | wc -l) > $(nproc))); do
			wait -n
		done
		(
			cd "$work" || exit 1
			pg_core_files
			# releases before 16 read the folders' names from TESTDIR
			as_pg TESTDIR="$work" TESTDATADIR="$work/tmp_check" TESTLOGDIR="$work/tmp_check/log" \
				PERL5LIB="$perl:$work/lib" PG_REGRESS="$PG_REGRESS" TMPDIR="$pg_tmp" \
				PG_TEST_TIMEOUT_DEFAULT=300 TEMPLATE="$work/template" STUB_SERVER="$server" TOP="$work" TEMPORARY="$temporary" perl "$t.pl" >"$results/tap-$t.log" 2>&1
			echo $? >"$results/tap-$t.status"
		) &
	done
	wait
	for t in $tests; do
		status=$(<"$results/tap-$t.status")
		if grep -q '^1\.\.0 # SKIP' "$results/tap-$t.log"; then
			skip "tap/$t" "$(sed -n 's/^1\.\.0 # SKIP //p' "$results/tap-$t.log")"
			continue
		fi
		tap_lines "tap/$t" < <(sed -n '/^\(not \)\{0,1\}ok /p' "$results/tap-$t.log") || status=1
		if [[ $status != 0 ]]; then
			fail "tap/$t (exit status $status)"
			tap_cause "$work" "$t"
		fi
	done
	rm -rf "$work" "$temporary"
}

part_diff() {
	local queries=${DIFF_QUERIES:-600} seed=${DIFF_SEED:-1}

	diff_test diff --jobs "$(nproc)" --queries "$queries" --seed "$seed"
	diff_test diff-pages --jobs "$(nproc)" --pages --queries $((queries / 2)) --seed "$seed"
}

diff_test() {
	local name=$1

	"$top/test/diff/run.sh" "${@:2}" >"$results/$name.log" 2>&1
	tap_lines "$name" < <(sed -n '/^\(not \)\{0,1\}ok /p' "$results/$name.log") || fail "$name"
	grep -v '^ok ' "$results/$name.log" | tail -60
}

part_fuzz() {
	"$top/test/fuzz.sh" "${FUZZ_SECONDS:-5}" "${FUZZ_SEED:-1}" >"$results/fuzz.log" 2>&1
	tap_lines fuzz <"$results/fuzz.log" || fail fuzz
	grep -v '^ok ' "$results/fuzz.log"
}

# stress NAME SECONDS [option...]: one run of test/stress/cache.sh
stress() {
	"$top/test/stress/cache.sh" --seconds "$2" --seed "${STRESS_SEED:-1}" "${@:3}" >"$results/$1.log" 2>&1
	tap_lines "$1" < <(grep -E '^(not )?ok ' "$results/$1.log") || fail "$1"
	grep -v '^ok ' "$results/$1.log" | grep -v '^# \(writer\|reader\) '
}

part_stress() {
	stress stress "${STRESS_SECONDS:-16}"
	stress stress-server "$((${STRESS_SECONDS:-16} / 2))" --memory 256 --server "$top/build/test/gpuagg-server"
}

part_citus() {
	local status

	"$top/test/citus.sh" >"$results/citus.log" 2>&1
	status=$?
	tap_lines citus <"$results/citus.log" && [[ $status == 0 || $failed != 0 ]] || fail "citus (exit status $status)"
	grep -v '^ok ' "$results/citus.log"
}

part_clients() {
	"$top/test/clients.sh" >"$results/clients.log" 2>&1
	tap_lines clients <"$results/clients.log" || fail clients
	grep -vE '^(ok |##)' "$results/clients.log"
}

part_monitoring() {
	"$top/test/monitoring.sh" >"$results/monitoring.log" 2>&1
	tap_lines monitoring <"$results/monitoring.log" || fail monitoring
	grep -v '^ok ' "$results/monitoring.log"
}

part_fdw() {
	"$top/test/fdw.sh" >"$results/fdw.log" 2>&1
	tap_lines fdw <"$results/fdw.log" || fail fdw
	grep -v '^ok ' "$results/fdw.log"
}

part_cases() {
	local server

	check "cases/server build" make -C "$top" -s PG_CONFIG="$PG_CONFIG" server-stub
	server=$(pg_server "$top/build/test/gpuagg-server") || { fail "cases (no server)"; return; }
	ENGINES=cpu,cuda SERVER=$server "$top/test/cases.sh" "${CASES:-40}" "${CASES_SEED:-1}" >"$results/cases.log" 2>&1
	tap_lines cases <"$results/cases.log" || fail cases
	grep -v '^ok ' "$results/cases.log"
}

part_states() {
	"$top/test/states.sh" "${STATES:-2000}" "${STATES_SEED:-1}" >"$results/states.log" 2>&1
	tap_lines states <"$results/states.log" || fail states
	grep -v '^ok ' "$results/states.log"
}

part_docs() {
	pg_start "shared_preload_libraries='gpuagg'" || { fail "docs (no cluster)"; return; }
	"$top/test/docs.sh" >"$results/docs.log" 2>&1
	tap_lines docs <"$results/docs.log" || fail docs
	grep -v '^ok ' "$results/docs.log"
	pg_stop
}

# gpu_lines NAME STATUS: counts the lines of test/gpu.sh in NAME.log, and fails if its exit status was not 0
gpu_lines() {
	tap_lines "$1" < <(sed -e 's/^FAILED /not ok - /' -e 's/^skipped \(.*\) (\(.*\))$/ok - \1 # SKIP \2/' "$results/$1.log") &&
		[[ $2 == 0 ]] || fail "$1 (exit status $2)"
}

part_gpu() {
	local t

	if [[ -e /dev/nvidiactl && -n $(command -v nvcc) ]]; then
		make -C "$top" -s PG_CONFIG="$PG_CONFIG" gpu-tests >"$results/gpu.log" 2>&1 &&
			"$top/test/gpu.sh" >>"$results/gpu.log" 2>&1
		gpu_lines gpu $?
		return
	fi
	for t in "$top"/test/unit/gpu_*.cu; do
		[[ $t == */gpu_main.cu ]] || skip "gpu/$(basename "${t%.*}")" "no GPU"
	done
}

finish() {
	pg_stop
}

# prepare PART...: builds what the parts need before they start, so that no two parts build the same file concurrently. Sets
# $strict if all of src/ compiles without a warning.
prepare() {
	local part library= plain=() sanitized=()

	for part; do
		[[ $part == @(unit|sanitize|build|gpu) ]] || library=1
		case $part in
		layers) plain+=(layers-objects) ;;
		unit) mapfile -tO "${#plain[@]}" plain < <(unit_targets build/unit) ;;
		server | cases | tap | stress | monitoring) plain+=(server-stub) ;;
		sanitize) mapfile -tO "${#sanitized[@]}" sanitized < <(unit_targets build/unit-sanitize) ;;
		fuzz) sanitized+=(fuzz-programs) ;;
		esac
	done
	[[ -n $library ]] && make -C "$top" -s -k -j"$(nproc)" PG_CONFIG="$PG_CONFIG" strict-objects && strict=1
	[[ ${#plain[@]} == 0 ]] || make -C "$top" -s -k -j"$(nproc)" PG_CONFIG="$PG_CONFIG" "${plain[@]}"
	[[ ${#sanitized[@]} == 0 ]] || make -C "$top" -s -k -j"$(nproc)" PG_CONFIG="$PG_CONFIG" SANITIZE=1 "${sanitized[@]}"
}

# run_part NAME: runs a part, and writes its counts to a file; called in a subshell
run_part() {
	trap finish EXIT
	passed=0 failed=0 skipped=0
	echo "# $1"
	"part_$1"
	echo "$passed $failed $skipped" >"$results/part-$1.count"
}

# failures PART...: prints the failed tests of the parts, and up to 10 lines that follow each. With three or more failures it
# prints fewer lines, so that the last 20 lines of a run show several failures.
failures() {
	local part n=$((failed < 3 ? 10 : failed < 5 ? 6 : 3))

	for part; do
		[[ ! -e $results/part-$part.out ]] || awk -v n=$n '
			/^FAILED / { left = n; print; next }
			/^(ok|not ok|skipped|test|diff|---|\+\+\+) |^=====|^[0-9]*\.\.[0-9]*$|^# [a-z]+(: [0-9]+ s)?$|^$/ { next }
			left-- > 0 { print "    " substr($0, 1, 160) }' "$results/part-$part.out"
	done
}

mkdir -p "$results"
pg_need || exit 2
parts=("$@")
[[ $# -gt 0 ]] || parts=(tap regress sanitize server cached diff clients unit stress build fdw fuzz docs isolation monitoring states cases citus gpu layers strict)
for part in "${parts[@]}"; do
	[[ $(type -t "part_$part") == function ]] || { echo "no such part: $part" >&2; exit 2; }
	tests_of "$part" >/dev/null || exit 2
	rm -f "$results/part-$part.count"
done
rm -f "$results/part-install.out"
prepare "${parts[@]}" >"$results/prepare.log" 2>&1
# The library is linked from the objects of the part strict, unless the compiler warned.
pg_make_args=${strict:+STRICT=1}
for part in "${parts[@]}"; do
	case $part in
	regress | cached | isolation | server | tap | fuzz | states | cases | diff | stress | fdw | citus | clients | docs | monitoring)
		check "build and install" pg_install >"$results/part-install.out"
		cat "$results/part-install.out"
		export GPUAGG_INSTALLED=1
		break
		;;
	esac
done
trap 'trap - INT TERM; kill 0; exit 130' INT TERM
for part in "${parts[@]}"; do
	while (($(jobs -rp | wc -l) > $(nproc) + 1)); do
		wait -n
	done
	{
		began=$SECONDS
		(run_part "$part") >"$results/part-$part.out" 2>&1
		echo "# $part: $((SECONDS - began)) s" >>"$results/part-$part.out"
		flock "$results" cat "$results/part-$part.out"
	} &
done
wait
for part in "${parts[@]}"; do
	read -r -a counts < <(cat "$results/part-$part.count" 2>/dev/null) || {
		last=$(tail -n 8 "$results/part-$part.out")
		fail "$part (did not end)"
		echo "$last"
	} >>"$results/part-$part.out"
	passed=$((passed + ${counts[0]:-0})) failed=$((failed + ${counts[1]:-0})) skipped=$((skipped + ${counts[2]:-0}))
done
[[ $failed == 0 ]] || failures install "${parts[@]}"
echo "$passed passed, $failed failed$([[ $skipped == 0 ]] || echo ", $skipped skipped")"
[[ $failed == 0 && $passed != 0 ]]
