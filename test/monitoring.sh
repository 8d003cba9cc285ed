#!/usr/bin/env bash
# Tests .packaging/monitoring with prometheus-postgres-exporter, in a private cluster with the GPU server over the stub of the CUDA run
# time.
#
#	test/monitoring.sh
#
#	PG_CONFIG		the PostgreSQL to test
#
# The test needs the exporter (Debian's package prometheus-postgres-exporter), and is skipped without it. promtool (package prometheus)
# checks the names of metrics and the alert rules, if it is installed. Prints TAP. The exit status is 0 if all checks passed.
set -uo pipefail
# shellcheck source=test/pg.sh
source "$(dirname "${BASH_SOURCE[0]}")/pg.sh"
here=$top/.packaging/monitoring
status=0
exporter_pid=

# ok NAME COMMAND...: prints whether the command succeeds, and what it prints if not
ok() {
	local out

	if out=$("${@:2}" 2>&1); then
		echo "ok - $1"
	else
		echo "not ok - $1"
		sed 's/^/# /' <<<"$out"
		status=1
	fi
}

# is NAME ACTUAL EXPECTED
is() {
	ok "$1" diff <(echo "$3") <(echo "$2")
}

# ---- the files ----

# metrics_in FILE: prints the metrics that the expressions of the dashboard or of the alert rules use
metrics_in() {
	grep -E '^ *"?(expr|definition|query)"?: ' "$1" | grep -oE '\bgpuagg_[a-z_]+' | sort -u
}

