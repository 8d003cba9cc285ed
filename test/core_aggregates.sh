#!/usr/bin/env bash
# PostgreSQL's own regression tests with gpuagg.replace_builtin = on in the whole
# server and costs that let the custom scan win wherever it may run.
#
#	test/core_aggregates.sh [test...]
#
# Results must be those that core expects, apart from plans, the order of rows
# that no ORDER BY asks for, and the last digits of floats (core_normalise.pl).
# The whole schedule runs twice, first with gpuagg.enabled = off: tests whose outcome
# depends on the machine or on the packaging differ from core's files without us, and
# are compared with that run.  Every test decides; arguments name those to judge alone.
#
# The tests come from Debian's source package of the installed PostgreSQL, which
# is fetched into $CORE_SOURCE (default /var/tmp/gpuagg-core-MAJOR) by apt-get;
# put an unpacked source tree there to do without.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
pg_need && pg_install || exit 1
major=$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
source_dir=${CORE_SOURCE:-/var/tmp/gpuagg-core-$major}
results=$top/test/results/core
trap pg_stop EXIT

# The newest source that the mirrors hold, or else the release's.
fetch() {
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

[[ -d $source_dir/src/test/regress ]] || fetch || { echo "cannot get PostgreSQL's source" >&2; exit 1; }
rm -rf "$results"
mkdir -p "$results"/{lib,out}
cc -shared -fPIC -O1 -I"$("$PG_CONFIG" --includedir-server)" -o "$results/lib/regress.so" \
	"$source_dir/src/test/regress/regress.c" || exit 1
cp "$pg_libdir"/{autoinc,refint}.so "$results/lib/" 2>/dev/null

# run_schedule NAME CONF...: outputs in $results/NAME, the server's log beside.
run_schedule() {
	local name=$1 options

	shift
	pg_start "shared_preload_libraries='gpuagg'" max_prepared_transactions=2 "$@" || exit 1
	# some tests write files beside their input
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
	# paths in answers
	sed -i "s|$pg_root|ROOT|g" "$results/$name"/*.out "$results/expected"/*.out
	cp "$pg_root/log" "$results/$name-server.log"
	pg_stop
}

run_schedule off gpuagg.enabled=off
run_schedule on gpuagg.replace_builtin=on gpuagg.startup_cost=0 gpuagg.row_cost=0 gpuagg.slot_cost=0 ${CORE_CONF:-}

# differs A B: what core_normalise.pl leaves of their difference, on stdout.
differs() {
	! diff -u <(perl "$top/test/core_normalise.pl" "$1") <(perl "$top/test/core_normalise.pl" "$2")
}

# same_as_core NAME OUT: is it one of the outcomes that core expects, or that of the run without us?
same_as_core() {
	local expected

	for expected in "$results/expected/$1".out "$results/expected/$1"_[0-9].out; do
		[[ -e $expected ]] || continue
		differs "$expected" "$2" >"$results/$1.diff" || return 0
	done
	differs "$results/off/$1.out" "$2" >"$results/$1.diff" || { compared+=("$1"); return 0; }
	return 1
}

passed=0 failed=0 compared=()
for out in "$results"/on/*.out; do
	name=$(basename "$out" .out)
	[[ $# == 0 || " $* " == *" $name "* ]] || continue
	if same_as_core "$name" "$out"; then
		rm -f "$results/$name.diff"
		echo "ok       core/$name"
		passed=$((passed + 1))
	else
		echo "FAILED   core/$name"
		head -60 "$results/$name.diff"
		failed=$((failed + 1))
	fi
done
if grep -E 'PANIC|was terminated by signal|TRAP' "$results/on-server.log"; then
	echo "FAILED   core: the server crashed"
	failed=$((failed + 1))
fi
echo "differ from core's files without gpuagg as well: ${compared[*]:-none}"
echo "custom scans in plans: $(cat "$results"/on/*.out | grep -c 'Custom Scan (GpuAgg)')"
echo "$passed passed, $failed failed"
[[ $failed == 0 && $passed != 0 ]]
