# A process ends in the middle of a custom scan: a backend or a parallel worker is terminated, or a backend is killed. It leaves no
# temporary files, and other sessions continue.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cpu'
restart_after_crash = on
max_parallel_workers_per_gather = 2
CONF
$node->safe_psql('postgres', <<SQL);
CREATE TABLE t AS SELECT (i * 7919::bigint % 1000003)::int AS k, i AS v FROM generate_series(1, 500000) i;
ANALYZE t;
SQL
my $slow = 'SELECT k, gpu_sum(v) FROM t, generate_series(1, 100) GROUP BY k';
my $other = $node->background_psql('postgres');

# Starts the slow query in a new session, and returns half a second later.
sub start_slow_query
{
	my ($settings) = @_;
	my @started = $node->start_query($settings, $slow);

	select(undef, undef, undef, 0.5);
	return @started;
}

sub wait_until_gone
{
	my ($backend) = @_;

	return $node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $backend");
}

my ($session, $backend) = start_slow_query("SET work_mem = '64kB'; SET max_parallel_workers_per_gather = 0");
$node->safe_psql('postgres', "SELECT pg_terminate_backend($backend)");
ok(wait_until_gone($backend), 'a terminated backend ends');
eval { $session->quit };
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', '... and its temporary files are removed');
is($other->query('SELECT gpu_sum(v) FROM t'), '125000250000', '... and another session continues');

($session, $backend) = start_slow_query('SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0');
my $worker = $node->safe_psql('postgres', "SELECT min(pid) FROM pg_stat_activity WHERE leader_pid = $backend");
SKIP:
{
	skip 'no parallel worker', 1 if $worker eq '';
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
	ok( $node->poll_query_until('postgres', "SELECT state <> 'active' FROM pg_stat_activity WHERE pid = $backend"),
		'a terminated worker ends the query with an error');
}
$node->safe_psql('postgres', "SELECT pg_terminate_backend($backend)");
wait_until_gone($backend);
eval { $session->quit };
is($other->query('SELECT gpu_sum(v) FROM t'), '125000250000', 'another session continues after a worker and its leader were terminated');
$other->quit;

# After SIGKILL of a backend PostgreSQL restarts all processes of the cluster.
($session, $backend) = start_slow_query("SET work_mem = '64kB'; SET max_parallel_workers_per_gather = 0");
kill 'KILL', $backend;
eval { $session->quit };
# the first attempts to connect may come before the postmaster has noticed the crash
ok($node->poll_query_until('postgres', 'SELECT gpu_sum(v) = 125000250000 FROM t'), 'a query gives the right answer after a crash');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_ls_tmpdir()'), '... and no temporary file is left');
$node->stop;
done_testing();
