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
root=${CHROOT:-/var/tmp/gpuagg-trixie}
suite=trixie
[[ $(id -u) == 0 ]] || { echo "$0 needs root, for the chroot" >&2; exit 2; }
# shellcheck source=test/chroot.sh
source "$top/test/chroot.sh"

trap unmount EXIT
kept ca-certificates,gcc,make,libc6-dev,perl,postgresql-17,postgresql-server-dev-17,libipc-run-perl
rm -rf "$root/src/gpuagg"
sources "$root/src/gpuagg"
# The chroot has no CUDA: this is a build without GPU support.
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
	DIFF_QUERIES="${DIFF_QUERIES:-500}" STRESS_SECONDS="${STRESS_SECONDS:-30}" make -C /src/gpuagg -s test PARTS="$*"
