# No process computes for long without a check for interrupts, whatever a row or a state costs: every aggregate with every way of
# grouping, and the largest states. interrupt_probe.so (test/probe/) measures the longest time between two checks, as processor time of
# the backend and of its parallel workers, because other load on the machine does not change it.
use strict;
use warnings;
use Calls;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $probe = "$ENV{TOP}/build/test/interrupt_probe.so";
plan skip_all => 'build/test/interrupt_probe.so is not built' if !-e $probe;

# Milliseconds. The code aims at about 100. A slow machine needs longer for the same steps, so the limit grows with the processor time
# of a loop that usually takes less than 100 ms.
my $limit = 300;
{
	my $since = cpu_milliseconds($$);
	my $sum = 0;

	$sum += $_ foreach 1 .. 6_000_000;
	my $loop = cpu_milliseconds($$) - $since;
	$limit *= $loop / 100 if $loop > 100;
	note("the loop took $loop ms, so the limit is $limit ms");
}

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
max_parallel_workers = 8
gpuagg.server_timeout = '60s'
CONF
$node->wait_until_ready or die 'no GPU server';
create_rows($node, 'many', 10_000);
# few rows with the largest states
$node->safe_psql('postgres', <<SQL);
CREATE TABLE few AS SELECT i AS k, 'key ' || i AS s, i::float8 AS x, 1000000 AS bins FROM generate_series(1, 48) i;
CREATE TABLE wide AS SELECT array_agg(i::float8 ORDER BY i) AS t, array_agg(i::bigint ORDER BY i) AS n, array_agg(i / 1e6 ORDER BY i) AS f
FROM generate_series(1, 1000000) i;
-- some milliseconds for each row, so that all rows without a check would exceed the limit
CREATE TABLE several AS SELECT i AS k, i::float8 AS x FROM generate_series(1, 150) i;
VACUUM ANALYZE;
SQL

my $file = $node->data_dir . '/interrupts';

