# A backend that ends in the middle of a custom scan leaves nothing behind, and other sessions go on.
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

# The slow query, in a session of its own, half a second later.
sub start_slow
{
	my ($settings) = @_;
	my @started = $node->start_query($settings, $slow);

	select(undef, undef, undef, 0.5);
	return @started;
}

sub gone
{
	my ($backend) = @_;

	return $node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $backend");
}

my ($session, $backend) = start_slow("SET work_mem = '64kB'; SET max_parallel_workers_per_gather = 0");
$node->safe_psql('postgres', "SELECT pg_terminate_backend($backend)");
ok(gone($backend), 'a terminated backend goes away');
eval { $session->quit };
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'its temporary files are gone');
is($other->query('SELECT gpu_sum(v) FROM t'), '125000250000', 'another session is unharmed');

($session, $backend) = start_slow('SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
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
gone($backend);
eval { $session->quit };
is($other->query('SELECT gpu_sum(v) FROM t'), '125000250000', 'another session is unharmed');
$other->quit;

# A backend killed outright makes PostgreSQL restart all of them, as for any
# backend; afterwards everything works again.
($session, $backend) = start_slow("SET work_mem = '64kB'; SET max_parallel_workers_per_gather = 0");
kill 'KILL', $backend;
eval { $session->quit };
# the postmaster may not have noticed it when the first connection comes
ok($node->poll_query_until('postgres', 'SELECT gpu_sum(v) = 125000250000 FROM t'), 'the server answers after a crash');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_ls_tmpdir()'), 'no temporary file survives it');
$node->stop;
done_testing();