ok "the dashboard is valid JSON, with a title and an expression in each panel and no two panels at one place" \
	perl -MJSON::PP -0777 -ne '
		my (%at, %id);
		for my $panel (@{ decode_json($_)->{panels} })
		{
			$panel->{title} or die "a panel has no title";
			$id{ $panel->{id} }++ and die "$panel->{title}: the id is not unique";
			$at{"$panel->{gridPos}{x},$panel->{gridPos}{y}"}++ and die "$panel->{title}: the place is not unique";
			$panel->{type} eq "row" or @{ $panel->{targets} } or die "$panel->{title}: no query";
			/\$instance/ or die "$panel->{title}: $_" for map { $_->{expr} } @{ $panel->{targets} // [] };
		}' "$here/dashboard.json"
if [[ -n $(command -v promtool) ]]; then
	ok "promtool accepts the alert rules" promtool check rules "$here/alerts.yaml"
	ok "the alerts fire when they should, and only then" promtool test rules "$here/alerts_test.yaml"
else
	echo "ok - the alert rules # SKIP promtool is not installed"
fi
exporter=$(command -v prometheus-postgres-exporter || command -v postgres_exporter) || {
	echo "ok - the exporter's metrics # SKIP prometheus-postgres-exporter is not installed"
	exit $status
}

# ---- the cluster and the exporter ----

finish() {
	[[ -z $exporter_pid ]] || kill "$exporter_pid"
	rm -rf "${work:-}"
	pg_stop
}
trap finish EXIT
pg_need || exit 2
[[ -n ${GPUAGG_INSTALLED:-} ]] || { pg_install && make -C "$top" -s PG_CONFIG="$PG_CONFIG" NVCC= server-stub; } || exit 2
program=$(pg_server "$top/build/test/gpuagg-server") || exit 2
work=$(mktemp -d "$pg_tmp/gpuagg-monitoring.XXXXXX")
# two devices, and one that cannot be used
export GPUAGG_STUB_SKIPPED=1
pg_start "shared_preload_libraries='gpuagg'" "gpuagg.server_program='$program'" gpuagg.cache_memory=64MB gpuagg.cache=eager \
	gpuagg.cache_renew=0 max_parallel_workers_per_gather=0 jit=off autovacuum=off || exit 2

sql() {
	psql -XAtq -v ON_ERROR_STOP=1 "$@"
}

# The extension is in a schema of its own. The exporter's role may read statistics, and has no other right.
sql <<'SQL' || exit 2
CREATE SCHEMA gpuagg;
CREATE EXTENSION gpuagg SCHEMA gpuagg;
GRANT USAGE ON SCHEMA gpuagg TO PUBLIC;
ALTER DATABASE postgres SET search_path = public, gpuagg;
CREATE ROLE exporter LOGIN;
GRANT pg_read_all_stats TO exporter;
ALTER ROLE exporter SET search_path = gpuagg;
CREATE TABLE t AS SELECT i % 10 AS k, i AS v FROM generate_series(1, 50000) i;
VACUUM ANALYZE t;
SQL
PGOPTIONS="-c search_path=gpuagg" pg_await_server || exit 2

port=$((20000 + $$ % 10000))
while (: </dev/tcp/127.0.0.1/$port) 2>/dev/null; do
	port=$((port + 1))
done
DATA_SOURCE_NAME="host=$PGHOST port=$PGPORT user=exporter dbname=postgres sslmode=disable" \
	"$exporter" --extend.query-path="$here/queries.yaml" --disable-default-metrics --disable-settings-metrics \
	--no-collector.database --no-collector.bgwriter --web.listen-address=127.0.0.1:$port >"$work/exporter.log" 2>&1 &
exporter_pid=$!

# scrape NAME: stores the exporter's metrics in $work/NAME, without the label "server"; waits until the exporter answers
scrape() {
	local end=$((SECONDS + 60))

	until perl -MHTTP::Tiny -e 'my $r = HTTP::Tiny->new->get($ARGV[0]); $r->{success} or exit 1; print $r->{content}' \
		"http://127.0.0.1:$port/metrics" >"$work/all"; do
		((SECONDS < end)) && kill -0 "$exporter_pid" || { tail -5 "$work/exporter.log"; return 1; }
		sleep 0.1
	done
	sed -nE -e 's/,server="[^"]*"//; s/server="[^"]*",//; s/\{server="[^"]*"\}//' -e '/^(# (HELP|TYPE) )?gpuagg_/p' "$work/all" >"$work/$1"
}

# value SERIES FILE: prints the value of a time series
value() {
	awk -v series="$1 " 'index($0, series) == 1 { print $NF + 0 }' "$work/$2"
}

# grows NAME SERIES NUMBER: tests the difference between the two scrapes
grows() {
	is "$1" "$2: $(($(value "$2" after) - $(value "$2" before)))" "$2: $3"
}

scrape before || { echo "not ok - the exporter answers"; exit 1; }

# ---- queries between two scrapes ----

count='SELECT k, gpu_count(*) FROM t GROUP BY k'
sql -o /dev/null <<SQL || exit 2
SET gpuagg.require = 'require';
SET gpuagg.engine = 'cpu';
$count;
$count;
SET gpuagg.feed = 'tuples';
$count;
RESET gpuagg.feed;
SET gpuagg.engine = 'auto';
SELECT gpu_count(*) FROM t WHERE v < 10;
SET gpuagg.engine = 'cuda';
$count;
$count;
RESET gpuagg.require;
SELECT k, gpu_sum(v) OVER () FROM t LIMIT 1;
SELECT gpu_sum(v + (10 * random())::int) FROM t;
SET gpuagg.enabled = off;
SELECT gpu_sum(v) FROM t;
SQL
sql -o /dev/null -c "SET gpuagg.row_cost = 1000; SELECT gpu_sum(v) FROM t"
PGOPTIONS="-c gpuagg.require=require -c gpuagg.engine=cuda" sql -o /dev/null -c "SELECT gpu_sum(v) FROM t"
# the end of the server is counted before another one is ready
kill -KILL "$(sql -c 'SELECT server_pid FROM gpuagg_status')"
end=$((SECONDS + 60))
until [[ $(sql -c "SELECT server = 'ready' AND restarts = 1 FROM gpuagg_status") == t ]] || ((SECONDS > end)); do
	sleep 0.05
done
# the new server has opened fewer queries than the old one
sql -o /dev/null -c "SET gpuagg.require = 'require'; SET gpuagg.engine = 'cuda'; $count"
scrape after || { echo "not ok - the exporter answers"; exit 1; }

# ---- the metrics ----

is "there are the metrics that README.md lists, with these types and labels" \
	"$(perl -ne 'if (/^# TYPE (\S+) (\S+)/) { $type{$1} = $2 } elsif (/^([a-z_]+)(?:\{(.*)\})? /) { my ($name, $in) = ($1, $2 // ""); $labels{$name} = join " ", sort($in =~ /(\w+)="/g) }
		END { print "$_ $type{$_} $labels{$_}\n" for sort keys %type }' "$work/after" | sed 's/ *$//')" \
	"$(sed -n '/<!-- metrics -->/,/<!-- \/metrics -->/p' "$here/README.md" | perl -ne '
		next unless /^\| `(\S+)` \| (\w+) \|([^|]*)\|/; my ($name, $type, $in) = ($1, $2, $3); print join(" ", $name, $type, sort($in =~ /(\w+)/g)), "\n"' | sort)"
