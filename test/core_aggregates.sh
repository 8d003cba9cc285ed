#!/usr/bin/env bash
# Runs PostgreSQL's own regression tests with gpuagg.replace_builtin = on, and with costs of zero, so that the custom scan is used
# wherever it can run.
#
#	test/core_aggregates.sh [test...]	default: all tests
#
#	CORE_SOURCE	an unpacked source tree of PostgreSQL (default /var/tmp/gpuagg-core-MAJOR). If it is missing, apt-get downloads
#				Debian's source package of the installed PostgreSQL
#	CORE_CONF	more settings of the cluster
#	PG_CONFIG	the PostgreSQL to test
#
# Prints a line for each test. The exit status is 0 if all passed.
#
# Results must be PostgreSQL's expected ones, except for plans, the order of rows without ORDER BY, and the last digits of floats
# (core_normalise.pl). The whole schedule runs twice, first with gpuagg.enabled = off. Some outcomes depend on the machine or on the
# packaging and differ from the expected files even without the extension: they are compared with the first run.
#
# Both runs are repeated with settings that make the planner prefer hash joins, so that more joins are lookups. Their tests have "(joins)"
# after their names. Plans are also in the server's log, so that those of queries without EXPLAIN are counted.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
pg_need && pg_install || exit 1
major=$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
source_dir=${CORE_SOURCE:-/var/tmp/gpuagg-core-$major}
results=$top/test/results/core
trap pg_stop EXIT

# Downloads the source of the newest minor release, or else of the one in Debian's release.
fetch_source() {
	local tmp where options status=1

	tmp=$(mktemp -d)
	chmod 755 "$tmp"
	options=(-qq -o "Dir::Etc::sourcelist=$tmp/sources.list" -o Dir::Etc::sourceparts=- \
		-o "Dir::State::lists=$tmp/lists" -o APT::Sandbox::User=root)
	for where in '/debian[a-z-]*/ ' '/debian/ '; do
		rm -rf "$tmp/lists"
		mkdir "$tmp/lists"
		# shellcheck disable=SC2016
		apt-get indextargets 'Created-By: Packages' --format \
			'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(RELEASE) $(COMPONENT)' |
			grep "$where" | sort -u >"$tmp/sources.list"
		(cd "$tmp" && apt-get "${options[@]}" update &&
			apt-get "${options[@]}" source --download-only "postgresql-$major") 2>"$tmp/err" || continue
		mkdir -p "$source_dir"
		tar xf "$tmp"/postgresql-"$major"_*.orig.tar.* -C "$source_dir" --strip-components=1
		status=$?
		break
	done
	[[ $status == 0 ]] || cat "$tmp/err" >&2
	rm -rf "$tmp"
	return $status
}

[[ -d $source_dir/src/test/regress ]] || fetch_source || { echo "cannot get PostgreSQL's source" >&2; exit 1; }
rm -rf "$results"
mkdir -p "$results"/{lib,out}
cc -shared -fPIC -O1 -I"$("$PG_CONFIG" --includedir-server)" -o "$results/lib/regress.so" \
	"$source_dir/src/test/regress/regress.c" || exit 1
cp "$pg_libdir"/{autoinc,refint}.so "$results/lib/" 2>/dev/null

