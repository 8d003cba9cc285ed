# A cancel and statement_timeout end a query promptly in every phase of a custom scan. Each query runs once to its end, and then
# several times until it has used a part of that processor time and is cancelled. The test compares the backend's processor time,
# because other load on the machine does not change it.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

plan skip_all => 'no /proc/self/schedstat' unless -e '/proc/self/schedstat';

my $node = GpuaggNode->start_new('main', conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cpu'
CONF
$node->safe_psql('postgres', <<SQL);
CREATE TABLE rows AS SELECT i, (i * 7919::bigint % 1000003)::int AS k, i % 100 AS small, i::float8 AS x, i::numeric AS n
FROM generate_series(1, 500000) i;
VACUUM ANALYZE rows;
SQL

# Many aggregates make a loop over the rows slow.
my $sums = join(', ', map { "gpu_sum(x + $_)" } 1 .. 150);
my $numeric_sums = join(', ', map { "gpu_sum(n + $_)" } 1 .. 6);
my $runs = join(', ', map { "gpu_max_subarray_sum(x - $_ ORDER BY k)" } 1 .. 20);
my $groups = "SELECT count(*) FROM (SELECT k, gpu_count(*), gpu_sum(x), gpu_avg(i) FROM rows GROUP BY k, i) s";

# [name, query, settings]
my @cases = (
	[ 'one group', "SELECT $sums FROM rows" ],
	[ 'few groups', "SELECT small, $sums FROM rows GROUP BY small" ],
	[ 'row by row', "SELECT small, gpu_count(*) FROM rows WHERE md5(repeat(i::text, 250)) > 'a' GROUP BY small" ],
	[ 'tuples', 'SELECT small, gpu_count(*), gpu_avg(x) FROM rows, generate_series(1, 10) GROUP BY small' ],
	[ 'many groups', $groups, "SET work_mem = '1GB'" ],
	[ 'spilled groups', $groups, "SET work_mem = '64kB'" ],
	[ 'partitioned groups', $groups, "SET work_mem = '64kB'; SET gpuagg.strategy = 'sort'" ],
	[ 'own transition functions', "SELECT small, $numeric_sums FROM rows GROUP BY small" ],
	[ 'ordered aggregates', "SELECT $runs FROM rows", "SET work_mem = '1GB'" ],
	[ 'ordered aggregates, spilled', "SELECT $runs FROM rows", "SET work_mem = '64kB'" ],
	[ 'best rows', '/* gpu */ SELECT count(*) FROM (SELECT DISTINCT ON (k) k, i FROM rows, generate_series(1, 4) ORDER BY k, md5(i::text)) s',
		"SET work_mem = '1GB'; SET gpuagg.replace_builtin = on" ],
	[ 'best rows, equal ones', '/* gpu */ SELECT count(*) FROM (SELECT small, rank() OVER (PARTITION BY small ORDER BY small % 3) r FROM rows, generate_series(1, 4)) s WHERE r <= 2',
		'SET gpuagg.replace_builtin = on' ],
	[ 'sorted input', $groups, 'SET enable_hashagg = off' ],
	[ 'parallel', "SELECT small, $sums FROM rows GROUP BY small",
		'SET max_parallel_workers_per_gather = 1; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0' ]);

sub wait_until_idle
{
	my ($pid) = @_;
	return $node->poll_query_until('postgres', "SELECT state LIKE 'idle%' FROM pg_stat_activity WHERE pid = $pid");
}

foreach my $case (@cases)
{
	my ($name, $query, $settings) = (@$case, '');
	my ($session, $pid, $since, $log);
	my $start = sub {
		$session = $node->background_psql('postgres', on_error_stop => 0, on_error_die => 0);
		$pid = $session->query('SELECT pg_backend_pid()');
		$session->query("$_[0] $settings");
		$log = -s $node->logfile;
		$since = cpu_milliseconds($pid);
		$session->query_until(qr/started/, "\\o /dev/null\n\\echo started\n$query;\n");
	};

	# Runs the query to its end. Waits for its start first, because the session is idle before.
	$start->('');
	$node->poll_query_until('postgres', "SELECT query LIKE '%gpu%' FROM pg_stat_activity WHERE pid = $pid");
	wait_until_idle($pid);
	my $total = cpu_milliseconds($pid) - $since;
	# After the cancel the query may finish a few of its 120 batches, and needs some time to end.
	my $limit = 20 + $total / 20;
	$session->quit;

	foreach my $part (0.3, 0.7)
	{
		my $cancelled;

		# If the query uses less time than before, it may end before the cancel. Then the next attempt cancels earlier.
		for (1 .. 5)
		{
			$start->('');
			for (my $n = 1; cpu_milliseconds($pid) - $since < $part * $total; $n++)
			{
				usleep(1000);
				last if $n % 500 == 0 && $node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $pid") ne 'active';
			}
			$since = cpu_milliseconds($pid);
			kill 'INT', $pid;
			last unless wait_until_idle($pid);
			$since = cpu_milliseconds($pid) - $since;
			$session->quit;
			$cancelled = slurp_file($node->logfile, $log) =~ /canceling statement due to user request/;
			last if $cancelled;
			$total *= 0.8;
		}
		ok($cancelled, sprintf('%s: a cancel after %d %% ends the query', $name, 100 * $part));
		cmp_ok($since, '<', $limit, '... within few milliseconds of processor time');
	}
}

# The limit includes the 50 ms until the timeout.
foreach my $case (grep { $_->[0] =~ /row by row|spilled groups/ } @cases)
{
	my ($name, $query, $settings) = (@$case, '');
	my $session = $node->background_psql('postgres', on_error_stop => 0, on_error_die => 0);
	my $pid = $session->query('SELECT pg_backend_pid()');
	my $log = -s $node->logfile;

	$session->query("$settings; SET statement_timeout = 50");
	my $since = cpu_milliseconds($pid);
	$session->query($query);
	cmp_ok(cpu_milliseconds($pid) - $since, '<', 150, "$name: the query computes little longer than statement_timeout");
	like(slurp_file($node->logfile, $log), qr/canceling statement due to statement timeout/, '... and is cancelled by it');
	$session->quit;
}

is($node->safe_psql('postgres', 'SELECT gpu_count(*) FROM rows'), '500000', 'a query after the cancels gives the right answer');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no temporary file is left');
$node->stop;
done_testing();
