#!/usr/bin/env bash
# Tests the build.
#
#	test/build.sh
#
#	PG_CONFIG	the PostgreSQL to build for
#	CC			the compiler (default: clang, or gcc if clang is not installed)
#
# Builds in another directory with WERROR=1, installs twice, uninstalls and cleans, and checks that no file remains. Checks META.json by the
# PGXN Meta Spec, and the archive of `make dist`. Prints "ok" lines. The exit status is 0 if all checks passed.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/build" "$work/root"

# check NAME COMMAND...: prints whether the command succeeds, and the end of its output if not
check() {
	if "${@:2}" >"$work/log" 2>&1; then
		echo "ok $1"
	else
		echo "not ok $1"
		tail -40 "$work/log"
		status=1
	fi
}

# Calls make like Debian's pg_buildext, but without the GPU server, which takes minutes to build, and without optimization
# and debugging information.
make_outside_tree() {
	make -s -C "$work/build" -f "$top/Makefile" VPATH="$top" -j"$(nproc)" ${PG_CONFIG:+"PG_CONFIG=$PG_CONFIG"} CC="$cc" DESTDIR="$work/root" \
		NVCC= WERROR=1 OPTIMIZE=-O0 COPT=-g0 with_llvm=no "$@"
}

check_install() {
	make_outside_tree install && find "$work/root" -name 'gpuagg*' -type f -printf '%f\n' | sort >"$work/files" &&
		diff - "$work/files" < <(cd "$top/sql" && printf '%s\n' gpuagg--*.sql gpuagg.control gpuagg.so | sort)
}

# Processes that have loaded the library keep the old file only if the new one is another file.
check_reinstall() {
	local library

	library=$(find "$work/root" -name gpuagg.so) && ln "$library" "$work/old.so" && make_outside_tree install &&
		[[ ! $library -ef $work/old.so ]]
}

# Adds a file in place of the server, as if a build with nvcc had installed it.
check_uninstall() {
	touch "$(find "$work/root" -name gpuagg.so -printf %h)/gpuagg-server"
	make_outside_tree uninstall
	[[ -z $(find "$work/root" -type f -print | tee /dev/stderr) ]]
}

check_clean() {
	mkdir -p "$work/build/tmp_install" "$work/build/test/results"
	make_outside_tree clean
	[[ -z $(find "$work/build" -mindepth 1 -print | tee /dev/stderr) ]]
}

# Checks what the PGXN Meta Spec 1.0.0 requires, and that files and versions are those of the tree.
check_meta() {
	(cd "$top" && perl -MJSON::PP -e '
		local $/;
		open(my $f, "<", "META.json") or die;
		my $m = decode_json(<$f>);
		open($f, "<", "gpuagg.control") or die;
		my ($default) = <$f> =~ /^default_version = \x27(.*)\x27/m;
		my $version = qr/^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}$/;
		my ($p, @bad) = $m->{provides}{gpuagg};

		push @bad, "no $_" for grep { !$m->{$_} } qw(name version abstract maintainer license provides meta-spec);
		push @bad, "keys: $_" for grep { !/^(name|version|abstract|description|maintainer|license|provides|prereqs|generated_by
			|meta-spec|tags|no_index|release_status|resources|x_\w+)$/x } keys %$m;
		push @bad, "name" if $m->{name} !~ m{^[^\s/\\[:cntrl:]]{2,}$};
		push @bad, "version $_" for grep { !/$version/ } $m->{version}, $p->{version}, $m->{"meta-spec"}{version};
		push @bad, "meta-spec" if $m->{"meta-spec"}{version} ne "1.0.0";
		push @bad, "license" if ref $m->{license} || $m->{license} ne "postgresql";
		push @bad, "file $_" for grep { !-f } @$p{qw(file docfile)};
		push @bad, "file is not the script of version $default" if $p->{file} ne "sql/gpuagg--$default.sql";
		push @bad, "provides: no abstract" if !$p->{abstract};
		push @bad, "version is not that of gpuagg.control" if $m->{version} !~ /^\Q$default\E\./ || $p->{version} ne $m->{version};
		for my $phase (keys %{$m->{prereqs}}) {
			push @bad, "prereqs: $phase" if $phase !~ /^(configure|build|test|runtime|develop)$/;
			for my $relation (keys %{$m->{prereqs}{$phase}}) {
				push @bad, "prereqs: $relation" if $relation !~ /^(requires|recommends|suggests|conflicts)$/;
				push @bad, "prereqs: $_" for grep { !/$version/ } values %{$m->{prereqs}{$phase}{$relation}};
			}
		}
		push @bad, "tags" if grep { length > 255 || m{[/\\[:cntrl:]]} } @{$m->{tags}};
		die map { "META.json: $_\n" } @bad if @bad;')
}

# Searches the archive for the names of files. They are stored uncompressed.
check_dist() {
	local name

	make_outside_tree dist || return 1
	name=$(cd "$work/build" && ls gpuagg-*.zip) && name=${name%.zip} || return 1
	for file in META.json README.md LICENSE CHANGELOG.md Makefile gpuagg.control sql/gpuagg--1.0.sql sql/gpuagg--1.0--1.1.sql sql/gpuagg--1.1.sql \
		sql/REFERENCE.md sql/DISTRIBUTED.md .packaging/debian/control.in; do
		grep -aq "$name/$file" "$work/build/$name.zip" || { echo "$file is not in $name.zip"; return 1; }
	done
}

cc=${CC:-$(command -v clang || ls /usr/lib/llvm-*/bin/clang 2>/dev/null | tail -1)}
cc=${cc:-gcc}
check "build in another directory, with $(basename "$cc")" make_outside_tree all
check "install" check_install
check "install replaces the library by a new file" check_reinstall
check "uninstall leaves nothing" check_uninstall
if [[ -e $top/.git ]] && command -v git >/dev/null; then
	check "make dist" check_dist
else
	echo "ok make dist # SKIP no git"
fi
check "clean leaves nothing" check_clean
check "META.json" check_meta
exit $status
