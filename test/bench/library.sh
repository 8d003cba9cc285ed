# shellcheck shell=bash
# Functions of benchmarks: PostgreSQL's and DuckDB's side. Scripts source this file with $here set to this folder.
#
# Sets $library, unless it is set already, to DuckDB's library in node_modules of this folder, of the source tree, or of the current
# folder. The functions need a folder $work for files. A script that calls duck_start must end the process $duck_pid if it is set.
library=${library:-}
for folder in "$here" "$here/../.." .; do
	found=$folder/node_modules/@duckdb/node-bindings-linux-x64/libduckdb.so
	[[ -n $library || ! -e $found ]] || library=$(realpath "$found")
done

sql() {
	psql -XqAt -v ON_ERROR_STOP=1 "$@"
}

# Prints the median of the numbers in standard input, one a line.
median() {
	sort -n | awk '{a[NR] = $1} END {print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2}'
}

# duck FILE: executes a file of SQL in DuckDB; prints "ms WALL CPU"
duck() {
	echo "$1" >"$work/requests" && cat "$work/replies"
}

# duck_sql STATEMENT: executes a statement in DuckDB; exits if it fails
duck_sql() {
	local reply

	echo "$1" >"$work/duck.sql"
	reply=$(duck "$work/duck.sql")
	[[ $reply == ms* ]] || { echo "DuckDB: $reply"; exit 1; } >&2
}

# duck_start THREADS: starts DuckDB with this number of threads and no tables; sets $duck_pid
duck_start() {
	cc -O2 -o "$work/duckdb" "$here/duckdb.c" -ldl || exit 1
	mkfifo "$work/requests" "$work/replies"
	"$work/duckdb" "$library" "$1" "$work/requests" "$work/replies" 2>"$work/duckdb.err" &
	duck_pid=$!
	sleep 0.5
	kill -0 $duck_pid 2>/dev/null || { cat "$work/duckdb.err" >&2; duck_pid=; exit 1; }
	exec 9>"$work/requests"
}

# duck_copy TABLE: copies a table of PostgreSQL into DuckDB, with all processors, by ranges of its blocks. Rows keep their order.
duck_copy() {
	local part blocks n copiers=()

	duck_sql "CREATE TABLE $1 ($(sql -c "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = '$1'::regclass AND attnum > 0 AND NOT attisdropped"))"
	blocks=$(sql -c "SELECT pg_relation_size('$1') / current_setting('block_size')::bigint")
	n=$(nproc)
	for ((part = 0; part < n; part++)); do
		sql -c "COPY (SELECT * FROM $1 WHERE ctid >= '($((blocks * part / n)),0)' AND ctid < '($((blocks * (part + 1) / n)),0)')
			TO STDOUT (FORMAT csv)" >"$work/$(printf 'part%03d' $part).csv" &
		copiers+=($!)
	done
	wait "${copiers[@]}"
	# a table of few blocks
	find "$work" -name 'part*.csv' -empty -delete
	duck_sql "COPY $1 FROM '$work/part*.csv' (FORMAT csv, HEADER false, ALLOW_QUOTED_NULLS false)"
	rm "$work"/part*.csv
}
