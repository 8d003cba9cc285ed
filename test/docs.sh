#!/usr/bin/env bash
# Checks the documents for users, README.md and sql/*.md, with a running server.
#
#	test/docs.sh
#
#	PGHOST, PGPORT, ...		the server; the script creates and drops the database "docs" in it
#
# Prints "ok" lines. The exit status is 0 if all checks passed. Checks that
#
#	- the tables of functions, settings and columns of views have the same rows as the catalog
#	- settings that the text names exist, and links to documents, headings and files have a target
#	- all SQL examples work: the blocks of a document run in order in the database, and print the block that follows them
#	- no heading is without text
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top" || exit
documents=(README.md sql/*.md)
status=0

sql() {
	psql -XqAt -v ON_ERROR_STOP=1 -c "$1"
}

# table NAME: prints the rows, without the head, of the table between <!-- NAME --> and <!-- /NAME --> in any document
table() {
	sed -n "/^<!-- $1 -->/,/^<!-- \/$1 -->/p" "${documents[@]}" | grep '^|' | tail -n +3
}

# Before PostgreSQL 18, omits rows about features of PostgreSQL 18.
of_this_release() {
	if (($(sql "SHOW server_version_num") < 180000)); then
		grep -v "from PostgreSQL 18 on"
	else
		cat
	fi
}

# same NAME ACTUAL DOCUMENTED: prints whether both have the same lines, in any order
same() {
	local out

	if out=$(diff <(sed 's/ *$//' <<<"$2" | sort -u) <(sed 's/ *$//' <<<"$3" | sort -u)); then
		echo "ok $1"
	else
		echo "not ok $1"
		echo "# < actual, > documented"
		echo "$out"
		status=1
	fi
}

sql "CREATE EXTENSION IF NOT EXISTS gpuagg" 2>/dev/null

# Functions that users call. Functions of states, which other servers call, and functions with internal arguments are omitted.
same "functions" "$(sql "
	SELECT p.proname || ' ' || CASE WHEN a.aggkind = 'n' AND p.pronargs = 0 THEN '*' ELSE
		coalesce((SELECT string_agg(CASE t.typcategory WHEN 'A' THEN e.typname || '[]' ELSE t.typname END, ', ' ORDER BY i)
			FROM unnest(p.proargtypes) WITH ORDINALITY u(oid, i) JOIN pg_type t ON t.oid = u.oid
				LEFT JOIN pg_type e ON e.oid = t.typelem), '') END
	FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
		JOIN pg_extension x ON x.oid = d.refobjid AND x.extname = 'gpuagg' LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid
	WHERE p.proname !~ '^gpuagg_.*_state$' AND NOT EXISTS (SELECT FROM pg_type t WHERE p.oid IN (t.typinput, t.typoutput, t.typreceive, t.typsend))
		AND p.prorettype <> 'internal'::regtype AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])
		AND NOT EXISTS (SELECT FROM pg_aggregate o WHERE p.oid IN (o.aggtransfn, o.aggfinalfn, o.aggcombinefn, o.aggmtransfn,
				o.aggminvtransfn, o.aggmfinalfn)
			AND p.pronamespace <> 'pg_catalog'::regnamespace)")" \
	"$(table functions | of_this_release | awk -F'|' '{
		n = split($2, names, ", "); m = split($3, args, "`, `")
		for (i = 1; i <= n; i++)
			for (j = 1; j <= m; j++) {
				name = names[i]; arg = args[j]
				gsub(/[` ]/, "", name); gsub(/^ *`+|` *$/, "", arg)
				print name " " arg
			}
	}')"

same "settings" "$(sql "LOAD 'gpuagg'; SELECT name || ' ' || boot_val FROM pg_settings WHERE name LIKE 'gpuagg.%'")" \
	"$(table settings | awk -F'|' '{gsub(/[` ]/, "", $2); gsub(/[` ]/, "", $3); print $2 " " $3}')"

# The short table in README.md: names and defaults. A * marks settings that apply to the whole server.
same "settings that matter" "$(sql "LOAD 'gpuagg'; SELECT name || ' ' || boot_val || CASE WHEN context IN ('sighup', 'postmaster') THEN ' *' ELSE '' END
		FROM pg_settings WHERE name IN ($(table settings-that-matter | sed "s/^| \`\([^\`]*\)\`.*/'\1'/" | paste -sd,))")" \
	"$(table settings-that-matter | awk -F'|' '{star = sub(/\*/, "", $2); gsub(/[` ]/, "", $2); gsub(/[` ]/, "", $3); print $2 " " $3 (star ? " *" : "")}')"

