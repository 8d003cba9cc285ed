#!/usr/bin/env bash
# Compares answers and row descriptions with gpuagg to those without, in the client drivers of several languages.
#
#	test/clients.sh [CLIENT...]		default: all clients
#	test/clients.sh --install		installs the clients: Debian's packages as root, and npm's in build/clients
#
#	ROWS		rows of table flights (default 100000). With fewer, PostgreSQL's plan of some queries is cheaper, and the test fails
#	CLIENTS		the clients, as the arguments
#	NODE_PATH	the folder of npm's packages pg and pg-cursor (default: build/clients/node_modules)
#	PG_CONFIG	the PostgreSQL to test
#
# Clients: psycopg2, psycopg, pg (node-postgres with pg-cursor), jdbc, odbc, r. A client that is not installed is skipped. Each is a
# program in test/clients/ that executes the queries of test/clients/queries.sql in one way ("mode") as one role: role core has
# gpuagg.enabled = off, role ours has gpuagg.replace_builtin = on. Prints TAP, and at the end a table of
# queries and clients. The exit status is 0 if the tests ran, even if one failed.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
debian="python3-psycopg2 python3-psycopg python3-pyodbc unixodbc odbc-postgresql libpostgresql-jdbc-java default-jdk-headless
	r-cran-dbplyr r-cran-rpostgres pgbouncer nodejs npm"
if [[ ${1:-} == --install ]]; then
	for package in $debian; do
		# nodejs of other sources contains npm, and no release up to 13 has RPostgres
		[[ $package != @(nodejs|npm) || -z $(command -v "${package%js}") ]] || continue
		[[ $package != r-cran-rpostgres || -n $(apt-cache madison "$package") ]] || package=r-cran-rpostgresql
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" || exit 1
	done
	mkdir -p "$top/build/clients" && cd "$top/build/clients" && npm install --no-audit --no-fund pg pg-cursor
	exit
fi

pg_need || exit 1
queries=$top/test/clients/queries.sql
export NODE_PATH=${NODE_PATH:-$top/build/clients/node_modules}
jar=${JDBC_JAR:-/usr/share/java/postgresql.jar}
python=$(command -v /usr/bin/python3 || command -v python3)
read -ra clients <<<"${*:-${CLIENTS:-psycopg2 psycopg pg jdbc odbc r}}"

# how a client is started, and its modes; JDBC's program is compiled below
declare -A start=(
	[psycopg2]="$python $top/test/clients/psycopg2_client.py" [psycopg]="$python $top/test/clients/psycopg_client.py"
	[pg]="node $top/test/clients/pg_client.js" [jdbc]=java
	[odbc]="$python $top/test/clients/odbc_client.py" [r]="Rscript $top/test/clients/r_client.R")
declare -A modes=(
	[psycopg2]="plain cursors portals cancel timeout local" [psycopg]="plain binary prepared cursors stream pipeline portals cancel timeout update local"
	[pg]="plain simple binary prepared cursors portals cancel timeout update local"
	[jdbc]="plain simple binary cursors prepared portals cancel timeout update local"
	[odbc]="plain literals cursors portals cancel timeout update local" [r]="plain dbplyr portals timeout")

# missing CLIENT: prints what of a client is not installed; nothing if it can run
missing() {
	case $1 in
	psycopg2 | psycopg) "$python" -c "import $1" 2>/dev/null || echo "python3-$1" ;;
	pg) node -e 'require("pg"); require("pg-cursor")' 2>/dev/null || echo "npm's pg and pg-cursor" ;;
	jdbc) [[ -e $jar ]] && java --list-modules 2>/dev/null | grep -q '^jdk.compiler' || echo "libpostgresql-jdbc-java and a JDK" ;;
	odbc) "$python" -c 'import pyodbc; exit("PostgreSQL Unicode" not in pyodbc.drivers())' 2>/dev/null || echo "python3-pyodbc and odbc-postgresql" ;;
	r)
		Rscript -e 'library(dbplyr); if (!requireNamespace("RPostgres")) library(RPostgreSQL)' >/dev/null 2>&1 ||
			echo "r-cran-dbplyr and r-cran-rpostgres or r-cran-rpostgresql"
		;;
	esac
}

installed=()
for client in "${clients[@]}"; do
	[[ -n ${start[$client]:-} ]] || { echo "not ok - CLIENTS: there is no client \"$client\""; exit 2; }
	package=$(missing "$client")
	[[ -z $package ]] && installed+=("$client") || echo "ok - $client # SKIP not installed: $package"