for file in dashboard.json alerts.yaml; do
	is "each metric that $file uses exists" "$(comm -23 <(metrics_in "$here/$file") <(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$work/after" | sort))" ""
done
is "the dashboard shows each metric" "$(comm -13 <(metrics_in "$here/dashboard.json") <(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$work/after" | sort))" ""
is "no value is NaN" "$(grep NaN "$work/before" "$work/after")" ""
is "no query of the exporter failed" "$(grep -iE 'level=(error|warn)' "$work/exporter.log")$(grep 'user=exporter.*ERROR' "$pg_root/log")" ""
if [[ -n $(command -v promtool) ]]; then
	ok "promtool accepts the names and help texts" promtool check metrics <"$work/after"
else
	echo "ok - the names of metrics # SKIP promtool is not installed"
fi

grows "scans on the CPU are counted" 'gpuagg_scans_total{engine="cpu",feed="heap"}' 3
grows "... with their rows" 'gpuagg_scan_rows_total{engine="cpu",feed="heap"}' 100009
grows "... and groups" 'gpuagg_scan_groups_total{engine="cpu",feed="heap"}' 21
grows "scans of rows of the child plan are counted" 'gpuagg_scans_total{engine="cpu",feed="tuples"}' 1
grows "scans on the GPU are counted" 'gpuagg_scans_total{engine="cuda",feed="heap"}' 4
grows "... with their rows" 'gpuagg_scan_rows_total{engine="cuda",feed="heap"}' 200000
grows "a setting is a reason for rows of the child plan" 'gpuagg_not_from_pages_scans_total{reason="setting"}' 1
grows "few rows are a reason for the CPU engine" 'gpuagg_not_on_gpu_scans_total{reason="few_rows"}' 1
grows "a window is a reason for a query that is not taken" 'gpuagg_not_taken_plans_total{reason="window"}' 1
grows "... and a volatile function" 'gpuagg_not_taken_plans_total{reason="volatile"}' 1
grows "... and a setting" 'gpuagg_not_taken_plans_total{reason="setting"}' 1
grows "... and a cheaper plan" 'gpuagg_not_taken_plans_total{reason="cheaper"}' 1
grows "a restart of the GPU server is counted" gpuagg_server_restarts_total 1
is "queries are counted since the start of the GPU server" "$(value gpuagg_server_queries_total after)" 1
is "two GPUs are in use" "$(value gpuagg_server_devices after)" 2
is "... and one cannot be used" "$(grep -c '^gpuagg_device_usable{.* 1$' "$work/after") $(grep -c '^gpuagg_device_usable{.* 0$' "$work/after")" "2 1"
is "the GPU server is ready" "$(grep '^gpuagg_server_state_current.* 1$' "$work/after")" 'gpuagg_server_state_current{state="ready"} 1'
is "... and in no other state" "$(grep -c '^gpuagg_server_state_current.* 0$' "$work/after")" 5
is "the size of the column cache is that of the setting" "$(value gpuagg_cache_size_bytes after)" $((64 << 20))
is "the columns of one table are cached" "$(value 'gpuagg_cached_tables{tier="ram"}' before) $(value 'gpuagg_cached_tables{tier="ram"}' after)" "0 1"
for series in 'gpuagg_scan_seconds_total{engine="cpu",feed="heap"}' 'gpuagg_scan_seconds_total{engine="cuda",feed="heap"}' \
	'gpuagg_cached_bytes{tier="ram"}' 'gpuagg_cached_bytes{tier="gpu"}' 'gpuagg_cached_columns{tier="ram"}' gpuagg_cache_blocks gpuagg_cache_hits; do
	ok "$series grows" awk -v a="$(value "$series" after)" -v b="$(value "$series" before)" 'BEGIN { print b, a; exit !(a > b) }'
done
exit $status
