#!/usr/bin/env bash
# Runs the steps of .packaging/Dockerfile in chroots of Debian, then its CMD, and a query.
#
#	test/dockerfile.sh SUITE TARGET		SUITE is bookworm or trixie, TARGET is cpu or gpu
#
#	CHROOTS		the folder of the chroots (default /var/tmp/gpuagg-packages)
#	CUDA=1		mounts /usr/local/cuda in the chroots; TARGET gpu needs it
#
# test/packages.sh calls this script, and its header lists the requirements. The exit status is that of the query.
#
# Docker is not needed: each stage is a chroot. In place of the image "postgres" it is a Debian with its own PostgreSQL, in place of
# "nvidia/cuda" a Debian with the host's toolkit. So this does not test the images themselves, their entry points, or a GPU.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
chroots=${CHROOTS:-/var/tmp/gpuagg-packages}
suite=$1 target=$2
# shellcheck source=test/chroot.sh
source "$top/test/chroot.sh"
trap unmount EXIT

# Prints the instructions of the file, one per line.
instructions() {
	sed -e '/^#/d' -e '/^$/d' "$top/.packaging/Dockerfile" | sed -e ':a' -e '/\\$/{N;s/ *\\\n[ \t]*/ /;ba' -e '}'
}

# stages TARGET: prints the stages that TARGET needs, and TARGET, in the order of the file
stages() {
	instructions | awk -v target="$1" '
		$1 == "FROM" { stage = $4; order[++n] = stage; from[stage] = $2 }
		$1 == "COPY" && $2 ~ /^--from=/ { sub(/--from=/, "", $2); from[stage] = from[stage] " " $2 }
		function mark(stage,  list, i, count) {
			needed[stage] = 1
			count = split(from[stage], list, " ")
			for (i = 1; i <= count; i++)
				if (list[i] in from)
					mark(list[i])
		}
		END { mark(target); for (i = 1; i <= n; i++) if (needed[order[i]]) print order[i] }'
}

# image NAME STAGE: makes a chroot in place of the image, and sets $root to it
image() {
	case $1 in
	postgres:*)
		make_fresh "docker-$2"
		enter root "apt-get install -y -qq --no-install-recommends postgresql"
		pg_major=$(basename "$(ls -d "$root"/usr/lib/postgresql/*)")
		mkdir "$root/docker-entrypoint-initdb.d"
		;;
	*cuda*)
		[[ -n ${CUDA:-} ]] || { echo "stage $2 needs CUDA=1" >&2; exit 1; }
		make_fresh "docker-$2"
		;;
	*)
		unmount
		root=$chroots/$suite/docker-$2
		rm -rf --one-file-system "$root"
		cp -a "$chroots/$suite/docker-$1" "$root"
		mount_in "$2"
		;;
	esac
}

# copy ARGS...: runs COPY with one source, from the context or from another stage
copy() {
	local source=$1 to=$root$2 from

	case $source in
	--from=*)
		from=$chroots/$suite/docker-${source#--from=}$2
		to=$root$3
		if [[ -d $from ]]; then
			cp -a "$from/." "$to"
		else
			cp -a "$from" "$to"
		fi
		;;
	.) copy_sources "$to" ;;
	*) echo "COPY $source is not supported by this test" >&2; exit 1 ;;
	esac
}

# expand TEXT: replaces ${PG_MAJOR}. Variables in FROM need no replacement, as images are chosen by name.
expand() {
	local line=$1

	# shellcheck disable=SC2016
	echo "${line//'${PG_MAJOR}'/${pg_major:-}}"
}

rm -rf --one-file-system "$chroots/$suite"/docker-*
for stage in $(stages "$target"); do
	current=
	while read -r instruction; do
		read -r word rest <<<"$instruction"
		if [[ $word == FROM ]]; then
			read -r from _ current <<<"$rest"
			[[ $current != "$stage" ]] || image "$from" "$stage"
			continue
		fi
		[[ $current == "$stage" ]] || continue
		rest=$(expand "$rest")
		echo "$stage: $word $rest"
		# shellcheck disable=SC2086
		case $word in
		COPY) copy $rest ;;
		RUN) enter root "set -e; ${rest}" ;;
		CMD) command=$(tr -d '[]",' <<<"$rest") ;;
		ENV | ARG) ;;
		*) echo "$word is not supported by this test" >&2; exit 1 ;;
		esac
	done < <(instructions)
done

# Does what the image's entry point does: makes a cluster, starts it with CMD, and runs the files of /docker-entrypoint-initdb.d.
enter postgres "export PATH=/usr/lib/postgresql/$pg_major/bin:\$PATH PGHOST=/tmp
	initdb -D /tmp/data -A trust >/dev/null
	$command -D /tmp/data -c listen_addresses= -c unix_socket_directories=/tmp >/tmp/log 2>&1 &
	for i in \$(seq 100); do ! pg_isready -q || break; sleep 0.1; done
	psql -Xq -v ON_ERROR_STOP=1 -f /docker-entrypoint-initdb.d/10-gpuagg.sql -c \"SET gpuagg.require = 'require'\" \
		-c \"SELECT gpu_count(*), gpu_sum(i) FROM generate_series(1, 100000) i\" \
		-c \"EXPLAIN SELECT gpu_count(*), gpu_sum(i) FROM generate_series(1, 100000) i\"
	status=\$?
	sleep 2
	psql -XAt -c 'SELECT * FROM gpuagg_devices()'
	pg_ctl -D /tmp/data -m fast stop
	cat /tmp/log
	exit \$status"
