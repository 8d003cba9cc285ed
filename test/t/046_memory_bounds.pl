# The memory of a query is limited by work_mem, also with large states, and it grows with the data, not with the settings: a work_mem of
# 2 TB must not allocate more than 64 MB does. The measure is the peak memory (VmHWM) of the session's process. Queries that are
# compared have their own sessions. The reference is core with the plain aggregates, or the same query with other settings.
use strict;
use warnings;
use Calls;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'no /proc/self/status' if !-e '/proc/self/status';

# In kB: the memory that a query may use beyond core's, and the size of the arena that the server shares with a session.
my $margin = 32 * 1024;
my $arena = 24 * 1024;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
work_mem = '4MB'
shared_buffers = '16MB'
gpuagg.cache_memory = 0
gpuagg.server_timeout = '60s'
CONF
$node->wait_until_ready or die 'no GPU server';
create_rows($node, 'many', 30_000);
$node->safe_psql('postgres', <<SQL);
CREATE TABLE few AS SELECT i AS k, 'key ' || i AS s, i::float8 AS x, 1000000 AS bins FROM generate_series(1, 40) i;
CREATE TABLE wide AS SELECT array_agg(i::float8 ORDER BY i) AS t, array_agg(i::bigint ORDER BY i) AS n FROM generate_series(1, 1000000) i;
CREATE TABLE several AS SELECT i AS k, 500 + i % 100 AS bins, i::float8 AS x FROM generate_series(1, 5000) i;
-- few rows, whose keys have a wide range
CREATE TABLE sparse AS SELECT i, timestamp '2020-01-01' + make_interval(secs => i * 7919 % 2043 * 1000) AS ts, i * 104729 % 1000003 AS k,
	md5(i::text) AS s, i::float8 AS x, i::numeric AS n FROM generate_series(1, 2043) i;
VACUUM ANALYZE;
SQL

# Tests the answer and the peak memory of each engine.
sub compare_to_core
{
	my ($name, $query, $settings, @engines) = @_;
	my ($expected, $core) = answer_and_peak($node, "$settings; SET gpuagg.enabled = off", $query);

	foreach my $engine (@engines)
	{
		my ($answer, $memory) = answer_and_peak($node, "$settings; SET gpuagg.engine = '$engine'; SET gpuagg.require = 'require'", $query);

		is($answer, $expected, "$name, $engine: the answer is core's");
		cmp_ok($memory, '<', $core + $margin + ($engine eq 'cuda' ? $arena : 0), "$name, $engine: the peak memory is near core's $core kB");
	}
	return;
}

