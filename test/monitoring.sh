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
# without collectors that are not needed: newer exporters have another name for the second, and their third needs pg_monitor
mapfile -t without < <("$exporter" --help 2>&1 | grep -oE 'collector\.(database|(stat_)?bgwriter|wal)\b' | sort -u | sed 's/^/--no-/')
DATA_SOURCE_NAME="host=$PGHOST port=$PGPORT user=exporter dbname=postgres sslmode=disable" \
	"$exporter" --extend.query-path="$here/queries.yaml" --disable-default-metrics --disable-settings-metrics \
	"${without[@]}" --web.listen-address=127.0.0.1:$port >"$work/exporter.log" 2>&1 &
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
# newer exporters warn at their start that they have no configuration file, and that a later release may not read queries.yaml
is "no query of the exporter failed" "$(grep -iE 'level=(error|warn)' "$work/exporter.log" |
	grep -vE 'msg="(Error loading config"|The extended queries\.yaml config is DEPRECATED")')$(grep 'user=exporter.*ERROR' "$pg_root/log")" ""
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

# ---- all values are those of the extension's functions, also after failed queries and while a query runs ----

# Prints each series and its value, computed in another way than by the queries of the exporter.
values() {
	PGOPTIONS="-c search_path=gpuagg" sql -F ' ' <<-'SQL'
		SELECT format('gpuagg_server_%s %s', key, value) FROM gpuagg_status s, gpuagg_devices() d, LATERAL (VALUES ('restarts_total', s.restarts::int8),
			('devices', s.devices), ('queries_total', d.queries), ('failures_total', d.failures), ('out_of_memory_failures_total', d.out_of_memory),
			('pinned_memory_bytes', d.pinned_memory)) v(key, value) WHERE device = 0;
		SELECT format('gpuagg_device_%s{device="%s",name="%s"} %s', key, device, name, value) FROM gpuagg_devices() d, LATERAL (VALUES
			('usable', CASE state WHEN 'not used' THEN 0 ELSE 1 END), ('memory_bytes', memory), ('memory_used_bytes', memory_used),
			('host_memory_bytes', host_memory), ('sessions', sessions)) v(key, value);
		SELECT format('gpuagg_cache_%s %s', key, value) FROM (SELECT sum(blocks), sum(blocks * valid), sum(hits) FROM gpuagg_cache
			WHERE tier = 'ram' AND "column" IS NOT NULL) c(blocks, valid, hits), LATERAL (VALUES ('blocks', blocks::float8), ('valid_blocks', valid),
			('hits', hits::float8), ('size_bytes', (SELECT cache_memory FROM gpuagg_status)::float8)) v(key, value);
		SELECT format('gpuagg_cached_%s{tier="%s"} %s', key, tier, value) FROM (SELECT tier, count(DISTINCT relfilenode), count("column"), sum(bytes)
			FROM gpuagg_cache GROUP BY tier) c(tier, tables, columns, bytes), LATERAL (VALUES ('tables', tables), ('columns', columns), ('bytes', bytes)) v(key, value);
		SELECT format('gpuagg_scan%s_total{engine="%s",feed="%s"} %s', key, engine, feed, value) FROM (SELECT engine, feed, sum(calls), sum(rows),
			sum(groups), sum(total_time / 1000) FROM gpuagg_stats WHERE event = 'taken' GROUP BY engine, feed) c(engine, feed, calls, rows, groups, seconds),
			LATERAL (VALUES ('s', calls::float8), ('_rows', rows::float8), ('_groups', groups::float8), ('_seconds', seconds)) v(key, value);
		SELECT 'gpuagg_not_on_gpu_scans_total{reason="failed"} ' || count(*) FROM gpuagg_stats WHERE event = 'engine' AND starts_with(reason, 'cuda failed');
	SQL
}