# Executes a query. Returns psql's exit status and errors, the longest time between two checks for interrupts, and the probe's report.
sub probe_query
{
	my ($query, $settings) = @_;
	my ($result, $out, $err) = $node->psql('postgres', <<SQL);
LOAD '$probe';
SET work_mem = '4MB';
$settings;
SET interrupt_probe.file = '$file';
\\o /dev/null
$query;
\\o
SET interrupt_probe.file = '';
SQL
	my $report = -e $file ? slurp_file($file) : '';
	my ($longest) = sort { $b <=> $a } $report =~ /^(\d+) ms$/mg;

	unlink $file;
	return ($result, $err, $longest // 0, $report);
}

# Tests that no time between two checks for interrupts exceeds the limit. Processor time grows if other processes use the same caches
# or core. So a query that exceeds the limit is executed again; one that does not check for interrupts always exceeds it.
sub check_interrupts
{
	my ($name, $query, $settings) = @_;
	my ($result, $err, $longest, $report);

	for (1 .. 3)
	{
		($result, $err, $longest, $report) = probe_query($query, $settings);
		last if $result != 0 || $longest < $limit;
	}
	is($result, 0, "$name: the query succeeds") or diag($err);
	cmp_ok($longest, '<', $limit, "$name: it checks for interrupts often, in ms") or diag($report);
	return;
}

my $parallel = parallel_settings();
my %ways = (
	'one group' => [ '', 'SET gpuagg.batch_rows = 1048576' ],
	'few groups' => [ 'i % 10', 'SET gpuagg.batch_rows = 1048576' ],
	'groups that are spilled' => [ 'k', "SET work_mem = '64kB'" ],
	'groups that are sorted' => [ 'k', "SET work_mem = '64kB'; SET gpuagg.strategy = 'sort'" ],
	'groups of text' => [ 's', "SET work_mem = '64kB'" ],
	'sorted input' => [ 'k', 'SET enable_hashagg = off' ],
	'workers' => [ 'k', $parallel ],
	'the GPU server' => [ 'k', "SET gpuagg.engine = 'cuda'" ]);

# The calls are divided among several queries, because a query has a limited number of slots.
my @calls = map { $_->[1] } aggregate_calls($node);
# Each way has half of them, the next way the other half.
my $nqueries = 6;
my $first = 0;
foreach my $way (sort keys %ways)
{
	my ($key, $settings) = @{ $ways{$way} };

	$first = 1 - $first;
	foreach my $part (grep { $_ % 2 == $first } 0 .. $nqueries - 1)
	{
		my @some = @calls[ grep { $_ % $nqueries == $part } 0 .. $#calls ];
		my $engine = $settings =~ /engine/ ? '' : "; SET gpuagg.engine = 'cpu'";

		check_interrupts("all aggregates, $way, $part",
			'SELECT count(s::text) FROM (SELECT ' . join(', ', @some) . ' FROM many' . ($key ? " GROUP BY $key" : '') . ' OFFSET 0) s',
			"$settings$engine");
	}
}

my $histogram = 'array_length(gpu_histogram(x, 0, 100, bins), 1)';
my $thresholds = '(SELECT t FROM wide OFFSET 0)';
my $slow = 'length(repeat(md5(x::text), 300000))';
my @cases = (
	[ 'wide states', "SELECT k, $histogram FROM few GROUP BY k" ],
	[ 'wide states of text keys', "SELECT s, $histogram FROM few GROUP BY s" ],
	[ 'wide states, sorted input', "SELECT k, $histogram FROM few GROUP BY k", 'SET enable_hashagg = off' ],
	[ 'wide states that are partitioned', "SELECT k, $histogram FROM few GROUP BY k", "SET gpuagg.strategy = 'sort'" ],
	[ 'wide states in much memory', "SELECT k, $histogram FROM few GROUP BY k", "SET work_mem = '1GB'" ],
	[ 'wide states of workers', "SELECT k % 5, $histogram FROM few GROUP BY 1", $parallel ],
	[ 'wide states of grouping sets', "SELECT k, k % 2, $histogram FROM few GROUP BY CUBE (1, 2)" ],
	[ 'wide states of logarithmic bins', 'SELECT k, array_length(gpu_histogram_log(x, 1, 100, bins - 1), 1) FROM few GROUP BY k' ],
	[ 'many thresholds', "SELECT array_length(gpu_histogram(x, $thresholds), 1) FROM several" ],
	[ 'many thresholds, large batches', "SELECT array_length(gpu_histogram(x, $thresholds), 1) FROM several",
		'SET gpuagg.batch_rows = 1048576' ],
	[ 'many thresholds, few groups', "SELECT k % 3, array_length(gpu_histogram(x, $thresholds), 1) FROM several GROUP BY 1" ],
	[ 'merged histograms', 'SELECT k % 2, array_length(gpu_histogram_merge(n), 1) FROM few, wide GROUP BY 1' ],
	[ 'many fractions', 'SELECT k % 3, array_length(gpu_percentile_cont((SELECT f FROM wide OFFSET 0)) WITHIN GROUP (ORDER BY x), 1),'
			. ' array_length(gpu_percentile_disc((SELECT f FROM wide OFFSET 0)) WITHIN GROUP (ORDER BY k), 1) FROM several GROUP BY 1' ],
	[ 'many approximate fractions', 'SELECT k % 3, array_length(gpu_approx_percentile(x, (SELECT f[1:100000] FROM wide OFFSET 0)), 1)'
			. ' FROM few GROUP BY 1' ],
	[ 'many counted values', 'SELECT pg_column_size(gpu_value_counts(i)) FROM (SELECT unnest(n) AS i FROM wide) x' ],
	[ 'slow arguments', "SELECT gpu_sum($slow) FROM several" ],
	[ 'slow conditions', "SELECT k % 3, gpu_sum(x) FROM several WHERE $slow > 0 GROUP BY 1", 'SET gpuagg.batch_rows = 1048576' ],
	[ 'slow keys', "SELECT $slow, gpu_sum(x) FROM several GROUP BY 1" ]);

foreach my $case (@cases)
{
	my ($name, $query, $settings) = (@$case, '');

	check_interrupts($name, "SELECT count(s::text) FROM ($query OFFSET 0) s", "$settings; SET gpuagg.engine = 'cpu'");
}
$node->stop;
done_testing();
