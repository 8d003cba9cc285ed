# gpuagg_status and gpuagg_progress: with each way of loading the library, each state of the server, and the SQL objects of
# version 1.0.
use strict;
use warnings;
use lib "$ENV{TESTDIR}/lib";
use GpuaggNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

sub status { my ($node, $what, $before) = @_; return $node->safe_psql('postgres', ($before // '') . "SELECT $what FROM gpuagg_status") }

# ---- not preloaded ----
my $node = PostgreSQL::Test::Cluster->new('late');
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\njit = off\nmax_parallel_workers_per_gather = 0");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpuagg');
is(status($node, 'count(*), min(loaded_by), min(server), min(reason)'),
	'1|first use|absent|gpuagg is not in shared_preload_libraries', 'loaded by the first use');
is(status($node, 'extension_version = library_version AND library_version = gpuagg_version()'), 't', 'both versions are told');
is(status($node, 'num_nulls(last_error, server_pid, supervisor_pid, driver), restarts, devices, build, cache_memory, cache_used'),
	'4|0|0|built without CUDA|0|0', 'without a server and a cache');
$node->safe_psql('postgres', "ALTER ROLE CURRENT_USER SET session_preload_libraries = 'gpuagg'");
is(status($node, 'loaded_by'), 'session_preload_libraries', 'loaded by session_preload_libraries');

# Progress: from PostgreSQL 17 on in any case; before, a notice says why not.
$node->safe_psql('postgres', 'CREATE TABLE rows (k int, v int); INSERT INTO rows SELECT i % 5, i FROM generate_series(1, 100000) i');
my ($rc, $out, $err) = $node->psql('postgres', "SET gpuagg.require = 'require'; BEGIN;
	DECLARE c CURSOR FOR SELECT k, gpu_sum(v) FROM rows GROUP BY k; FETCH 1 FROM c \\gset
	SELECT relation, phase, groups FROM gpuagg_progress");
if ($node->pg_version >= 17)
{
	is($out, 'rows|returning groups|5', 'gpuagg_progress without preloading');
	is($err, '', '... and without a notice');
}
else
{
	is($out, '', 'gpuagg_progress without preloading');
	like($err, qr/NOTICE: .*progress is not reported.*HINT: .*shared_preload_libraries/s, '... says why');
}

# ---- preloaded, without a server ----
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpuagg'\ngpuagg.cache_memory = 32MB");
$node->restart;
is(status($node, 'loaded_by, server, reason, build, cache_memory, cache_used'),
	'shared_preload_libraries|unavailable|no GPU: built without CUDA|built without CUDA|33554432|0', 'preloaded');
$node->safe_psql('postgres', "SET gpuagg.cache = eager; SET gpuagg.require = 'require'; VACUUM rows; SELECT k, gpu_sum(v) FROM rows GROUP BY k");
is(status($node, 'cache_used > 0 AND cache_used < cache_memory'), 't', 'memory of the cache that is used');
$node->append_conf('postgresql.conf', 'gpuagg.server = off');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT reason = 'gpuagg.server is off' AND server = 'off' FROM gpuagg_status"), 'without anybody who would say so it is off');
$node->restart;
is(status($node, 'server, reason'), 'off|gpuagg.server is off', '... from the start');

# Everybody may look.
$node->safe_psql('postgres', 'CREATE ROLE plain');
is(status($node, 'count(*)', 'SET ROLE plain; '), '1', 'gpuagg_status is for everybody');

# ---- the SQL objects of version 1.0, and views upon them ----
$node->safe_psql('postgres', 'DROP EXTENSION gpuagg; CREATE EXTENSION gpuagg VERSION \'1.0\'');
is($node->safe_psql('postgres', "BEGIN; DECLARE c CURSOR FOR SELECT k, gpu_sum(v) FROM rows GROUP BY k; FETCH 1 FROM c \\gset
	SELECT relation, groups FROM gpuagg_progress"), 'rows|5', 'progress with the SQL objects of 1.0');
$node->safe_psql('postgres', 'CREATE VIEW mine AS SELECT relation, groups FROM gpuagg_progress');
$node->safe_psql('postgres', 'ALTER EXTENSION gpuagg UPDATE');
is($node->safe_psql('postgres', "BEGIN; DECLARE c CURSOR FOR SELECT k, gpu_sum(v) FROM rows GROUP BY k; FETCH 1 FROM c \\gset
	SELECT m.relation, m.groups, p.phase FROM mine m, gpuagg_progress p"), 'rows|5|returning groups', '... with the newest, and a view of a user');
$node->stop;

# ---- with a server ----
SKIP:
{
	skip 'build/test/gpuagg-server is not built', 4 unless -x server_program();
	$node = GpuaggNode->start_new('server', server => 1);
	ok($node->wait_until_ready, 'a server starts');
	is(status($node, 'server, reason IS NULL, server_pid, supervisor_pid, restarts, devices, driver, build'),
		join('|', 'ready', 't', $node->server_pid, $node->supervisor_pid, 0, 2, '13.0', 'CUDA 13.0, compute capabilities 80 90'), 'gpuagg_status of it');
	$node->kill_server;
	ok($node->poll_query_until('postgres', "SELECT restarts = 1 AND server = 'ready' FROM gpuagg_status"), 'it is started again');
	like(status($node, 'last_error'), qr/terminated by signal 9/, '... and what happened is told');
	$node->stop;
}
done_testing();