done
[[ ${#installed[@]} != 0 ]] || exit 0

[[ -n ${GPUAGG_INSTALLED:-} ]] || pg_install || exit 1
work=$(mktemp -d "$pg_tmp/gpuagg-clients.XXXXXX")
chmod 755 "$work"
finish() {
	[[ ! -e ${pg_root:-}/pgbouncer.pid ]] || kill "$(<"$pg_root/pgbouncer.pid")"
	pg_stop
	rm -rf "$work"
}
trap finish EXIT
if [[ " ${installed[*]} " == *" jdbc "* ]]; then
	javac -d "$work" -cp "$jar" "$top/test/clients/JdbcClient.java" || exit 1
	start[jdbc]="java -XX:TieredStopAtLevel=1 -cp $jar:$work JdbcClient"
fi

# JDBC has no Unix sockets, so the cluster also listens on a port of the loopback address.
for _ in 1 2 3 4 5; do
	port=$((20000 + RANDOM % 10000))
	pg_start "shared_preload_libraries='gpuagg'" "listen_addresses='127.0.0.1'" "port=$port" jit=off autovacuum=off timezone=UTC \
		max_parallel_workers_per_gather=0 && break
	rm -rf "$pg_root"
	pg_root=
done
[[ -n $pg_root ]] || exit 1
export PGPORT=$port

sql() {
	psql -XqAt -v ON_ERROR_STOP=1 "$@"
}

# make_tables: in the current database
make_tables() {
	sql <<-SQL
		CREATE TABLE flights AS SELECT * FROM gpuagg_demo_flights(${ROWS:-100000});
		CREATE TABLE carriers AS
		SELECT carrier::varchar(20), CASE WHEN carrier < 'D' THEN 'North' WHEN carrier < 'G' THEN 'South' END AS alliance
		FROM (SELECT DISTINCT carrier FROM flights WHERE carrier <> 'Heath') s;
		CREATE VIEW running AS
		SELECT pid FROM pg_stat_activity a WHERE state = 'active' AND query LIKE '%AS slow%' AND query NOT LIKE '%running%'
			AND (usename = 'core' OR EXISTS (SELECT FROM gpuagg_progress p WHERE p.pid = a.pid));
		GRANT SELECT ON flights, carriers, running TO PUBLIC;
		VACUUM ANALYZE;
	SQL
}

sql <<'SQL' || exit 1
CREATE EXTENSION gpuagg;
CREATE ROLE core LOGIN;
CREATE ROLE ours LOGIN;
CREATE ROLE pooled LOGIN;
ALTER ROLE core SET gpuagg.enabled = off;
ALTER ROLE ours SET gpuagg.replace_builtin = on;
SQL
make_tables || exit 1
# a database with the tables, and with the extension's first version
sql -c 'CREATE DATABASE older TEMPLATE postgres' -c '\c older' -c 'DROP EXTENSION gpuagg CASCADE' -c "CREATE EXTENSION gpuagg VERSION '1.0'" \
	-c "CREATE VIEW running AS SELECT 1" 2>/dev/null || exit 1

# Tests which queries the custom scan takes, as the header of each query states it.
test_plans() {
	local name sql values reason plan

	while IFS=$'\x1f' read -r name values reason sql; do
		# EXPLAIN EXECUTE shows no reason
		if [[ -n $values ]]; then
			plan=$(PGUSER=ours psql -XqAt -c "PREPARE q AS $sql" -c "EXPLAIN (VERBOSE, COSTS OFF) EXECUTE q($values)" 2>&1)
		else
			plan=$(PGUSER=ours psql -XqAt -c "EXPLAIN (VERBOSE, COSTS OFF) $sql" 2>&1)
		fi
		case $plan in
		*"Custom Scan (GpuAgg)"*) [[ -z $reason ]] && echo "ok - $name is taken" || echo "not ok - $name is taken, but should not be" ;;
		*"GpuAgg: not used: "*)
			[[ -n $reason && $plan =~ "not used: "$reason ]] && echo "ok - $name is not taken: $reason" ||
				echo "not ok - $name is not taken: ${plan##*not used: }"
			;;
		*)
			[[ $reason == "no aggregate" ]] && echo "ok - $name has no aggregate to take" ||
				printf 'not ok - %s has another plan\n%s\n' "$name" "$(sed 's/^/# /' <<<"$plan")"
			;;
		esac
	done < <(perl -0777 -ne '
		for (split /^-- name: /m) {
			next unless /^(\w+)\n/;
			my $name = $1;
			my ($with) = /^-- with: (.*)/m;
			my ($reason) = /^-- not taken: (.*)/m;
			my $values = join ", ", map { "\x27$_\x27" } split /, /, $with // "";
			s/\A.*\n//; s/^-- .*\n//mg; s/\s+/ /g;
			print join("\x1f", $name, $values, $reason // "", $_), "\n";
		}' "$queries")
}

# run CLIENT MODE QUERIES: executes a mode of a client as the current role; what it prints is the output
run() {
	# shellcheck disable=SC2086
	timeout 300 ${start[$1]} "$3" "$2" 2>"$work/errors" || {
		echo "# the client failed"
		sed 's/^/! /' "$work/errors" | tail -5
	}
}

# compare CLIENT MODE QUERIES
compare() {
	"$top/test/clients/compare.pl" "$3" "$work/core" "$work/ours" "$1 $2" "$work/table"
}

# Prints a table: for each query and client, in how many modes the answer is right, and in how many it differs.
print_table() {
	awk -v clients="${installed[*]}" '
		{ count[$2, $1, $3]++ }
		!seen[$2]++ { queries[++n] = $2 }
		END {
			m = split(clients, client, " ")
			printf "## %-22s", "query"
			for (i = 1; i <= m; i++) printf " %9s", client[i]
			print ""
			for (q = 1; q <= n; q++) {
				printf "## %-22s", queries[q]
				for (i = 1; i <= m; i++) {
					differs = count[queries[q], client[i], "differs"]
					printf " %9s", (differs ? "differs " differs : (count[queries[q], client[i], "ok"] ? "ok " count[queries[q], client[i], "ok"] : "-"))
				}
				print ""
			}
		}' <(sort -k2,2 "$work/table")
}

# test_taken CLIENT MODE: tests that the custom scan was used since gpuagg_stats was emptied.
test_taken() {
	sql -F ' ' -c "SELECT CASE WHEN sum(calls) FILTER (WHERE event = 'taken') > 0 THEN 'ok' ELSE 'not ok' END || ' - $1 $2: '
		|| coalesce(sum(calls) FILTER (WHERE event = 'taken'), 0) || ' custom scans' FROM gpuagg_stats WHERE userid IN ('ours'::regrole, 'pooled'::regrole)" \
		-c "SELECT '## not taken:', sum(calls), reason FROM gpuagg_stats WHERE userid IN ('ours'::regrole, 'pooled'::regrole) AND event = 'refused' GROUP BY reason ORDER BY 2"
}

# test_client CLIENT MODE
test_client() {
	local role file=$queries

	[[ $2 != update ]] || file=$top/test/clients/update.sql
	sql -c 'SELECT FROM gpuagg_stats_reset()'
	for role in core ours; do
		if [[ $2 == update ]]; then
			sql -c 'CREATE DATABASE updated TEMPLATE older'
			PGUSER=$role PGDATABASE=updated CLIENTS_UPDATE="psql -Xq -U postgres -c 'ALTER EXTENSION gpuagg UPDATE'" \
				run "$1" "$2" "$file" >"$work/$role"
			[[ $(sql -d updated -c "SELECT gpuagg_version()") != 1.0 ]] || echo "not ok - $1: the extension was not updated"
			sql -c 'DROP DATABASE updated'
		else
			PGUSER=$role run "$1" "$2" "$file" >"$work/$role"
		fi
	done
	compare "$1" "$2" "$file"
	[[ $2 == @(cancel|timeout) ]] || test_taken "$1" "$2"
}

# Starts pgbouncer in front of the cluster: all clients share one session.
start_bouncer() {
	pool_port=$((port + 1))
	cat >"$work/pgbouncer.ini" <<-INI
		[databases]
		postgres = host=$PGHOST port=$port user=pooled
		[pgbouncer]
		listen_addr = 127.0.0.1
		listen_port = $pool_port
		unix_socket_dir = $PGHOST
		auth_type = any
		pool_mode = transaction
		default_pool_size = 1
		ignore_startup_parameters = extra_float_digits
		logfile = $pg_root/pgbouncer.log
		pidfile = $pg_root/pgbouncer.pid
	INI
	as_pg "$(command -v pgbouncer || echo /usr/sbin/pgbouncer)" -q "$work/pgbouncer.ini" >/dev/null 2>&1 &
	for _ in $(seq 100); do
		PGPORT=$pool_port sql -c 'SELECT 1' >/dev/null 2>&1 && return
		sleep 0.1
	done
	return 1
}

# test_bouncer CLIENT: two programs of the client share a session, transaction by transaction; each sets its own setting
test_bouncer() {
	sql -c 'SELECT FROM gpuagg_stats_reset()'
	(
		export PGPORT=$pool_port PGUSER=pooled
		CLIENTS_LOCAL="gpuagg.enabled = off" run "$1" local "$queries" >"$work/core" &
		CLIENTS_LOCAL="gpuagg.replace_builtin = on" run "$1" local "$queries" >"$work/ours"
		wait
	)
	compare "$1" pgbouncer "$queries"
	test_taken "$1" pgbouncer
	[[ $(PGPORT=$pool_port sql -c 'SHOW gpuagg.enabled' -c 'SHOW gpuagg.replace_builtin' | xargs) == "on off" ]] && echo "ok - $1 pgbouncer: settings end with the transaction" ||
		echo "not ok - $1 pgbouncer: a setting outlived its transaction"
}

test_plans
for client in "${installed[@]}"; do
	for mode in ${modes[$client]}; do
		[[ $mode == local ]] || test_client "$client" "$mode"
	done
done
if ! command -v pgbouncer /usr/sbin/pgbouncer >/dev/null; then
	echo "ok - pgbouncer # SKIP not installed"
elif ! start_bouncer; then
	echo "not ok - pgbouncer does not start"
else
	for client in "${installed[@]}"; do
		[[ ${modes[$client]} != *local* ]] || test_bouncer "$client"
	done
fi
print_table
grep -qE 'PANIC|was terminated by signal|TRAP' "$pg_root/log" && { echo "not ok - the server crashed"; pg_crashes "$pg_root"; } ||
	echo "ok - the server did not crash"
exit 0