# run_schedule NAME CONF...: runs all tests. Results go to $results/NAME, the server's log to $results/NAME-server.log.
run_schedule() {
	local name=$1 options

	shift
	pg_start "shared_preload_libraries='gpuagg'" max_prepared_transactions=2 "$@" || exit 1
	# some tests write files next to their input
	cp -r "$source_dir/src/test/regress" "$pg_root/regress"
	mkdir -p "$pg_root/out"/{testtablespace,results}
	cp -r "$results/lib" "$pg_root/lib"
	chmod -R a+rX "$pg_root/regress" "$pg_root/lib" "$pg_root/out"
	[[ $(id -u) == 0 ]] && chown -R nobody:nogroup "$pg_root/regress" "$pg_root/out"
	[[ -d $pg_root/regress/sql && -e $pg_root/regress/parallel_schedule ]] || exit 1
	options=(--inputdir=. --outputdir="$pg_root/out" --dlpath="$pg_root/lib" --bindir="$pg_bindir")
	"$PG_REGRESS" --help | grep -q -e --expecteddir && options+=(--expecteddir=.)
	(cd "$pg_root/regress" &&
		as_pg "$PG_REGRESS" "${options[@]}" --host="$PGHOST" --port="$PGPORT" --user=postgres --max-concurrent-tests=20 \
			--schedule=parallel_schedule) >"$results/$name.log" 2>&1
	mkdir -p "$results/$name"
	cp "$pg_root/out/results"/*.out "$results/$name/"
	mkdir -p "$results/expected"
	cp "$pg_root/regress/expected"/*.out "$results/expected/"
	cp "$pg_root/out/expected"/*.out "$results/expected/" 2>/dev/null
	# results contain paths
	sed -i "s|$pg_root|ROOT|g" "$results/$name"/*.out "$results/expected"/*.out
	cp "$pg_root/log" "$results/$name-server.log"
	pg_stop
}

taken=(gpuagg.replace_builtin=on gpuagg.startup_cost=0 gpuagg.row_cost=0 gpuagg.slot_cost=0)
joins=(enable_nestloop=off enable_mergejoin=off session_preload_libraries=auto_explain auto_explain.log_min_duration=0
	auto_explain.log_nested_statements=on)
run_schedule off gpuagg.enabled=off
run_schedule on "${taken[@]}" ${CORE_CONF:-}
run_schedule joins-off gpuagg.enabled=off "${joins[@]}"
run_schedule joins-on "${taken[@]}" "${joins[@]}" ${CORE_CONF:-}

# differs A B: succeeds if the files differ after core_normalise.pl, and prints the difference
differs() {
	! diff -u <(perl "$top/test/core_normalise.pl" "$1") <(perl "$top/test/core_normalise.pl" "$2")
}

# same_as_core NAME RUN WITHOUT: succeeds if the output of the test in a run is one of the expected ones, or that of the run without the
# extension
same_as_core() {
	local expected

	for expected in "$results/expected/$1".out "$results/expected/$1"_[0-9].out; do
		[[ -e $expected ]] || continue
		differs "$expected" "$results/$2/$1.out" >"$results/$1.diff" || return 0
	done
	differs "$results/$3/$1.out" "$results/$2/$1.out" >"$results/$1.diff" || { compared+=("$1"); return 0; }
	return 1
}

passed=0 failed=0
# compare_run RUN WITHOUT SUFFIX [test...]: compares the outputs of a run
compare_run() {
	local run=$1 without=$2 suffix=$3 compared=() out name

	shift 3
	for out in "$results/$run"/*.out; do
		name=$(basename "$out" .out)
		[[ $# == 0 || " $* " == *" $name "* ]] || continue
		if same_as_core "$name" "$run" "$without"; then
			rm -f "$results/$name.diff"
			echo "ok       core/$name$suffix"
			passed=$((passed + 1))
		else
			echo "FAILED   core/$name$suffix"
			head -60 "$results/$name.diff"
			failed=$((failed + 1))
		fi
	done
	if grep -E 'PANIC|was terminated by signal|TRAP' "$results/$run-server.log"; then
		echo "FAILED   core$suffix: the server crashed"
		failed=$((failed + 1))
	fi
	echo "tests that differ from the expected files without gpuagg, too$suffix: ${compared[*]:-none}"
}

compare_run on off "" "$@"
compare_run joins-on joins-off " (joins)" "$@"
lookups=$(grep -c 'Lookup:' "$results/joins-on-server.log")
echo "custom scans in plans: $(cat "$results"/on/*.out | grep -c 'Custom Scan (GpuAgg)'); lookups: $lookups"
if [[ $lookups == 0 ]]; then
	echo "FAILED   core: no join is a lookup"
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[[ $failed == 0 && $passed != 0 ]]