# Every aggregate, in many groups. IS NULL hides the last digits of sums of floats, which depend on the order of rows.
my @calls = map { $_->[1] } aggregate_calls($node);
foreach my $part (0 .. 5)
{
	my @some = map { "($_) IS NULL" } @calls[ grep { $_ % 6 == $part } 0 .. $#calls ];

	compare_to_core("all aggregates, $part", 'SELECT k, ' . join(', ', @some) . ' FROM many GROUP BY k', "SET work_mem = '4MB'",
		'cpu', 'cuda');
}

# The largest states.
my $one = 'array_length(gpu_histogram(x, 0, 100, bins), 1)';
my $six = join(', ', map { "array_length(gpu_histogram(x, $_, 100, bins), 1) AS h$_" } 1 .. 6);
my @cases = (
	[ 'wide states', "SELECT k, $one FROM few GROUP BY k" ],
	[ 'wide states of text keys', "SELECT s, $one FROM few GROUP BY s" ],
	[ 'wide states of two keys', "SELECT s, k, $one FROM few GROUP BY s, k" ],
	[ 'wide states of direct bins', "SELECT k, $one FROM few GROUP BY k", "SET gpuagg.strategy = 'direct'" ],
	[ 'wide states, sorted input', "SELECT k, $one FROM few GROUP BY k", 'SET enable_hashagg = off' ],
	[ 'wide states that are partitioned', "SELECT k, $one FROM few GROUP BY k", "SET gpuagg.strategy = 'sort'" ],
	[ 'six wide states', "SELECT k, $six FROM few WHERE k <= 12 GROUP BY k" ],
	[ 'wide states of grouping sets', "SELECT k, k % 2, $one FROM few GROUP BY CUBE (1, 2)" ],
	[ 'wide states of logarithmic bins', 'SELECT k, array_length(gpu_histogram_log(x, 1, 100, bins - 1), 1) FROM few GROUP BY k' ],
	[ 'thresholds', 'SELECT k, array_length(gpu_histogram(x, (SELECT t[1:100000] FROM wide OFFSET 0)), 1) FROM few GROUP BY k' ],
	[ 'merged histograms', 'SELECT k, array_length(gpu_histogram_merge(n), 1) FROM few, wide WHERE k <= 12 GROUP BY k' ],
	[ 'states of some kB', "SELECT k, $one FROM several GROUP BY k" ],
	[ 'states of some kB, sorted input', "SELECT k, $one FROM several GROUP BY k", 'SET enable_hashagg = off' ],
	[ 'states that grow late', 'SELECT k, array_length(gpu_histogram(x, 0, 100, CASE WHEN k < 4000 THEN 1 ELSE 100000 END), 1)'
			. ' FROM several WHERE k < 4100 GROUP BY k' ]);
compare_to_core($_->[0], $_->[1], $_->[2] // "SET work_mem = '4MB'", 'cpu') foreach @cases;

# hash_mem_multiplier is respected.
sub is_spilled
{
	my ($multiplier) = @_;
	my $plan = $node->safe_psql('postgres', "SET gpuagg.engine = 'cpu'; SET gpuagg.require = 'require'; SET hash_mem_multiplier = $multiplier;"
			. " EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT k, $one FROM several GROUP BY k");
	return $plan =~ /Partitions|Spill|Disk/i ? 1 : 0;
}
is(is_spilled(1), 1, 'states of 20 MB do not fit work_mem');
is(is_spilled(16), 0, '... and fit 16 times as much');

# The largest work_mem: tables grow with the numbers of rows and groups.
my %families = (
	sums => 'gpu_count(*), gpu_sum(i), gpu_avg(n), gpu_max(x)', 'own transition functions' => 'gpu_max(s), gpu_sum(make_interval(secs => i))',
	'ordered sets' => 'gpu_median(x), gpu_percentile_disc(0.5) WITHIN GROUP (ORDER BY s)',
	distinct => 'gpu_count(DISTINCT x), gpu_sum(DISTINCT n)', ordered => 'gpu_first(i, x), gpu_max_subarray_sum(x ORDER BY i)',
	sketches => 'gpu_approx_count_distinct(i), gpu_approx_percentile(x, 0.5)', histograms => 'gpu_histogram(x, 0, 3000, 10)', none => '');
my %keys = ('two ranges' => 'i * 10, k % 20000', 'two times' => "ts, date_trunc('hour', ts) + make_interval(secs => k)", integers => 'k, i * 1000003', text => 's');

foreach my $family (sort keys %families)
{
	foreach my $strategy ('auto', 'direct', 'hash', 'sort')
	{
		foreach my $engine ('cpu', 'cuda')
		{
			my @queries = map { "SELECT $keys{$_}" . ($families{$family} ? ", $families{$family}" : '') . ' FROM sparse GROUP BY '
					. join(', ', 1 .. ($_ eq 'text' ? 1 : 2)) } sort keys %keys;
			my $settings = "SET gpuagg.strategy = '$strategy'; SET gpuagg.engine = '$engine'; SET gpuagg.require = 'require'";
			my ($expected, $usual) = answer_and_peak($node, "$settings; SET work_mem = '64MB'", @queries);
			my ($answer, $memory) = answer_and_peak($node, "$settings; SET work_mem = '2147483647kB'", @queries);

			is($answer, $expected, "$family, $strategy, $engine: the answers with work_mem = 2 TB");
			cmp_ok($memory, '<=', 2 * $usual, "$family, $strategy, $engine: work_mem = 2 TB needs no more memory than 64 MB");
		}
	}
}

# A wrong estimate must not allocate memory: the planner expects many groups of this join, and there are few.
foreach my $strategy ('auto', 'direct', 'hash')
{
	my $query = 'SELECT a.i, b.k, gpu_count(*) FROM many a, many b WHERE a.i + b.i < 100 AND a.i < 60 AND b.i < 60 GROUP BY 1, 2';
	my $settings = "SET gpuagg.strategy = '$strategy'; SET gpuagg.engine = 'cpu'; SET gpuagg.require = 'require'";
	my ($expected, $usual) = answer_and_peak($node, "$settings; SET work_mem = '64MB'", $query);
	my ($answer, $memory) = answer_and_peak($node, "$settings; SET work_mem = '2147483647kB'", $query);

	is($answer, $expected, "a wrong estimate, $strategy: the answer is the same");
	cmp_ok($memory, '<', 2 * $usual, "a wrong estimate, $strategy: the peak memory is near the $usual kB with 64 MB");
}

# Sorted input with little memory: a step that ends early must not cost as much as one that takes all rows. Returns the ticks of
# processor time.
sub ticks
{
	my ($work_mem) = @_;
	my $ticks = "SELECT (regexp_match(pg_read_file('/proc/self/stat'), '\\) . (?:\\S+ ){10}(\\d+)'))[1]";
	my @lines = split /\n/, $node->safe_psql('postgres', "SET gpuagg.engine = 'cpu'; SET gpuagg.require = 'require'; SET work_mem = '$work_mem';"
			. " SET max_parallel_workers_per_gather = 0; $ticks;"
			. " SELECT count(a) FROM (SELECT i, gpu_sum(i), array_agg(i ORDER BY i) AS a FROM many GROUP BY i OFFSET 0) s; $ticks");
	return $lines[-1] - $lines[0];
}
my $usual = ticks('4MB');
cmp_ok(ticks('64kB'), '<', 8 * $usual + 40, "sorted input with 64 kB is not much slower than the $usual ticks with 4 MB");
$node->stop;
done_testing();
