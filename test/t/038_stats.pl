# gpuagg_stats: counters of scans and of queries that were not taken, with reasons; which roles see them; a full table. Also
# gpuagg.log_refused, and EXPLAIN's line for queries that are cheaper without the custom scan.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('stats');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\njit = off\nautovacuum = off\ncompute_query_id = on\n" .
	"shared_preload_libraries = 'gpuagg'\ngpuagg.startup_cost = 0\ngpuagg.cache = off\nmax_parallel_workers_per_gather = 0");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpuagg; CREATE TABLE t AS SELECT i % 10 AS k, i AS v FROM generate_series(1, 50000) i; VACUUM ANALYZE t');

sub reset_stats { $node->safe_psql('postgres', 'SELECT gpuagg_stats_reset()') }

# Expressions over the rows of gpuagg_stats that satisfy a condition, sorted.
sub stats { my ($what, $where) = @_; return join("\n", sort split(/\n/, $node->safe_psql('postgres', "SELECT $what FROM gpuagg_stats WHERE $where"))) }
sub run_sql { return $node->safe_psql('postgres', join('; ', @_)) }
my $require = "SET gpuagg.require = 'require'";

# ---- scans ----
run_sql($require, 'SELECT k, gpu_sum(v) FROM t GROUP BY k', 'SELECT k, gpu_count(*) FROM t WHERE v <= 1000 GROUP BY k');
is(stats('engine, feed, strategy, calls, rows, groups', "event = 'taken'"), 'cpu|heap|direct|2|51000|20', 'two scans of heap pages are counted');
is(stats('reason, calls', "event = 'engine'"), 'no GPU: built without CUDA|2', '... and the reason for the CPU engine');
is(stats('count(*)', "event IN ('feed', 'refused')"), '0', '... and nothing else');
is(stats('total_time > 0 AND total_time < 60000 AND last_time BETWEEN since AND clock_timestamp() AND last_queryid <> 0', "event = 'taken'"), 't', '... with times and a query identifier');
my $id = run_sql("EXPLAIN (VERBOSE, FORMAT JSON) SELECT k, gpu_count(*) FROM t WHERE v <= 1000 GROUP BY k") =~ /"Query Identifier": (-?\d+)/ ? $1 : '';
is(stats('last_queryid', "event = 'taken'"), $id, '... which is that of the last query');

reset_stats();
is(run_sql('SELECT count(*) FROM gpuagg_stats'), '0', 'gpuagg_stats_reset() removes all rows');
run_sql($require, "SET gpuagg.feed = 'tuples'", 'SELECT gpu_sum(v) FROM t');
is(stats('event, feed, strategy, reason, calls, rows, groups', "event IN ('taken', 'feed')"),
	"feed|tuples||gpuagg.feed is tuples|1|50000|1\ntaken|tuples|single||1|50000|1", 'a scan with the tuple feed is counted, with the reason');

# a rescan is a call; a plan that EXPLAIN only prints, and a scan that fails, is not
reset_stats();
run_sql($require, 'SELECT (SELECT gpu_sum(v) FROM t WHERE t.v <= g) FROM generate_series(1, 3) g', 'EXPLAIN SELECT gpu_sum(v) FROM t');
is(stats('calls, rows, groups', "event = 'taken'"), '3|6|3', 'each rescan with a parameter is counted');
$node->psql('postgres', "$require; SELECT gpu_sum(1 / (v - 40000)) FROM t");
is(stats('calls', "event = 'taken'"), '3', 'a scan that fails is not counted');
reset_stats();
run_sql($require, 'BEGIN; DECLARE c CURSOR FOR SELECT k, gpu_sum(v) FROM t GROUP BY k; FETCH 2 FROM c; CLOSE c; COMMIT');
is(stats('calls, rows', "event = 'taken'"), '1|50000', 'a cursor that is not read to its end is counted');

# a parallel plan is one call
reset_stats();
run_sql($require, 'SET max_parallel_workers_per_gather = 2; SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0',
	'SET parallel_leader_participation = off', 'SELECT k, gpu_sum(v) FROM t GROUP BY k');