# check_values NAME SERIES...: scrapes, and tests all values, and that those of the given series are not 0
check_values() {
	local end=$((SECONDS + 60)) series

	while :; do
		values >"$work/expected" && scrape "$1" || { echo "not ok - $1: the values are read"; status=1; return; }
		# compares only what did not change meanwhile
		[[ $(values) != "$(<"$work/expected")" ]] && ((SECONDS < end)) || break
	done
	ok "$1: the values are those of the extension's functions ($(wc -l <"$work/expected"))" perl -e '
		my ($expected, $scraped) = map { open my $f, "<", $_ or die $!; +{ map { /^([^#].*) (\S+)$/ ? ($1 => $2) : () } <$f> } } @ARGV;
		for (sort keys %$expected)
		{
			my ($e, $s) = ($expected->{$_}, $scraped->{$_});
			next if defined $s && abs($e - $s) <= 1e-9 * abs($e);
			print "$_ is ", $s // "missing", ", not $e\n";
			$wrong = 1;
		}
		exit($wrong || keys %$expected < 30)' "$work/expected" "$work/$1"
	for series in "${@:2}"; do
		ok "$1: $series is not 0" awk -v v="$(value "$series" "$1")" 'BEGIN { exit !(v > 0) }'
	done
}

texts='SELECT t, gpu_count(*), gpu_sum(v) FROM u GROUP BY t'
sql -o /dev/null <<SQL || exit 2
CREATE TABLE u AS SELECT i AS v, 'text ' || i % 100 AS t FROM generate_series(1, 100000) i;
VACUUM ANALYZE u;
SET gpuagg.require = 'require';
SET gpuagg.engine = 'cuda';
$texts;
$texts;
DELETE FROM u WHERE v = 7;
$texts;
SQL
for fault in memory launch; do
	echo $fault >"$pg_root/data/gpuagg.fault"
	PGOPTIONS="-c gpuagg.engine=cuda -c gpuagg.cache=off" sql -o /dev/null -c "$texts"
done
check_values "after failures" gpuagg_server_failures_total gpuagg_server_out_of_memory_failures_total 'gpuagg_not_on_gpu_scans_total{reason="failed"}' \
	gpuagg_server_pinned_memory_bytes gpuagg_cache_valid_blocks
is "after failures: one of the two was for want of memory" \
	"$(value gpuagg_server_failures_total "after failures") $(value gpuagg_server_out_of_memory_failures_total "after failures")" "2 1"
ok "after failures: not all blocks are valid" awk -v a="$(value gpuagg_cache_valid_blocks "after failures")" -v b="$(value gpuagg_cache_blocks "after failures")" \
	'BEGIN { print a, b; exit !(a < b) }'
ok "after failures: a device has dictionaries" grep -E '^gpuagg_device_host_memory_bytes\{.* [1-9]' "$work/after failures"
is "gpuagg_library_info is 1" "$(sed -n 's/^gpuagg_library_info{.*} //p' "$work/after failures")" 1

# the query's kernel takes a minute, unless the supervisor kills the server before
echo hang >"$pg_root/data/gpuagg.fault"
PGOPTIONS="-c gpuagg.engine=cuda -c gpuagg.cache=off" sql -o /dev/null -c "$texts" >/dev/null 2>&1 &
end=$((SECONDS + 60))
until [[ $(PGOPTIONS="-c search_path=gpuagg" sql -c 'SELECT sum(sessions) FROM gpuagg_devices()') == 1 ]] || ((SECONDS > end)); do
	sleep 0.05
done
check_values "while a query runs"
is "while a query runs: there is a session" "$(grep -cE '^gpuagg_device_sessions\{.* 1$' "$work/while a query runs")" 1

# ---- the classes of reasons ----

# The patterns with which the queries classify reasons must be texts of the sources.
is "each pattern for a reason is a text of src/" "$(grep -oE "reason LIKE '[^']+'" "$here/queries.yaml" | sed "s/reason LIKE '//; s/'$//" | sort -u | while read -r pattern; do
	# the engine's name, before "failed", is an argument
	text=${pattern//%/}
	grep -rqFe "${text/#cuda failed: /%s failed: }" --include='*.c' "$top/src" || echo "$pattern"
done)" ""
exit $status
