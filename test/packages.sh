#!/usr/bin/env bash
# Builds the Debian packages of .packaging/debian, and installs and tests them, each in a new chroot. Then runs the steps of
# .packaging/Dockerfile in another chroot.
#
#	test/packages.sh [suite...]		default: bookworm (PostgreSQL 15) and trixie (17)
#
#	PARTS="build install docker"	runs only these parts (default: all)
#	CHROOTS=/var/tmp/gpuagg-packages	the folder of the chroots; the packages are written to SUITE/ in it
#	CUDA=1			also builds the GPU server, which takes minutes, with the toolkit of the host's /usr/local/cuda. Its package is
#					installed and its program started, but it does not compute anything without a GPU
#	INSTALLCHECK=0	omits the regression tests with the installed package, which take most of the time
#
# Prints "ok" lines, and at the end "N passed, N failed". The exit status is 0 if all passed.
#
# Needs root on a Debian that can reach its package mirror, debootstrap (installed if it is missing), and 3 GB of disk. Chroots are new
# each time, copies of a minimal system that debootstrap makes once.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
chroots=${CHROOTS:-/var/tmp/gpuagg-packages}
parts=" ${PARTS:-build install docker} "
passed=0 failed=0
version=$(sed -n 's/^   "version": "\(.*\)",/\1/p' "$top/META.json")
[[ $(id -u) == 0 ]] || { echo "$0 needs root, for the chroots" >&2; exit 2; }

# check NAME COMMAND...: prints whether the command succeeds; its output goes to $chroots/SUITE/NAME.log
check() {
	local log="$chroots/$suite/${1//[^A-Za-z]/-}.log"

	if "${@:2}" >"$log" 2>&1; then
		echo "ok $suite: $1"
		passed=$((passed + 1))
	else
		echo "not ok $suite: $1 ($log)"
		tail -40 "$log"
		failed=$((failed + 1))
		return 1
	fi
}

# shellcheck source=test/chroot.sh
source "$top/test/chroot.sh"
trap unmount EXIT

# Builds the source package, and from it the binary packages, with pg_buildext and dpkg-buildpackage.
build_packages() {
	local name=postgresql-gpuagg-$version

	make_fresh build || return 1
	copy_sources "$root/src/$name"
	tar czf "$root/src/postgresql-gpuagg_$version.orig.tar.gz" -C "$root/src" "$name"
	cp -r "$top/.packaging/debian" "$root/src/$name/debian"
	enter root "apt-get install -y --no-install-recommends postgresql-server-dev-all dpkg-dev &&
		cd /src/$name && pg_buildext updatecontrol && apt-get build-dep -y --no-install-recommends ./ &&
		dpkg-buildpackage -j$(nproc) -us -uc ${CUDA:+-Ppkg.postgresql-gpuagg.cuda}" || return 1
	rm -f "$chroots/$suite"/*.deb
	cp "$root"/src/*.deb "$root"/src/*.dsc "$root"/src/*.tar.* "$chroots/$suite/"
}

lint() {
	enter root "apt-get install -y --no-install-recommends lintian && lintian --fail-on error --tag-display-limit 0 /src/*.changes"
}

# Installs the packages in a chroot without PostgreSQL: apt installs it as their dependency.
install_packages() {
	make_fresh install || return 1
	cp "$chroots/$suite"/*.deb "$root/tmp/"
	cp -r "$top/.packaging/debian/tests" "$root/tmp/"
	copy_sources "$root/src"
	chmod -R a+rX "$root/src"
	rm -f "$root"/tmp/*-dbgsym_*.deb
	enter root "apt-get install -y --no-install-recommends /tmp/*.deb"
	major=$(basename "$(ls -d "$root"/usr/lib/postgresql/*)")
	[[ -e $root/usr/lib/postgresql/$major/lib/gpuagg.so ]]
}

# Preloads the library in the cluster that Debian made. Its port is not 5432 if that is in use.
cluster() {
	enter root "[ -d /etc/postgresql/$major/main ] || pg_createcluster $major main; pg_ctlcluster $major main start" &&
		enter postgres "psql -c \"ALTER SYSTEM SET shared_preload_libraries = 'gpuagg'\" -c \"ALTER SYSTEM SET max_worker_processes = 32\"" &&
		enter root "pg_ctlcluster $major main restart" &&
		[[ $(enter postgres "psql -XAtc 'SHOW shared_preload_libraries'") == gpuagg ]] &&
		port=$(enter postgres "psql -XAtc 'SHOW port'")
}

# The GPU server and its libraries are installed exactly if its package was built.
server_program() {
	if [[ -n ${CUDA:-} ]]; then
		[[ -x $root/usr/lib/postgresql/$major/lib/gpuagg-server ]] && ! enter root "ldd /usr/lib/postgresql/$major/lib/gpuagg-server" | grep 'not found'
	else
		[[ ! -e $root/usr/lib/postgresql/$major/lib/gpuagg-server ]]
	fi
}

# Runs `make installcheck`. It needs the package of headers, which has pg_regress.
installcheck() {
	enter root "apt-get install -y --no-install-recommends make gcc postgresql-server-dev-$major && mkdir -m 777 /tmp/check" &&
		enter postgres "psql -c 'ALTER SYSTEM SET autovacuum = off' -c 'ALTER SYSTEM SET jit = off' -c 'ALTER SYSTEM SET max_parallel_workers = 16'" &&
		enter root "pg_ctlcluster $major main restart" &&
		enter postgres "PGPORT=$port make -C /tmp/check -f /src/Makefile NVCC= PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config installcheck ||
			{ head -n 100 /tmp/check/regression.diffs; false; }"
}

# Purging the packages removes all their files.
purge() {
	enter root "pg_ctlcluster $major main stop -m fast; apt-get purge -y 'postgresql-*-gpuagg*'" &&
		[[ -z $(find "$root/usr" -name '*gpuagg*' -print | tee /dev/stderr) ]]
}

[[ $# -gt 0 ]] || set -- bookworm trixie
for suite in "$@"; do
	mkdir -p "$chroots/$suite"
	check "bare system" make_bare || continue
	if [[ $parts == *" build "* ]]; then
		check "packages" build_packages || continue
		check "lintian" lint
	fi
	if [[ $parts == *" install "* ]]; then
		check "installation" install_packages || continue
		check "smoke test" enter root "/tmp/tests/smoke"
		check "cluster with shared_preload_libraries" cluster || continue
		check "GPU server" server_program
		[[ ${INSTALLCHECK:-1} == 0 ]] || check "installcheck" installcheck
		check "README" enter postgres "PATH=/usr/lib/postgresql/$major/bin:\$PATH PGHOST=/var/run/postgresql PGPORT=$port PGDATABASE=postgres /src/test/docs.sh"
		check "purge" purge
	fi
	if [[ $parts == *" docker "* ]]; then
		check "Dockerfile, cpu" "$top/test/dockerfile.sh" "$suite" cpu
		[[ -z ${CUDA:-} ]] || check "Dockerfile, gpu" "$top/test/dockerfile.sh" "$suite" gpu
	fi
	unmount
done
echo "$passed passed, $failed failed"
[[ $failed == 0 && $passed != 0 ]]