is(stats('calls, rows, groups', "event = 'taken'"), '1|50000|10', 'a parallel plan is counted once');

# ---- queries that are not taken ----
reset_stats();
run_sql('SELECT k, gpu_sum(v) OVER () FROM t LIMIT 1', 'SET gpuagg.enabled = off', 'SELECT gpu_sum(v) FROM t', 'SELECT gpu_sum(v) FROM t');
is(stats('engine, feed, strategy, reason, calls, rows, groups, total_time', "event = 'refused'"),
	"|||gpu_sum is used as a window function|1|||\n|||gpuagg.enabled is off|2|||", 'queries that are not taken are counted by reason');
my ($rc, $out, $err) = $node->psql('postgres', "$require; SELECT gpu_sum(v) OVER () FROM t");
is(stats('calls', "reason LIKE '%window%'"), '2', '... also if gpuagg.require makes it an error');

my $cheaper = 'SET gpuagg.row_cost = 1000';
like(run_sql($cheaper, 'EXPLAIN (VERBOSE) SELECT gpu_sum(v) FROM t'), qr/GpuAgg: not used: another plan is estimated to be cheaper/, 'EXPLAIN shows that core\'s plan is cheaper');
is(stats('calls', "reason LIKE '%cheaper'"), '1', '... and the query is counted');
unlike(run_sql('EXPLAIN (VERBOSE) SELECT gpu_sum(v) FROM t'), qr/not used/, 'EXPLAIN of a query that is taken has no such line');
is(stats('count(*)', "reason LIKE '%cheaper' AND calls <> 1"), '0', '... and the query is not counted');
# a query that is planned during the planning of another one
run_sql('CREATE FUNCTION f() RETURNS numeric LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT gpu_sum(v) FROM t); END $$', 'ANALYZE t');
reset_stats();
run_sql($cheaper, 'SELECT * FROM t WHERE v < f() LIMIT 1');
is(stats('calls', "reason LIKE '%cheaper'"), '1', 'a query that is planned during another one\'s planning is counted once');
reset_stats();
run_sql('SET gpuagg.startup_cost = 30', 'SELECT gpu_count(*), gpu_sum(s) FROM (SELECT k, gpu_sum(v) s FROM t GROUP BY k OFFSET 0) x');
is(stats('calls, rows', "event = 'taken'") . stats('count(*)', "event = 'refused'"), '1|500000', 'an outer aggregate over groups of a scan is not counted as not taken');
# groups that are returned again are no new call
reset_stats();
run_sql($require, 'SELECT g, (SELECT count(*) FROM (SELECT k, gpu_sum(v) s FROM t GROUP BY k) x WHERE s > g) FROM generate_series(1, 50) g');
is(stats('calls, rows', "event = 'taken'"), '1|50000', 'rescans that return kept groups are not counted');
reset_stats();
run_sql('SELECT count(*) FROM t', 'SELECT 1');
is(stats('count(*)', 'true'), '0', "queries with core's aggregates are not counted without gpuagg.replace_builtin");

# ---- the log ----
my $log = -s $node->logfile;
run_sql('SET gpuagg.log_refused = on', 'SET gpuagg.enabled = off', 'SELECT gpu_sum(v) FROM t');
my $text = substr(slurp_file($node->logfile), $log);
like($text, qr/LOG:  gpuagg: query not taken: gpuagg\.enabled is off\n.*DETAIL:  Its query identifier is -?\d+\.\n.*CONTEXT:  statement: SELECT gpu_sum\(v\) FROM t/s, 'gpuagg.log_refused logs a query that is not taken');