# All settings that the text names exist.
same "names of settings" "$(sql "LOAD 'gpuagg'; SELECT name FROM pg_settings WHERE name LIKE 'gpuagg.%'")" \
	"$(grep -ohP '(?<!-)\bgpuagg\.[a-z_]+' "${documents[@]}" | grep -vE '\.(so|control)$' | sort -u)"

# Columns of views. Rows have the form "| `view` | `column`, `column`, … | …".
same "columns of views" "$(sql "SELECT c.relname || ' ' || a.attname
	FROM pg_class c JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
		JOIN pg_extension x ON x.oid = d.refobjid AND x.extname = 'gpuagg' JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
	WHERE c.relkind = 'v'")" \
	"$(table views | awk -F'|' '{
		gsub(/[` ]/, "", $2); gsub(/[` ]/, "", $3); n = split($3, columns, ",")
		for (i = 1; i <= n; i++)
			print $2 " " columns[i]
	}')"

# The chart is drawn from the table of times.
same "chart of times" "$(awk -f test/bench/chart.awk README.md)" "$(cat test/bench/speed.svg)"

# anchors FILE: prints the names by which links refer to its headings
anchors() {
	sed -n '/^```/,/^```/!s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# Links to files and headings that do not exist.
for document in "${documents[@]}" */README.md src/*/README.md test/*/README.md .packaging/README.md .github/*.md; do
	[[ -e $document ]] || continue
	missing=
	while read -r link; do
		file=${link%%#*}
		path=${file:+$(dirname "$document")/}${file:-$document}
		[[ -e $path ]] || missing+=" $link"
		[[ $link != *#* || ! -e $path ]] || anchors "$path" | grep -qxF -e "${link#*#}" || missing+=" $link"
	done < <(sed '/^```/,/^```/d' "$document" | grep -oP '\]\(\K[^) ]+' | grep -vE '^(https?|mailto):')
	same "links of $document" "" "${missing# }"
done

# Files of other folders that a README names and that do not exist.
for document in src/*/README.md; do
	missing=
	while read -r file; do
		[[ -e $(dirname "$document")/$file ]] || missing+=" $file"
	done < <(grep -oP '`\K\.\./[a-z0-9_/.]+\.(c|h|cu|cuh|sh|pl|md)(?=`)' "$document")
	same "files that $document names" "" "${missing# }"
done

# A heading without text shows that text was lost, for example in a merge.
for document in "${documents[@]}" */README.md src/*/README.md test/*/README.md; do
	[[ -e $document ]] || continue
	empty=$(awk '
		/^```/ { code = !code }
		!code && /^##* / { if (heading != "" && length($1) <= depth) print heading; heading = $0; depth = length($1); next }
		NF { heading = "" }
		END { if (heading != "") print heading }' "$document")
	same "empty sections of $document" "" "$empty"
done

# blocks DOCUMENT FOLDER: writes the blocks of SQL to FOLDER/LINE.sql, and the blocks of their output to LINE.out
blocks() {
	awk -v folder="$2" '
		/^```/ && !inside {
			inside = 1
			kind = $0 == "```sql" ? "sql" : $0 == "```" && after == NR - 1 ? "out" : ""
			if (kind == "sql")
				line = NR
			file = sprintf("%s/%04d.%s", folder, line, kind)
			# also of an output that is empty
			if (kind != "")
				printf "" > file
			next
		}
		/^```/ { inside = 0; after = kind == "sql" ? NR : 0; next }
		inside && kind != "" { print > file }
	' "$1"
}

# normalized FILE: prints the output of psql with its lines numbered. Removes what differs between machines and releases: the reason for
# an engine, memory, numbers of blocks and how they were proved, the heading of a plan, decimals of rows.
normalized() {
	sed -E 's/ *$//; /^ *QUERY PLAN$/d; s/Engine: .*/Engine:/; s/Memory: .*/Memory:/; s/(rows=[0-9]+)\.00/\1/;
		s/[0-9]+ of [0-9]+ blocks/blocks/; s/(visibility map|lsn|changed)=[0-9]+/\1=/g' "$1" |
		awk '!/^-*$/' | grep -n .
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for document in "${documents[@]}"; do
	rm -f "$work"/*
	blocks "$document" "$work"
	dropdb --if-exists docs 2>/dev/null
	createdb docs
	for block in "$work"/*.sql; do
		[[ -e $block ]] || continue
		name="$document: SQL in line $((10#$(basename "$block" .sql)))"
		if ! PGDATABASE=docs psql -Xq -v ON_ERROR_STOP=1 -P footer=off -f "$block" >"$work/actual" 2>&1; then
			echo "not ok $name"
			cat "$work/actual"
			status=1
		elif [[ -e ${block%.sql}.out ]]; then
			same "$name and its answer" "$(normalized "$work/actual")" "$(normalized "${block%.sql}.out")"
		else
			echo "ok $name"
		fi
	done
done
dropdb docs
exit $status
