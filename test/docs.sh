#!/usr/bin/env bash
# Compares README.md's tables with the running server that PGHOST names:
# functions with the catalog, settings with pg_settings.  Runs its SQL in order in a
# new database "readme": a block of SQL must run, and print what the block right below
# it says.  Prints "ok" lines.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
status=0

sql() {
	psql -XqAt -v ON_ERROR_STOP=1 -c "$1"
}

# The rows of the table between <!-- NAME --> and <!-- /NAME -->, without head.
table() {
	sed -n "/^<!-- $1 -->/,/^<!-- \/$1 -->/p" "$top/README.md" | grep '^|' | tail -n +3
}

# Leaves out rows of what PostgreSQL 18 has, before 18.
of_this_release() {
	if (($(sql "SHOW server_version_num") < 180000)); then
		grep -v "from PostgreSQL 18 on"
	else
		cat
	fi
}

# same NAME ACTUAL DOCUMENTED
same() {
	local out

	if out=$(diff <(sed 's/ *$//' <<<"$2" | sort -u) <(sed 's/ *$//' <<<"$3" | sort -u)); then
		echo "ok $1"
	else
		echo "not ok $1"
		echo "# < what there is, > what is written"
		echo "$out"
		status=1
	fi
}

sql "CREATE EXTENSION IF NOT EXISTS gpuagg" 2>/dev/null

# Functions that users call: those whose arguments they can make.  Those that return states are called by other servers.
same "README: functions" "$(sql "
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

same "README: settings" "$(sql "LOAD 'gpuagg'; SELECT name || ' ' || boot_val FROM pg_settings WHERE name LIKE 'gpuagg.%'")" \
	"$(table settings | awk -F'|' '{gsub(/[` ]/, "", $2); gsub(/[` ]/, "", $3); print $2 " " $3}')"

# Every setting that the text speaks of exists.
same "README: names of settings" "$(sql "LOAD 'gpuagg'; SELECT name FROM pg_settings WHERE name LIKE 'gpuagg.%'")" \
	"$(grep -oP '(?<!-)\bgpuagg\.[a-z_]+' "$top/README.md" | grep -vE '\.(so|control)$' | sort -u)"

# The picture is drawn from the table of times.
same "README: picture of times" "$(awk -f "$top/test/bench/chart.awk" "$top/README.md")" "$(cat "$top/test/bench/speed.svg")"

# Writes the blocks of SQL to FOLDER/LINE.sql, and what they are said to print to LINE.out.
blocks() {
	awk -v folder="$1" '
		/^```/ && !inside {
			inside = 1
			kind = $0 == "```sql" ? "sql" : $0 == "```" && after == NR - 1 ? "out" : ""
			if (kind == "sql")
				line = NR
			file = sprintf("%s/%04d.%s", folder, line, kind)
			next
		}
		/^```/ { inside = 0; after = kind == "sql" ? NR : 0; next }
		inside && kind != "" { print > file }
	' "$top/README.md"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blocks "$work"
dropdb --if-exists readme 2>/dev/null
createdb readme
export PGDATABASE=readme
for block in "$work"/*.sql; do
	name="README: SQL in line $((10#$(basename "$block" .sql)))"
	if ! psql -Xq -v ON_ERROR_STOP=1 -P footer=off -f "$block" >"$work/actual" 2>&1; then
		echo "not ok $name"
		cat "$work/actual"
		status=1
	elif [[ -e ${block%.sql}.out ]]; then
		same "$name and its answer" "$(sed 's/ *$//' "$work/actual" | grep -n .)" "$(sed 's/ *$//' "${block%.sql}.out" | grep -n .)"
	else
		echo "ok $name"
	fi
done

# The plan shown, but for the reason why there is no GPU.
same "README: EXPLAIN" "$(sql "EXPLAIN (COSTS OFF) SELECT origin, gpu_avg(delay) FROM flights GROUP BY origin" | sed 's/(no GPU.*/(no GPU)/' | grep -n .)" \
	"$(sed -n '/^ Custom Scan (GpuAgg)/,/^```/p' "$top/README.md" | grep -v '^```' | sed 's/^ //; s/(no GPU.*/(no GPU)/' | grep -n .)"
exit $status