# ---- privileges ----
$node->safe_psql('postgres', 'CREATE ROLE plain; CREATE ROLE watcher; GRANT pg_read_all_stats TO watcher');
is(run_sql('SET ROLE plain', "SELECT count(*) > 0, count(last_queryid) FROM gpuagg_stats"), 't|0', 'every role sees the counters');
is(run_sql('SET ROLE watcher', "SELECT count(last_queryid) > 0 FROM gpuagg_stats"), 't', '... and members of pg_read_all_stats the query identifiers');
my $reasons = "SELECT string_agg(DISTINCT reason, ', ' ORDER BY reason) FROM gpuagg_stats WHERE event = 'refused'";
$node->safe_psql('postgres', 'GRANT SELECT ON t TO plain');
reset_stats();
run_sql('SELECT gpu_sum(v) OVER () FROM t LIMIT 1');
is(run_sql('SET ROLE plain', $reasons), '<insufficient privilege>', 'reasons of other roles\' queries are hidden');
is(run_sql('SET ROLE watcher', $reasons), 'gpu_sum is used as a window function', '... but not from members of pg_read_all_stats');
run_sql('SET ROLE plain', 'SELECT gpu_count(v) OVER () FROM t LIMIT 1');
is(run_sql('SET ROLE plain', $reasons), '<insufficient privilege>, gpu_count is used as a window function', '... and reasons of its own queries are shown');
is(run_sql('SELECT count(DISTINCT userid), count(DISTINCT dbid) FROM gpuagg_stats WHERE event = \'refused\''), '2|1', 'each role has its own rows');
($rc, $out, $err) = $node->psql('postgres', 'SET ROLE plain; SELECT gpuagg_stats_reset()');
like($err, qr/permission denied for function gpuagg_stats_reset/, 'gpuagg_stats_reset() needs a privilege');
($rc, $out, $err) = $node->psql('postgres', 'SET ROLE plain; SET gpuagg.log_refused = on');
like($err, qr/permission denied to set parameter "gpuagg.log_refused"/, 'gpuagg.log_refused needs a privilege');

# ---- a full table: reasons that contain names of users' aggregates ----
reset_stats();
run_sql('CREATE SCHEMA AUTHORIZATION plain', 'SET ROLE plain', 'SET search_path = plain, public',
	'DO $$ BEGIN FOR i IN 1..1100 LOOP EXECUTE format(\'CREATE FUNCTION w%s(int8, int8) RETURNS int8 LANGUAGE sql IMMUTABLE AS $f$SELECT $1 + $2$f$\', i);
	EXECUTE format(\'CREATE AGGREGATE a%s(int8) (SFUNC = w%s, STYPE = int8, PARALLEL = SAFE)\', i, i);
	EXECUTE format(\'SELECT a%s(random()::int8), gpu_count(*) FROM t WHERE v < 10\', i); END LOOP; END $$');
my $rows = run_sql("SELECT count(*), sum(calls), count(*) FILTER (WHERE reason = 'other reasons') FROM gpuagg_stats WHERE event = 'refused'");
like($rows, qr/^10\d\d\|1100\|1$/, 'a full table counts further reasons as "other reasons"');
run_sql($require, 'SELECT k, gpu_sum(v) FROM t GROUP BY k');
is(stats('calls, rows', "event = 'taken' AND userid = current_user::regrole"), '1|50000', '... and still counts scans');
run_sql('SELECT gpu_count(v) OVER () FROM t LIMIT 1');
is(stats('calls', "reason = 'gpu_count is used as a window function' AND userid = current_user::regrole"), '1',
	'one role cannot fill the table for other roles');
is(run_sql("SELECT sum(calls) FROM gpuagg_stats WHERE event = 'refused'"), '1101', '... and no call is lost');

# ---- not preloaded ----
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
($rc, $out, $err) = $node->psql('postgres', "SELECT gpuagg_version() IS NULL; $require; SELECT gpu_sum(v) FROM t; SELECT calls FROM gpuagg_stats WHERE event = 'taken'; SELECT gpuagg_stats_reset() IS NULL");
if ($node->pg_version >= 17)
{
	is($out, "f\n1250025000\n1\nf", 'gpuagg_stats works without preloading');
}
else
{
	is($out, "f\n1250025000\nf", 'gpuagg_stats is empty without preloading');
	like($err, qr/NOTICE: .*nothing is counted.*HINT: .*shared_preload_libraries/s, '... and a notice gives the reason');
}
$node->stop;
done_testing();
