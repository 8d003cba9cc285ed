# Cancel and statement_timeout act at once, in every phase of a custom scan: no phase runs long without looking for
# interrupts.  "Long" is time of the backend's own processor, so that it does not matter what else the machine has to do.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'no /proc/self/schedstat' unless -e '/proc/self/schedstat';

# Milliseconds that a backend may compute after it was told to end.  A batch of 4096 rows, after which it must look,
# takes less than 1 here, and 20 with expressions that core evaluates; the queries take 5000 and more.
my $LIMIT = 150;

my $node = GpuaggNode->start_new('main', conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cpu'
CONF
$node->safe_psql('postgres', <<SQL);
CREATE TABLE rows AS SELECT i, (i * 7919::bigint % 1000003)::int AS k, i % 100 AS small, i::float8 AS x, i::numeric AS n
FROM generate_series(1, 1000000) i;
ANALYZE rows;
SQL

# [name, query, settings]
my @cases = (
	[ 'one group', 'SELECT gpu_sum(x) FROM rows, generate_series(1, 100)' ],
	[ 'few groups', 'SELECT small, gpu_count(*), gpu_avg(x) FROM rows, generate_series(1, 100) GROUP BY small' ],
	[ 'many groups', 'SELECT k, gpu_count(*) FROM rows, generate_series(1, 100) GROUP BY k' ],
	[ 'spilled groups', 'SELECT k, gpu_sum(i) FROM rows, generate_series(1, 100) GROUP BY k', "SET work_mem = '64kB'" ],
	[ 'own transitions', 'SELECT small, gpu_sum(n) FROM rows, generate_series(1, 100) GROUP BY small' ],
	[ 'heap pages', "SELECT small, gpu_count(*) FROM rows WHERE md5(repeat(i::text, 500)) > 'a' GROUP BY small" ],
	[ 'ordered aggregates', 'SELECT gpu_longest_run(x > 5 ORDER BY md5(repeat(i::text, 100))) FROM rows, generate_series(1, 10)' ],
	[ 'sorted input', 'SELECT k, gpu_sum(i) FROM rows, generate_series(1, 100) GROUP BY k ORDER BY k', 'SET enable_hashagg = off' ],
	[ 'parallel', 'SELECT small, gpu_count(*) FROM rows, generate_series(1, 100) GROUP BY small',
		'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0' ]);

# Milliseconds that a process has computed.
sub computed
{
	my ($pid) = @_;
	return (split ' ', slurp_file("/proc/$pid/schedstat"))[0] / 1e6;
}

sub wait_until_idle
{
	my ($pid) = @_;
	return $node->poll_query_until('postgres', "SELECT state LIKE 'idle%' FROM pg_stat_activity WHERE pid = $pid");
}

like($node->safe_psql('postgres', "EXPLAIN $_->[1]"), qr/Feed: heap pages of rows/, "$_->[0]: feed") foreach grep { $_->[0] =~ /heap/ } @cases;

foreach my $case (@cases)
{
	my ($name, $query, $settings) = (@$case, '');

	# Cancelled in several phases: while groups are made, and when they are many or are spilled.
	foreach my $after (0.1, 0.8)
	{
		my ($session, $pid) = $node->start_query($settings, $query);
		my $since;

		select(undef, undef, undef, $after);
		$since = computed($pid);
		is($node->safe_psql('postgres', "SELECT state, pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = $pid"), 'active|t',
			"$name: runs after $after s");
		ok(wait_until_idle($pid), '... ends when it is cancelled');
		cmp_ok(computed($pid) - $since, '<', $LIMIT, '... and computes no longer');
		$session->quit;
	}

	# The time until the timeout counts too, but is at most the timeout.
	my $timeout = 300;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query('SELECT pg_backend_pid()');
	my $since;
	$session->query($settings) if $settings;
	$session->query("SET statement_timeout = $timeout");
	$since = computed($pid);
	$session->query($query);
	cmp_ok(computed($pid) - $since, '<', $timeout + $LIMIT, "$name: computes no longer than statement_timeout");
	like($session->{stderr}, qr/canceling statement due to statement timeout/, '... which ends it');
	$session->quit;
}

is($node->safe_psql('postgres', 'SELECT gpu_count(*) FROM rows'), '1000000', 'the server answers afterwards');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no temporary file is left');
$node->stop;
done_testing();
