# A parallel plan merges many groups in partitions. The GPU server has room for only one session, so that one participant uses the GPU
# and the others the CPU engine. The one with the GPU merges no partition, and the others must not wait for it forever.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.replace_builtin = on
gpuagg.pinned_memory_limit = '30MB'
gpuagg.device_cache_memory = 0
work_mem = '64MB'
jit = off
statement_timeout = '300s'
max_parallel_workers_per_gather = 3
parallel_setup_cost = 0
parallel_tuple_cost = 1
min_parallel_table_scan_size = 0
CONF
# The leader usually gets the session. It ends after one worker and before another.
$node->safe_psql('postgres', <<SQL);
CREATE TABLE rows AS SELECT (i * 7919::bigint % 50021)::int AS k, i % 50000 = 1 AS slow FROM generate_series(1, 400000) i;
ALTER TABLE rows SET (parallel_workers = 3);
VACUUM ANALYZE rows;
CREATE FUNCTION wait(slow boolean) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN
	IF slow THEN
		PERFORM pg_sleep(CASE WHEN leader_pid IS NULL THEN 0.2 WHEN pid % 2 = 0 THEN 0.8 ELSE 0 END)
		FROM pg_stat_activity WHERE pid = pg_backend_pid();
	END IF;
	RETURN true;
END';
SQL
$node->wait_until_ready;

my $parts = 0;
foreach my $run (1 .. 4)
{
	my ($rc, $out, $err) = $node->psql('postgres', 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
		SELECT k, count(*), bool_or(slow) FROM rows WHERE wait(slow) GROUP BY k');
	unlike($err, qr/timeout/, "run $run: no participant waits forever");
	like($out, qr/Gather \(actual rows=50021(?:\.00)? /, '... and all groups are returned');
	$parts++ if $out =~ /Merged Parts/;
}
cmp_ok($parts, '>', 0, 'groups were merged in partitions at least once');
done_testing();
