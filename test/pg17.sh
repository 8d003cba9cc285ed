#!/usr/bin/env bash
# Runs the tests on PostgreSQL 17, in a chroot of Debian 13 (trixie).
#
#	test/pg17.sh [part...]			parts as in test/run.sh; default: all
#
# Needs root on a Debian that can reach its package mirror, and 1.5 GB of disk.
# The chroot is made once, by debootstrap, in $CHROOT (default
# /var/tmp/gpuagg-trixie) and used again; the source tree is copied into it anew
# each time, so nothing of a build for another version gets mixed in.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
chroot=${CHROOT:-/var/tmp/gpuagg-trixie}
packages=ca-certificates,gcc,make,libc6-dev,perl,postgresql-17,postgresql-server-dev-17,libipc-run-perl
[[ $(id -u) == 0 ]] || { echo "$0 needs root, for the chroot" >&2; exit 2; }

if [[ ! -e $chroot/ready ]]; then
	command -v debootstrap >/dev/null || {
		apt-get update -qq
		apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
	}
	# shellcheck disable=SC2016
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/$' || true)
	echo "making a chroot of Debian 13 in $chroot"
	rm -rf "$chroot"
	debootstrap --variant=minbase trixie "$chroot" ${mirror:+"$mirror"} >"$chroot.log" 2>&1 ||
		{ tail -20 "$chroot.log" >&2; exit 1; }
	# Packages must not start services in there.
	printf '#!/bin/sh\nexit 101\n' >"$chroot/usr/sbin/policy-rc.d"
	chmod +x "$chroot/usr/sbin/policy-rc.d"
	chroot "$chroot" sh -c "apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends ${packages//,/ }" >>"$chroot.log" 2>&1 ||
		{ tail -20 "$chroot.log" >&2; exit 1; }
	touch "$chroot/ready"
fi

unmount() {
	umount "$chroot/dev/shm" "$chroot/proc" 2>/dev/null || true
}
trap unmount EXIT
mountpoint -q "$chroot/proc" || mount -t proc proc "$chroot/proc"
mkdir -p "$chroot/dev/shm"
mountpoint -q "$chroot/dev/shm" || mount -t tmpfs -o mode=1777 shm "$chroot/dev/shm"
mkdir -p "$chroot/src/gpuagg"
rm -rf "$chroot/src/gpuagg"
mkdir "$chroot/src/gpuagg"
tar cf - -C "$top" --exclude=./.git --exclude=./build --exclude=./tmp_install --exclude=./test/results \
	--exclude='*.o' --exclude='*.d' --exclude='*.bc' --exclude='*.so' . | tar xf - -C "$chroot/src/gpuagg"
# The chroot has no CUDA: this is a build without GPU support.
chroot "$chroot" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
	DIFF_QUERIES="${DIFF_QUERIES:-500}" STRESS_SECONDS="${STRESS_SECONDS:-30}" make -C /src/gpuagg -s test PARTS="$*"
