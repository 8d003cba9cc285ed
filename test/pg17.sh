#!/usr/bin/env bash
# Runs the tests on PostgreSQL 17, in a chroot of Debian 13 (trixie).
#
#	test/pg17.sh [part...]			parts as in test/run.sh; default: all
#
#	CHROOT							the chroot (default /var/tmp/gpuagg-trixie), made once and reused
#	DIFF_QUERIES, STRESS_SECONDS	as in test/run.sh (default: 500 and 30)
#
# Needs root on a Debian that can reach its package mirror, and 1.5 GB of disk. The exit status is that of the tests. The source tree is
# copied to the chroot each time, without build results.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=${CHROOT:-/var/tmp/gpuagg-trixie}
suite=trixie
[[ $(id -u) == 0 ]] || { echo "$0 needs root, for the chroot" >&2; exit 2; }
# shellcheck source=test/chroot.sh
source "$top/test/chroot.sh"

trap unmount EXIT
make_kept ca-certificates,gcc,make,libc6-dev,perl,postgresql-17,postgresql-server-dev-17,libipc-run-perl
rm -rf "$root/src/gpuagg"
copy_sources "$root/src/gpuagg"
# The chroot has no CUDA, so this is a build without GPU support.
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
	DIFF_QUERIES="${DIFF_QUERIES:-500}" STRESS_SECONDS="${STRESS_SECONDS:-30}" make -C /src/gpuagg -s test PARTS="$*"
