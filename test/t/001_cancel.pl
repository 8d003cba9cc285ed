# Cancel and statement_timeout act at once, in every phase of a custom scan.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $LIMIT = 100;				# milliseconds
my $TRIES = 4;					# the best of them counts, as the machine may be busy

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<CONF);
shared_preload_libraries = 'gpuagg'
fsync = off
jit = off
gpuagg.require = 'require'
gpuagg.engine = 'cpu'
max_parallel_workers_per_gather = 0
CONF
$node->start;
$node->safe_psql('postgres', <<SQL);
CREATE EXTENSION gpuagg;
CREATE TABLE rows AS SELECT i, (i * 7919::bigint % 1000003)::int AS k, i % 100 AS small, i::float8 AS x, i::numeric AS n
FROM generate_series(1, 1000000) i;
ANALYZE rows;
-- cancels the backend and gives the milliseconds until it was idle
CREATE FUNCTION cancel_and_wait(backend int) RETURNS float8 LANGUAGE plpgsql AS \$\$
DECLARE
	since timestamptz := clock_timestamp();
BEGIN
	PERFORM pg_cancel_backend(backend);
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE pid = backend AND state = 'active') LOOP
		PERFORM pg_sleep(0.001);
		PERFORM pg_stat_clear_snapshot();
	END LOOP;
	RETURN 1000 * extract(epoch FROM clock_timestamp() - since);
END \$\$;
SQL

my %queries = (
	'one group' => 'SELECT gpu_sum(x) FROM rows, generate_series(1, 100)',
	'few groups' => 'SELECT small, gpu_count(*), gpu_avg(x) FROM rows, generate_series(1, 100) GROUP BY small',
	'many groups' => 'SELECT k, gpu_count(*) FROM rows, generate_series(1, 20) GROUP BY k',
	'spilled groups' =>
	  "SET work_mem = '64kB'; SELECT k, gpu_sum(i) FROM rows, generate_series(1, 20) GROUP BY k",
	'own transitions' => 'SELECT small, gpu_sum(n) FROM rows, generate_series(1, 100) GROUP BY small',
	'heap pages' => 'SELECT small, gpu_count(*) FROM rows WHERE md5(md5(md5(md5(i::text)))) > \'a\' GROUP BY small',
	'ordered aggregates' => 'SELECT gpu_longest_run(x > 5 ORDER BY md5(md5(md5(i::text)))) FROM rows',
	'sorted input' =>
	  'SET enable_hashagg = off; SELECT k, gpu_sum(i) FROM rows, generate_series(1, 20) GROUP BY k ORDER BY k',
	'parallel' => 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
		SELECT small, gpu_count(*) FROM rows, generate_series(1, 100) GROUP BY small');

# Milliseconds that a query ran longer than its timeout.
sub overrun
{
	my ($query, $timeout) = @_;
	my ($stdout, $stderr);

	$node->psql('postgres', "\\timing on\nSET statement_timeout = $timeout;\n\\o /dev/null\n$query;\n",
		stdout => \$stdout, stderr => \$stderr, on_error_stop => 0);
	return -1 if $stderr !~ /statement timeout/;
	my @times = $stdout =~ /^Time: ([\d.]+)/mg;
	return $times[-1] - $timeout;
}

foreach my $name (grep { /heap/ } sort keys %queries)
{
	like($node->safe_psql('postgres', "EXPLAIN $queries{$name}"), qr/Feed: heap pages of rows/, "$name: feed");
}
foreach my $name (sort keys %queries)
{
	foreach my $timeout (60, 400)
	{
		my $best;

		foreach my $try (1 .. $TRIES)
		{
			my $over = overrun($queries{$name}, $timeout);
			$best = $over if !defined $best || $over < $best;
			last if $best < $LIMIT;
		}
		cmp_ok($best, '<', $LIMIT, "$name: statement_timeout of $timeout ms");
	}
}

foreach my $name (sort keys %queries)
{
	my $best;

	foreach my $try (1 .. $TRIES)
	{
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		my $backend = $session->query('SELECT pg_backend_pid()');
		my ($set, $query) = $queries{$name} =~ /^(.*;)?\s*(.*)$/s;

		$session->query($set) if $set;
		$session->query_until(qr/started/, "\\echo started\n$query;\n");
		$node->poll_query_until('postgres',
			"SELECT state = 'active' AND query LIKE '%gpu%' FROM pg_stat_activity WHERE pid = $backend");
		select(undef, undef, undef, 0.2);
		my $took = $node->safe_psql('postgres', "SELECT cancel_and_wait($backend)");
		$best = $took if !defined $best || $took < $best;
		$session->quit;
		last if $best < $LIMIT;
	}
	cmp_ok($best, '<', $LIMIT, "$name: cancelled");
}

is($node->safe_psql('postgres', 'SELECT gpu_count(*) FROM rows'), '1000000', 'the server answers afterwards');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no temporary file is left');
$node->stop;
done_testing();
