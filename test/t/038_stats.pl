# gpuagg_stats: what is counted of scans and refusals, who sees what, gpuagg.log_refused; and EXPLAIN's word for
# queries that are cheaper without the custom scan.
use strict;
use warnings;
use lib "$ENV{TESTDIR}/lib";
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
sub stats { my ($what, $where) = @_; return join("\n", sort split(/\n/, $node->safe_psql('postgres', "SELECT $what FROM gpuagg_stats WHERE $where"))) }
sub run_sql { return $node->safe_psql('postgres', join('; ', @_)) }
my $require = "SET gpuagg.require = 'require'";

# ---- scans ----
run_sql($require, 'SELECT k, gpu_sum(v) FROM t GROUP BY k', 'SELECT k, gpu_count(*) FROM t WHERE v <= 1000 GROUP BY k');
is(stats('engine, feed, strategy, calls, rows, groups', "event = 'taken'"), 'cpu|heap|direct|2|51000|20', 'two scans of pages');
is(stats('reason, calls', "event = 'engine'"), 'no GPU: built without CUDA|2', '... and why not on a GPU');
is(stats('count(*)', "event IN ('feed', 'refused')"), '0', '... nothing else');
is(stats('total_time > 0 AND total_time < 60000 AND last_time BETWEEN since AND clock_timestamp() AND last_queryid <> 0', "event = 'taken'"), 't', '... times and an identifier');
my $id = run_sql("EXPLAIN (VERBOSE, FORMAT JSON) SELECT k, gpu_count(*) FROM t WHERE v <= 1000 GROUP BY k") =~ /"Query Identifier": (-?\d+)/ ? $1 : '';
is(stats('last_queryid', "event = 'taken'"), $id, '... that of the last query');

reset_stats();
is(run_sql('SELECT count(*) FROM gpuagg_stats'), '0', 'reset');
run_sql($require, "SET gpuagg.feed = 'tuples'", 'SELECT gpu_sum(v) FROM t');
is(stats('event, feed, strategy, reason, calls, rows, groups', "event IN ('taken', 'feed')"),
	"feed|tuples||gpuagg.feed is tuples|1|50000|1\ntaken|tuples|single||1|50000|1", 'rows of the child plan');

# rescans are calls; scans that EXPLAIN does not run, and those that fail, are none
reset_stats();
run_sql($require, 'SELECT (SELECT gpu_sum(v) FROM t WHERE t.v <= g) FROM generate_series(1, 3) g', 'EXPLAIN SELECT gpu_sum(v) FROM t');
is(stats('calls, rows, groups', "event = 'taken'"), '3|6|3', 'rescans with parameters');
$node->psql('postgres', "$require; SELECT gpu_sum(1 / (v - 40000)) FROM t");
is(stats('calls', "event = 'taken'"), '3', 'a failed scan');
reset_stats();
run_sql($require, 'BEGIN; DECLARE c CURSOR FOR SELECT k, gpu_sum(v) FROM t GROUP BY k; FETCH 2 FROM c; CLOSE c; COMMIT');
is(stats('calls, rows', "event = 'taken'"), '1|50000', 'a cursor that was not read to its end');

# participants of a parallel plan are one call
reset_stats();
run_sql($require, 'SET max_parallel_workers_per_gather = 2; SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0',
	'SET parallel_leader_participation = off', 'SELECT k, gpu_sum(v) FROM t GROUP BY k');
is(stats('calls, rows, groups', "event = 'taken'"), '1|50000|10', 'a parallel plan');

# ---- refusals ----
reset_stats();
run_sql('SELECT k, gpu_sum(v) OVER () FROM t LIMIT 1', 'SET gpuagg.enabled = off', 'SELECT gpu_sum(v) FROM t', 'SELECT gpu_sum(v) FROM t');
is(stats('engine, feed, strategy, reason, calls, rows, groups, total_time', "event = 'refused'"),
	"|||gpu_sum is used as a window function|1|||\n|||gpuagg.enabled is off|2|||", 'refusals');
my ($rc, $out, $err) = $node->psql('postgres', "$require; SELECT gpu_sum(v) OVER () FROM t");
is(stats('calls', "reason LIKE '%window%'"), '2', 'one that is an error');

my $cheaper = 'SET gpuagg.row_cost = 1000';
like(run_sql($cheaper, 'EXPLAIN (VERBOSE) SELECT gpu_sum(v) FROM t'), qr/GpuAgg: not used: another plan is estimated to be cheaper/, 'EXPLAIN of a query that core runs cheaper');
is(stats('calls', "reason LIKE '%cheaper'"), '1', '... which is counted');
unlike(run_sql('EXPLAIN (VERBOSE) SELECT gpu_sum(v) FROM t'), qr/not used/, '... and says nothing of one that is taken');
is(stats('count(*)', "reason LIKE '%cheaper' AND calls <> 1"), '0', '... nor counts it');
# planned inside of another's planning
run_sql('CREATE FUNCTION f() RETURNS numeric LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT gpu_sum(v) FROM t); END $$', 'ANALYZE t');
reset_stats();
run_sql($cheaper, 'SELECT * FROM t WHERE v < f() LIMIT 1');
is(stats('calls', "reason LIKE '%cheaper'"), '1', 'a query that is planned while another one is');
reset_stats();
run_sql('SET gpuagg.startup_cost = 30', 'SELECT gpu_count(*), gpu_sum(s) FROM (SELECT k, gpu_sum(v) s FROM t GROUP BY k OFFSET 0) x');
is(stats('calls, rows', "event = 'taken'") . stats('count(*)', "event = 'refused'"), '1|500000', 'a count of groups that are taken is none that is refused');
# groups that are returned again are not a run
reset_stats();
run_sql($require, 'SELECT g, (SELECT count(*) FROM (SELECT k, gpu_sum(v) s FROM t GROUP BY k) x WHERE s > g) FROM generate_series(1, 50) g');
is(stats('calls, rows', "event = 'taken'"), '1|50000', 'kept groups');
reset_stats();
run_sql('SELECT count(*) FROM t', 'SELECT 1');
is(stats('count(*)', 'true'), '0', "core's aggregates without gpuagg.replace_builtin are nobody's concern");

