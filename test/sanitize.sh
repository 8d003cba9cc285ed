#!/usr/bin/env bash
# The extension and the GPU server (over the stub of the CUDA run time) under AddressSanitizer and
# UndefinedBehaviorSanitizer: parts of test/run.sh, in a copy of the tree that is built so.
#
#	test/sanitize.sh [part...]		parts of test/run.sh, default: regress tap fuzz diff
#
# DIFF_QUERIES (default 2000), DIFF_SEED, FUZZ_SECONDS and REGRESS as of test/run.sh.  Passes if no sanitizer
# reported anything and all tests passed; reports are kept in test/results/sanitize.
# Undefined behaviour ends the process, so that its test fails, and is said in the server's log.
#
# The installed PostgreSQL is not built so, but runs with AddressSanitizer's library, and
# test/sanitize/palloc.c lets it see each chunk of a memory context (PostgreSQL 15 alone): a read
# of what a reset or pfree freed, or beyond a chunk, is found in the extension's code and in the
# C library's functions wherever they are called from.
#
# The regression test that states sizes of memory is left out: here each chunk takes another size.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
pg_need || exit 2
results=$top/test/results/sanitize
copy=$top/build/sanitize/tree
reports=$(mktemp -d "$pg_tmp/gpuagg-sanitize.XXXXXX")
chmod 777 "$reports"
trap 'rm -rf "$reports"' EXIT

# The tree as it is, beside the objects of the last time.
copy_tree() {
	mkdir -p "$copy"
	# made with other flags, perhaps
	cmp -s "$top/Makefile" "$copy/Makefile" || find "$copy" -name '*.o' -delete
	(cd "$copy" && find . -type f ! -name '*.o' ! -name '*.d' ! -name '*.so' ! -path './tmp_install/*' ! -path './build/*' -delete)
	(cd "$top" && tar cf - --exclude='*.o' --exclude='*.d' --exclude='*.so' --exclude='*.bc' --exclude=test/results \
		Makefile ./*.control META.json README.md LICENSE .packaging expected kernels sql src test) | tar xf - -C "$copy" || return 1
	cp -p "$copy/test/sanitize/palloc.c" "$copy/src/sanitize_palloc.c"
}

# Puts a script in the place of "postgres" that starts it with AddressSanitizer's library, which must come first, and
# with the other one's, which reads its options before postgres writes over the environment; a test's own come after.
preload() {
	local real=$pg_bindir/postgres.real

	[[ -e $real ]] || mv "$pg_bindir/postgres" "$real" || return 1
	gcc -shared -fPIC -o "$pg_pkglibdir/nls.so" "$top/test/sanitize/nls.c" || return 1
	cat >"$pg_bindir/postgres" <<SCRIPT
#!/bin/bash
export LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so) $pg_pkglibdir/nls.so \${LD_PRELOAD:-}"
# pg_ctl restart starts what the server says that its name was
exec -a "$pg_bindir/postgres" "$real" "\$@"
SCRIPT
	chmod 755 "$pg_bindir/postgres"
}

# run_parts SEGV PART...: SEGV=1 to report signals as well; tests that send them want 0
run_parts() {
	local segv=$1

	shift
	ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:quarantine_size_mb=32:malloc_context_size=12
	# core's code is not checked, but does not find what was freed either
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
(unset PREFIX && source "$copy/test/pg.sh" && pg_install && preload) || { echo "the sanitizers' build failed"; exit 2; }
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
	# each place once
	cat "$reports"/* | grep -hE 'runtime error:|ERROR: AddressSanitizer|SUMMARY' | sed 's/^==[0-9]*==//' | sort | uniq -c | sort -rn | head -60
	echo "FAILED   sanitizers: reports of $n processes in $results"
	failed=1
else
	echo "ok       sanitizers: no report"
fi
exit $failed
