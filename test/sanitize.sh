#!/usr/bin/env bash
# Tests the extension and the GPU server (over the stub of the CUDA run time) with AddressSanitizer and UndefinedBehaviorSanitizer.
# Runs parts of test/run.sh in a copy of the tree that is built with them.
#
#	test/sanitize.sh [part...]		parts of test/run.sh, default: regress tap fuzz diff
#
#	DIFF_QUERIES, DIFF_SEED, FUZZ_SECONDS, REGRESS		as in test/run.sh
#
# The exit status is 0 if all tests passed and no sanitizer reported an error. Reports are written to test/results/sanitize. Undefined
# behaviour ends the process, so that its test fails, and is reported in the server's log.
#
# The installed PostgreSQL is not built with sanitizers, but runs with AddressSanitizer's library. On PostgreSQL 15,
# test/sanitize/palloc.c makes each chunk of a memory context visible to it. So reads of freed memory, and reads after the end of a
# chunk, are found in the extension's code and in functions of the C library.
#
# The regression test of memory sizes is omitted, as chunks have other sizes here.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
pg_need || exit 2
results=$top/test/results/sanitize
copy=$top/build/sanitize/tree
reports=$(mktemp -d "$pg_tmp/gpuagg-sanitize.XXXXXX")
chmod 777 "$reports"
trap 'rm -rf "$reports"' EXIT

# Copies the tree, and keeps the objects of the last run.
copy_tree() {
	mkdir -p "$copy"
	# objects may be built with other flags
	cmp -s "$top/Makefile" "$copy/Makefile" || find "$copy" -name '*.o' -delete
	(cd "$copy" && find . -type f ! -name '*.o' ! -name '*.d' ! -name '*.so' ! -path './tmp_install/*' ! -path './build/*' -delete)
	(cd "$top" && tar cf - --exclude='*.o' --exclude='*.d' --exclude='*.so' --exclude='*.bc' --exclude=test/results \
		Makefile ./*.control META.json README.md LICENSE .packaging expected kernels sql src test) | tar xf - -C "$copy" || return 1
	cp -p "$copy/test/sanitize/palloc.c" "$copy/src/sanitize_palloc.c"
}

# Replaces "postgres" by a script that preloads AddressSanitizer's library, which must be the first, and then
# UndefinedBehaviorSanitizer's, which reads its options before postgres overwrites the environment. Libraries that a test preloads follow.
wrap_postgres() {
	local real=$pg_bindir/postgres.real

	[[ -e $real ]] || mv "$pg_bindir/postgres" "$real" || return 1
	gcc -shared -fPIC -o "$pg_pkglibdir/nls.so" "$top/test/sanitize/nls.c" || return 1
	cat >"$pg_bindir/postgres" <<SCRIPT
#!/bin/bash
export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so) $pg_pkglibdir/nls.so \${LD_PRELOAD:-}"
# pg_ctl restart starts the program by the name that the server had
exec -a "$pg_bindir/postgres" "$real" "\$@"
SCRIPT
	chmod 755 "$pg_bindir/postgres"
}

# run_parts SEGV PART...: runs parts of test/run.sh. SEGV=1 reports signals as well; tests that send signals need 0
run_parts() {
	local segv=$1

	shift
	ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:quarantine_size_mb=32:malloc_context_size=12
	# fill freed memory, as reads by PostgreSQL's own code are not checked
	ASAN_OPTIONS+=:max_free_fill_size=1048576:free_fill_byte=127
	ASAN_OPTIONS+=:handle_segv=$segv:handle_sigbus=$segv:log_path=$reports/asan
	export ASAN_OPTIONS UBSAN_OPTIONS=print_stacktrace=1
	REGRESS=${REGRESS:-$tests} "$copy/test/run.sh" "$@" || failed=1
}

failed=0
rm -rf "$results"
mkdir -p "$results"
export SANITIZE=1
copy_tree || exit 2
# shellcheck source=test/pg.sh
(unset PREFIX && source "$copy/test/pg.sh" && pg_install && wrap_postgres) || { echo "the build with sanitizers failed"; exit 2; }
tests=$(cd "$copy/test/sql" && ls ./*.sql | sed 's|^\./||; s|\.sql$||' | grep -vx memory)
unset PREFIX GPUAGG_INSTALLED
parts=("$@")
[[ $# -gt 0 ]] || parts=(regress tap fuzz diff)
for part in "${parts[@]}"; do
	run_parts "$([[ $part == tap ]] && echo 0 || echo 1)" "$part"
done
cp -r "$copy/test/results" "$results/run" 2>/dev/null
n=$(find "$reports" -type f | wc -l)
if ((n > 0)); then
	cp "$reports"/* "$results/"
	# print each place once
	cat "$reports"/* | grep -hE 'runtime error:|ERROR: AddressSanitizer|SUMMARY' | sed 's/^==[0-9]*==//' | sort | uniq -c | sort -rn | head -60
	echo "FAILED   sanitizers: reports of $n processes in $results"
	failed=1
else
	echo "ok       sanitizers report no error"
fi
exit $failed
