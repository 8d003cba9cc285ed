#!/usr/bin/env bash
# Compares README.md's tables with the running server that PGHOST names:
# functions with the catalog, settings with pg_settings.  Prints "ok" lines.
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

# same NAME ACTUAL DOCUMENTED
same() {
	local out

	if out=$(diff <(sed 's/ *$//' <<<"$2" | sort -u) <(sed 's/ *$//' <<<"$3" | sort -u)); then
		echo "ok $1"
	else
		echo "not ok $1"
		echo "# < catalog, > README"
		echo "$out"
		status=1
	fi
}

sql "CREATE EXTENSION IF NOT EXISTS gpuagg" 2>/dev/null

# Functions that users call: those whose arguments they can make.
same "README: functions" "$(sql "
	SELECT p.proname || ' ' || CASE WHEN a.aggkind = 'n' AND p.pronargs = 0 THEN '*' ELSE
		coalesce((SELECT string_agg(CASE t.typcategory WHEN 'A' THEN e.typname || '[]' ELSE t.typname END, ', ' ORDER BY i)
			FROM unnest(p.proargtypes) WITH ORDINALITY u(oid, i) JOIN pg_type t ON t.oid = u.oid
				LEFT JOIN pg_type e ON e.oid = t.typelem), '') END
	FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
		JOIN pg_extension x ON x.oid = d.refobjid AND x.extname = 'gpuagg' LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid
	WHERE p.prorettype <> 'internal'::regtype AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])
		AND NOT EXISTS (SELECT FROM pg_aggregate o WHERE p.oid IN (o.aggtransfn, o.aggfinalfn, o.aggcombinefn)
			AND p.pronamespace <> 'pg_catalog'::regnamespace)")" \
	"$(table functions | awk -F'|' '{
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
	"$(grep -oE '\bgpuagg\.[a-z_]+' "$top/README.md" | grep -vE '\.(so|control)$' | sort -u)"
exit $status
