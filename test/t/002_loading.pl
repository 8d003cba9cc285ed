# The three ways of loading the library: at first use, by session_preload_libraries and by shared_preload_libraries. Also changes
# of settings in a running cluster, and sessions that have looked up the extension's aggregates before the extension changes.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $plan = 'EXPLAIN (COSTS OFF) SELECT k, gpu_sum(v) FROM t GROUP BY k';
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\njit = off\nmax_parallel_workers_per_gather = 0\ngpuagg.cache_memory = 32MB\n");
$node->start;
# Settings made before the library is loaded are kept. The queries of the extension's script do not obey them.
is($node->safe_psql('postgres', "SET gpuagg.engine = 'cuda'; SET gpuagg.require = 'require'; SET gpuagg.replace_builtin = on;
	CREATE EXTENSION gpuagg; SHOW gpuagg.replace_builtin; SHOW gpuagg.engine"), "on\ncuda", 'the extension is created although settings require a GPU');
$node->safe_psql('postgres', <<SQL);
CREATE TABLE t AS SELECT i % 10 AS k, i AS v FROM generate_series(1, 200000) i;
ANALYZE t;
CREATE ROLE plain;
GRANT SELECT ON t TO plain;
SQL

# ---- only CREATE EXTENSION ----
is($node->safe_psql('postgres', 'SELECT gpu_sum(v) FROM t'), '20000100000', 'aggregates work without preloading');
is($node->safe_psql('postgres', 'SET ROLE plain; SELECT k, gpu_max(v) FROM t GROUP BY k ORDER BY k LIMIT 1'),
	'0|200000', '... also for a role without privileges');
like($node->safe_psql('postgres', "LOAD 'gpuagg'; $plan"), qr/Custom Scan \(GpuAgg\)/, 'the custom scan is used after LOAD');
like(
	$node->safe_psql('postgres', "SELECT count(*) FROM gpuagg_devices(); $plan"),
	qr/Custom Scan \(GpuAgg\)/,
	'... and after a call of a function of the library');
like(
	$node->safe_psql('postgres', "SET gpuagg.enabled = off; SELECT count(*) FROM gpuagg_devices(); SHOW gpuagg.enabled; $plan"),
	qr/off\n.*Aggregate/s,
	'a setting made before loading is kept');

is($node->safe_psql('postgres', "LOAD 'gpuagg'; SELECT context, setting FROM pg_settings WHERE name = 'gpuagg.cache_memory'"),
	'sighup|32', 'without preloading gpuagg.cache_memory can be set');
is($node->safe_psql('postgres', "SELECT count(*), gpuagg_cache_evict('t') FROM gpuagg_cache"), '0|0', '... but there is no cache');

# ---- session_preload_libraries ----
$node->safe_psql('postgres', "ALTER DATABASE postgres SET session_preload_libraries = 'gpuagg'");
like($node->safe_psql('postgres', $plan), qr/Custom Scan \(GpuAgg\)/, 'session_preload_libraries: the first query uses the custom scan');
like($node->safe_psql('postgres', "SET ROLE plain; $plan"), qr/Custom Scan \(GpuAgg\)/, '... also for a role without privileges');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET session_preload_libraries');

# ---- shared_preload_libraries ----
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpuagg'\n");
$node->restart;
like($node->safe_psql('postgres', $plan), qr/Custom Scan \(GpuAgg\)/, 'shared_preload_libraries: the first query uses the custom scan');

is($node->safe_psql('postgres', "SELECT context, setting FROM pg_settings WHERE name = 'gpuagg.cache_memory'"),
	'postmaster|32', 'gpuagg.cache_memory has the value that was set');
my $shared = "SELECT count(*) FROM pg_shmem_allocations WHERE name LIKE 'gpuagg cache%'";
is($node->safe_psql('postgres', $shared), '4', '... and the cache is in shared memory');
$node->append_conf('postgresql.conf', "gpuagg.cache_memory = 0\n");
$node->restart;
is($node->safe_psql('postgres', $shared), '0', 'with gpuagg.cache_memory = 0 there is no cache');
is($node->safe_psql('postgres', "DROP TABLE IF EXISTS no_such; SELECT count(*), gpuagg_cache_evict('t') FROM gpuagg_cache"),
	'0|0', '... and the cache\'s view and functions work');
$node->append_conf('postgresql.conf', "gpuagg.cache_memory = -1\n");
$node->restart;
is($node->safe_psql('postgres', "SELECT setting::int BETWEEN 1 AND 1024 FROM pg_settings WHERE name = 'gpuagg.cache_memory'"),
	't', 'gpuagg.cache_memory = -1 is replaced by a computed size');

# ---- a database without the extension in a cluster with the library ----
$node->safe_psql('postgres', 'CREATE DATABASE other');
is($node->safe_psql('other', 'SELECT count(*) FROM generate_series(1, 10)'), '10', 'a database without the extension works');
like(
	$node->safe_psql('other', "SET gpuagg.replace_builtin = on; SET gpuagg.startup_cost = 0;
		EXPLAIN (COSTS OFF) SELECT g % 10, count(*) FROM generate_series(1, 1000000) g GROUP BY 1"),
	qr/Custom Scan \(GpuAgg\)/,
	'replace_builtin works without the extension');

# ---- a reload changes settings in running sessions ----
my $session = $node->background_psql('postgres');
like($session->query($plan), qr/Custom Scan/, 'a running session uses the custom scan');
$node->append_conf('postgresql.conf', "gpuagg.enabled = off\n");
$node->reload;
$node->poll_query_until('postgres', "SELECT current_setting('gpuagg.enabled') = 'off'");
unlike($session->query($plan), qr/Custom Scan/, '... and does not after a reload disables it');
$node->append_conf('postgresql.conf', "gpuagg.enabled = on\ngpuagg.engine = 'nonsense'\n");
my $log = -s $node->logfile;
$node->reload;
$node->wait_for_log(qr/invalid value for parameter "gpuagg.engine": "nonsense"/, $log);
pass('an invalid value in postgresql.conf is reported');
is($session->query('SELECT gpu_sum(v) FROM t'), '20000100000', '... and the session continues');
$session->quit;
$node->append_conf('postgresql.conf', "gpuagg.engine = 'auto'\n");

# ---- a session that is interrupted while it looks up the extension's aggregates looks them up again ----
my $locker = $node->background_psql('postgres');
$session = $node->background_psql('postgres', on_error_stop => 0);
$session->query("SET statement_timeout = '200ms'");
$locker->query('BEGIN; LOCK pg_extension');
$session->query($plan);
like($session->{stderr}, qr/canceling statement due to statement timeout/, 'a query times out while pg_extension is locked');
$locker->quit;
like($session->query("SET statement_timeout = 0; $plan"), qr/Custom Scan/, '... and the next query uses the custom scan');
$session->quit;

# ---- the extension is dropped, created again and moved to another schema ----
is($node->safe_psql('postgres', 'DROP EXTENSION gpuagg; CREATE EXTENSION gpuagg; SELECT gpu_sum(v) FROM t'),
	'20000100000', 'aggregates work after DROP and CREATE EXTENSION in the same session');
$session = $node->background_psql('postgres', on_error_stop => 0);
like($session->query($plan), qr/Custom Scan/, 'a session uses the custom scan');
$node->safe_psql('postgres', 'DROP EXTENSION gpuagg; CREATE EXTENSION gpuagg');
like($session->query($plan), qr/Custom Scan/, '... also after another session has recreated the extension');
$session->quit;
$node->safe_psql('postgres', 'CREATE SCHEMA elsewhere; ALTER EXTENSION gpuagg SET SCHEMA elsewhere');
like(
	$node->safe_psql('postgres', 'EXPLAIN (COSTS OFF) SELECT k, elsewhere.gpu_sum(v) FROM t GROUP BY k'),
	qr/Custom Scan/, 'the custom scan is used after the extension moved to another schema');
is($node->safe_psql('postgres', 'SELECT elsewhere.gpuagg_version()'), '1.1', '... and gpuagg_version() works there');
$node->stop;
done_testing();
