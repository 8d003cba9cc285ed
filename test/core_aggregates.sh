#!/usr/bin/env bash
# PostgreSQL's own regression tests with gpuagg.replace_builtin = on in the whole
# server and costs that let the custom scan win wherever it may run.
#
#	test/core_aggregates.sh [test...]
#
# Results must be those that core expects, apart from plans, the order of rows
# that no ORDER BY asks for, and the last digits of floats (core_normalise.pl).
# Without arguments the tests named below decide; the whole schedule runs all
# the same, for the tables that they need, and what differs elsewhere is listed.
#
# The tests come from Debian's source package of the installed PostgreSQL, which
# is fetched into $CORE_SOURCE (default /var/tmp/gpuagg-core-MAJOR) by apt-get;
# put an unpacked source tree there to do without.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
decisive=("$@")
[[ $# -gt 0 ]] || decisive=(aggregates groupingsets window select_distinct select_having join subselect union
	numeric float8 int8 partition_aggregate select_parallel)
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

# Some tests write files beside their input.
pg_start "shared_preload_libraries='gpuagg'" gpuagg.replace_builtin=on gpuagg.startup_cost=0 gpuagg.row_cost=0 \
	gpuagg.slot_cost=0 max_prepared_transactions=2 ${CORE_CONF:-} || exit 1
cp -r "$source_dir/src/test/regress" "$pg_root/regress"
mkdir -p "$pg_root/out"/{testtablespace,results}
cp -r "$results/lib" "$pg_root/lib"
chmod -R a+rX "$pg_root/regress" "$pg_root/lib" "$pg_root/out"
[[ $(id -u) == 0 ]] && chown -R nobody:nogroup "$pg_root/regress" "$pg_root/out"
cd "$pg_root/regress" || exit 1
[[ -d sql && -e parallel_schedule ]] || exit 1
options=(--inputdir=. --outputdir="$pg_root/out" --dlpath="$pg_root/lib" --bindir="$pg_bindir")
"$PG_REGRESS" --help | grep -q -e --expecteddir && options+=(--expecteddir=.)
as_pg "$PG_REGRESS" "${options[@]}" --host="$PGHOST" --port="$PGPORT" --user=postgres --max-concurrent-tests=20 \
	--schedule=parallel_schedule >"$results/log" 2>&1
cp -r "$pg_root/out/results" "$results/out/"
cp "$pg_root/log" "$results/server.log"

passed=0 failed=0 differing=()
listed=" ${decisive[*]} "
for out in "$results"/out/results/*.out; do
	name=$(basename "$out" .out)
	best=
	for expected in expected/"$name".out expected/"$name"_[0-9].out "$pg_root/out/expected/$name.out"; do
		[[ -e $expected ]] || continue
		diff -u <(perl "$top/test/core_normalise.pl" "$expected") <(perl "$top/test/core_normalise.pl" "$out") \
			>"$results/diff.new"
		if [[ -z $best || $(wc -l <"$results/diff.new") -lt $(wc -l <"$results/$name.diff") ]]; then
			mv "$results/diff.new" "$results/$name.diff"
			best=$expected
		fi
	done
	if [[ ! -s $results/$name.diff ]]; then
		rm -f "$results/$name.diff"
		[[ $listed != *" $name "* ]] || { echo "ok       core/$name" && passed=$((passed + 1)); }
	elif [[ $listed == *" $name "* ]]; then
		echo "FAILED   core/$name"
		head -60 "$results/$name.diff"
		failed=$((failed + 1))
	else
		differing+=("$name")
	fi
done
if grep -E 'PANIC|was terminated by signal|TRAP' "$results/server.log"; then
	echo "FAILED   core: the server crashed"
	failed=$((failed + 1))
fi
echo "differ, beside those that decide: ${differing[*]:-none} (see $results/NAME.diff)"
echo "custom scans in plans: $(cat "$results"/out/results/*.out | grep -c 'Custom Scan (GpuAgg)')"
echo "$passed passed, $failed failed"
[[ $failed == 0 && $passed != 0 ]]
