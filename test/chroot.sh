# shellcheck shell=bash
# Chroots of Debian for tests of packages and of other releases. Scripts source this file; they need root.
#
#	make_bare				makes a minimal system of the suite in $chroots/$suite/bare, with debootstrap from apt's mirror, once
#	make_fresh NAME			sets $root to a new copy of the minimal system, mounted. With CUDA=1, the host's toolkit is mounted
#							in it, except if NAME is install
#	make_kept PACKAGES		makes a system with PACKAGES (separated by commas) in $root, once, and mounts it. Needs no $chroots
#	enter USER COMMAND		runs a command of bash in $root
#	copy_sources FOLDER		copies the source tree without build results
#	mount_in NAME, unmount	mount and unmount what make_fresh mounts in $root
#
# Callers set top (the source tree), suite (bookworm or trixie), and chroots (a folder) or root (for make_kept).

# Unmounts everything in $root.
unmount() {
	local at

	[[ -n ${root:-} ]] || return 0
	for at in /usr/local/cuda /dev/shm /proc; do
		if mountpoint -q "$root$at"; then
			umount "$root$at"
		fi
	done
}

mount_in() {
	mount -t proc proc "$root/proc"
	mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
	if [[ -n ${CUDA:-} && $1 != install ]]; then
		mount --bind -o ro "$(realpath /usr/local/cuda)" "$root/usr/local/cuda"
	fi
}

# enter USER COMMAND: runs the command in the chroot $root
enter() {
	chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		setpriv --reuid="$1" --regid="$(chroot "$root" id -g "$1")" --init-groups env HOME=/tmp bash -c "cd /tmp && $2"
}

# Makes the minimal system of the suite.
make_bare() {
	local mirror

	[[ -e $chroots/$suite/bare/etc/debian_version ]] && return 0
	command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap; }
	# shellcheck disable=SC2016
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/$' || true)
	rm -rf "$chroots/$suite/bare.new"
	debootstrap --variant=minbase "$suite" "$chroots/$suite/bare.new" ${mirror:+"$mirror"} &&
		mv "$chroots/$suite/bare.new" "$chroots/$suite/bare"
}

# make_fresh NAME: makes a new chroot, and sets $root to it
make_fresh() {
	unmount
	root=$chroots/$suite/$1
	rm -rf --one-file-system "$root" && cp -a "$chroots/$suite/bare" "$root" && mkdir -p "$root/dev/shm" "$root/usr/local/cuda" || return 1
	# packages must not start services
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod +x "$root/usr/sbin/policy-rc.d"
	mount_in "$1"
	enter root "apt-get update -qq"
}

# make_kept PACKAGES: makes the chroot $root if it does not exist, and mounts it
make_kept() {
	local mirror

	if [[ ! -e $root/ready ]]; then
		command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap >/dev/null; }
		# shellcheck disable=SC2016
		mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/$' || true)
		echo "making a chroot of Debian ${suite:?} in $root"
		rm -rf --one-file-system "$root"
		debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 ||
			{ tail -20 "$root.log" >&2; return 1; }
		# packages must not start services in the chroot
		printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
		chmod +x "$root/usr/sbin/policy-rc.d"
		chroot "$root" sh -c "apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends ${1//,/ }" >>"$root.log" 2>&1 ||
			{ tail -20 "$root.log" >&2; return 1; }
		touch "$root/ready"
	fi
	mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
	mkdir -p "$root/dev/shm"
	mountpoint -q "$root/dev/shm" || mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
}

# copy_sources FOLDER: copies the source tree, without build results, to FOLDER
copy_sources() {
	mkdir -p "$1"
	tar cf - -C "$top" --exclude=./.git --exclude=./build --exclude=./tmp_install --exclude=./test/results --exclude='./gpuagg-*.zip' \
		--exclude='*.o' --exclude='*.d' --exclude='*.bc' --exclude='*.so' . | tar xf - -C "$1"
}