# ---- the log ----
my $log = -s $node->logfile;
run_sql('SET gpuagg.log_refused = on', 'SET gpuagg.enabled = off', 'SELECT gpu_sum(v) FROM t');
my $text = substr(slurp_file($node->logfile), $log);
like($text, qr/LOG:  gpuagg: query not taken: gpuagg\.enabled is off\n.*DETAIL:  Its query identifier is -?\d+\.\n.*CONTEXT:  statement: SELECT gpu_sum\(v\) FROM t/s, 'gpuagg.log_refused');

# ---- who may what ----
$node->safe_psql('postgres', 'CREATE ROLE plain; CREATE ROLE watcher; GRANT pg_read_all_stats TO watcher');
is(run_sql('SET ROLE plain', "SELECT count(*) > 0, count(last_queryid) FROM gpuagg_stats"), 't|0', 'everybody sees the counters');
is(run_sql('SET ROLE watcher', "SELECT count(last_queryid) > 0 FROM gpuagg_stats"), 't', 'members of pg_read_all_stats also the queries');
my $reasons = "SELECT string_agg(DISTINCT reason, ', ' ORDER BY reason) FROM gpuagg_stats WHERE event = 'refused'";
$node->safe_psql('postgres', 'GRANT SELECT ON t TO plain');
reset_stats();
run_sql('SELECT gpu_sum(v) OVER () FROM t LIMIT 1');
is(run_sql('SET ROLE plain', $reasons), '<insufficient privilege>', 'reasons of other roles are hidden');
is(run_sql('SET ROLE watcher', $reasons), 'gpu_sum is used as a window function', '... but not from members of pg_read_all_stats');
run_sql('SET ROLE plain', 'SELECT gpu_count(v) OVER () FROM t LIMIT 1');
is(run_sql('SET ROLE plain', $reasons), '<insufficient privilege>, gpu_count is used as a window function', '... nor those of the role itself');
is(run_sql('SELECT count(DISTINCT userid), count(DISTINCT dbid) FROM gpuagg_stats WHERE event = \'refused\''), '2|1', 'rows by role');
($rc, $out, $err) = $node->psql('postgres', 'SET ROLE plain; SELECT gpuagg_stats_reset()');
like($err, qr/permission denied for function gpuagg_stats_reset/, 'only who may resets');
($rc, $out, $err) = $node->psql('postgres', 'SET ROLE plain; SET gpuagg.log_refused = on');
like($err, qr/permission denied to set parameter "gpuagg.log_refused"/, 'only who may logs');

# ---- a full table: reasons with types of users ----
reset_stats();
run_sql('CREATE SCHEMA AUTHORIZATION plain', 'SET ROLE plain', 'SET search_path = plain, public',
	'DO $$ BEGIN FOR i IN 1..1100 LOOP EXECUTE format(\'CREATE FUNCTION w%s(int8, int8) RETURNS int8 LANGUAGE sql IMMUTABLE AS $f$SELECT $1 + $2$f$\', i);
	EXECUTE format(\'CREATE AGGREGATE a%s(int8) (SFUNC = w%s, STYPE = int8, PARALLEL = SAFE)\', i, i);
	EXECUTE format(\'SELECT a%s(random()::int8), gpu_count(*) FROM t WHERE v < 10\', i); END LOOP; END $$');
my $rows = run_sql("SELECT count(*), sum(calls), count(*) FILTER (WHERE reason = 'other reasons') FROM gpuagg_stats WHERE event = 'refused'");
like($rows, qr/^10\d\d\|1100\|1$/, 'a full table keeps counting');
run_sql($require, 'SELECT k, gpu_sum(v) FROM t GROUP BY k');
is(stats('calls, rows', "event = 'taken' AND userid = current_user::regrole"), '1|50000', '... other events too');
run_sql('SELECT gpu_count(v) OVER () FROM t LIMIT 1');
is(stats('calls', "reason = 'gpu_count is used as a window function' AND userid = current_user::regrole"), '1',
	'one role cannot fill the table for the others');
is(run_sql("SELECT sum(calls) FROM gpuagg_stats WHERE event = 'refused'"), '1101', '... and no count is lost');

# ---- not preloaded ----
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
($rc, $out, $err) = $node->psql('postgres', "SELECT gpuagg_version() IS NULL; $require; SELECT gpu_sum(v) FROM t; SELECT calls FROM gpuagg_stats WHERE event = 'taken'; SELECT gpuagg_stats_reset() IS NULL");
if ($node->pg_version >= 17)
{
	is($out, "f\n1250025000\n1\nf", 'without preloading');
}
else
{
	is($out, "f\n1250025000\nf", 'without preloading');
	like($err, qr/NOTICE: .*nothing is counted.*HINT: .*shared_preload_libraries/s, '... says why');
}
$node->stop;
done_testing();
