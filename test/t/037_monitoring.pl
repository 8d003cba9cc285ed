# gpuagg_status and gpuagg_progress with each way of loading the library, in each state of the server, and with the SQL objects of
# version 1.0.
use strict;
use warnings;
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
	'1|first use|absent|gpuagg is not in shared_preload_libraries', 'gpuagg_status shows that the library was loaded by its first use');
is(status($node, 'extension_version = library_version AND library_version = gpuagg_version()'), 't', '... the versions of the extension and of the library');
is(status($node, 'num_nulls(last_error, server_pid, supervisor_pid, driver), restarts, devices, build, cache_memory, cache_used'),
	'4|0|0|built without CUDA|0|0', '... and that there is no server and no cache');
$node->safe_psql('postgres', "ALTER ROLE CURRENT_USER SET session_preload_libraries = 'gpuagg'");
is(status($node, 'loaded_by'), 'session_preload_libraries', '... and that session_preload_libraries loaded it');

# Progress needs preloading before PostgreSQL 17; a notice says so.
$node->safe_psql('postgres', 'CREATE TABLE rows (k int, v int); INSERT INTO rows SELECT i % 5, i FROM generate_series(1, 100000) i');
my ($rc, $out, $err) = $node->psql('postgres', "SET gpuagg.require = 'require'; BEGIN;
	DECLARE c CURSOR FOR SELECT k, gpu_sum(v) FROM rows GROUP BY k; FETCH 1 FROM c \\gset
	SELECT relation, phase, groups FROM gpuagg_progress");
if ($node->pg_version >= 17)
{
	is($out, 'rows|returning groups|5', 'gpuagg_progress works without preloading');
	is($err, '', '... without a notice');
}
else
{
	is($out, '', 'gpuagg_progress is empty without preloading');
	like($err, qr/NOTICE: .*progress is not reported.*HINT: .*shared_preload_libraries/s, '... and a notice gives the reason');
}

# ---- preloaded, without a server ----
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'gpuagg'\ngpuagg.cache_memory = 32MB");
$node->restart;
is(status($node, 'loaded_by, server, reason, build, cache_memory, cache_used'),
	'shared_preload_libraries|unavailable|no GPU: built without CUDA|built without CUDA|33554432|0', 'gpuagg_status shows preloading and the size of the cache');
$node->safe_psql('postgres', "SET gpuagg.cache = eager; SET gpuagg.require = 'require'; VACUUM rows; SELECT k, gpu_sum(v) FROM rows GROUP BY k");
is(status($node, 'cache_used > 0 AND cache_used < cache_memory'), 't', '... and the used memory of the cache');
$node->append_conf('postgresql.conf', 'gpuagg.server = off');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT reason = 'gpuagg.server is off' AND server = 'off' FROM gpuagg_status"), 'gpuagg_status shows gpuagg.server = off after a reload');
$node->restart;
is(status($node, 'server, reason'), 'off|gpuagg.server is off', '... and after a restart');

$node->safe_psql('postgres', 'CREATE ROLE plain');
is(status($node, 'count(*)', 'SET ROLE plain; '), '1', 'every role may read gpuagg_status');

# ---- the SQL objects of version 1.0, and views over them ----
$node->safe_psql('postgres', 'DROP EXTENSION gpuagg; CREATE EXTENSION gpuagg VERSION \'1.0\'');
is($node->safe_psql('postgres', "BEGIN; DECLARE c CURSOR FOR SELECT k, gpu_sum(v) FROM rows GROUP BY k; FETCH 1 FROM c \\gset
	SELECT relation, groups FROM gpuagg_progress"), 'rows|5', 'gpuagg_progress works with the SQL objects of version 1.0');
$node->safe_psql('postgres', 'CREATE VIEW mine AS SELECT relation, groups FROM gpuagg_progress');
$node->safe_psql('postgres', 'ALTER EXTENSION gpuagg UPDATE');
is($node->safe_psql('postgres', "BEGIN; DECLARE c CURSOR FOR SELECT k, gpu_sum(v) FROM rows GROUP BY k; FETCH 1 FROM c \\gset
	SELECT m.relation, m.groups, p.phase FROM mine m, gpuagg_progress p"), 'rows|5|returning groups', '... and after an update, also through an older view');
$node->stop;

# ---- with a server ----
SKIP:
{
	skip 'build/test/gpuagg-server is not built', 4 unless -x server_program();
	$node = GpuaggNode->start_new('server', server => 1);
	ok($node->wait_until_ready, 'a server starts');
	is(status($node, 'server, reason IS NULL, server_pid, supervisor_pid, restarts, devices, driver, build'),
		join('|', 'ready', 't', $node->server_pid, $node->supervisor_pid, 0, 2, '13.0', 'CUDA 13.0, compute capabilities 80 90'), 'gpuagg_status shows the server');
	$node->kill_server;
	ok($node->poll_query_until('postgres', "SELECT restarts = 1 AND server = 'ready' FROM gpuagg_status"), '... and its restart');
	like(status($node, 'last_error'), qr/terminated by signal 9/, '... and the reason');
	$node->stop;
}
done_testing();
