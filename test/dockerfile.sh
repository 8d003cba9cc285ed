#!/usr/bin/env bash
# Runs the steps of .packaging/Dockerfile up to one of its targets in chroots of Debian, then what CMD says, and a query in it.
#
#	test/dockerfile.sh SUITE TARGET		bookworm or trixie, cpu or gpu
#
# Called by test/packages.sh, whose head says what is needed.  There is no Docker here: each stage is a chroot, in place of the image
# "postgres" a Debian with its own PostgreSQL, in place of "nvidia/cuda" one to which /usr/local/cuda is lent (CUDA=1).  So not
# tested: the images themselves, their entry points, and everything that needs a GPU.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
chroots=${CHROOTS:-/var/tmp/gpuagg-packages}
suite=$1 target=$2
# shellcheck source=test/chroot.sh
source "$top/test/chroot.sh"
trap unmount EXIT

# The file's instructions, one a line.
instructions() {
	sed -e '/^#/d' -e '/^$/d' "$top/.packaging/Dockerfile" | sed -e ':a' -e '/\\$/{N;s/ *\\\n[ \t]*/ /;ba' -e '}'
}

# The stages that a stage needs, and itself, in order.
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

# A chroot in place of the image, $root.
image() {
	case $1 in
	postgres:*)
		fresh "docker-$2"
		enter root "apt-get install -y -qq --no-install-recommends postgresql"
		pg_major=$(basename "$(ls -d "$root"/usr/lib/postgresql/*)")
		mkdir "$root/docker-entrypoint-initdb.d"
		;;
	*cuda*)
		[[ -n ${CUDA:-} ]] || { echo "stage $2 needs CUDA=1" >&2; exit 1; }
		fresh "docker-$2"
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

# What a stage does with the context and other stages.  COPY takes one source.
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
	.) sources "$to" ;;
	*) echo "COPY $source is not known here" >&2; exit 1 ;;
	esac
}

# Those of the file that have no variable yet; the ones of FROM are other images here.
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
		*) echo "$word is not known here" >&2; exit 1 ;;
		esac
	done < <(instructions)
done

# What the image's entry point does: a new cluster, CMD in it, the files of /docker-entrypoint-initdb.d.
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
