# A GPU server that has no room for a batch, or that fails in the middle of one.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{GPUAGG_STUB_SKIPPED} = 1;
my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
# what is tested are batches: autovacuum may let the table be cached in the middle
gpuagg.cache = off
synchronize_seqscans = off
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
CONF

# Every type that a column travels in, with NULLs here and there, a value beyond 64 bits and integers that no double holds.
$node->safe_psql('postgres', <<SQL);
CREATE TABLE rows AS SELECT i, i % 1000 AS k, (i % 900)::int2 AS k2,
	CASE WHEN i % 11 > 0 THEN 'group ' || i % 37 END AS t, CASE WHEN i % 13 > 0 THEN i % 5 > 1 END AS b,
	CASE WHEN i % 7 > 0 THEN 9223372036854775000 + i % 800 END AS big,
	CASE WHEN i % 17 > 0 THEN (i % 1024)::float4 / 4 END AS f, CASE WHEN i % 19 > 0 THEN (i % 4096)::float8 / 8 END AS x,
	CASE WHEN i % 23 > 0 THEN (i % 5000)::numeric(12, 2) / 4 END::numeric(12, 2) AS n,
	CASE WHEN i % 50000 = 0 THEN 1e20 + i ELSE i END::numeric(30, 2) AS wide,
	(4294967295 - i % 500)::oid AS o, date '2024-01-01' + i % 366 AS d
FROM generate_series(1, 400000) i;
ANALYZE rows;
SQL
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';

ok($node->wait_until_ready, 'the server starts');
my $restarts = $node->safe_psql('postgres', 'SELECT restarts FROM gpuagg_devices() WHERE device = 0');

is($node->safe_psql('postgres', 'SELECT device, name, state, last_error FROM gpuagg_devices() WHERE device > 1'),
	'2|stub|not used|not used: compute capability 7.0 is below 8.0, the least that gpuagg was built for',
	'a device that is not used is listed, with the reason');

# What travels: keys, arguments, filters, counts, bins, codes and payloads.
my %query = (
	'integer keys' => 'SELECT k, gpu_count(*), gpu_count(t), gpu_count(b), gpu_sum(big), gpu_avg(i), gpu_min(d), gpu_max(o) FROM rows GROUP BY k',
	'narrow keys, which are arguments as well' => 'SELECT k2, b, gpu_sum(k2), gpu_count(b) FILTER (WHERE b), gpu_sum(i) FILTER (WHERE NOT b) FROM rows GROUP BY k2, b',
	'floats' => 'SELECT k, gpu_sum(x), gpu_min(f), gpu_max(x), gpu_avg(f) FROM rows GROUP BY k',
	'decimals' => 'SELECT k, gpu_sum(n), gpu_avg(n), gpu_min(n), gpu_sum(wide) FROM rows GROUP BY k',
	'text as a key' => 'SELECT t, gpu_count(*), gpu_sum(i) FROM rows GROUP BY t',
	'keys of each kind' => 'SELECT x, t, gpu_count(*), gpu_count(x), gpu_max(x) FROM rows GROUP BY x, t',
	'wide keys' => 'SELECT big, i / 1000 AS j, k, gpu_count(*), gpu_sum(big) FROM rows GROUP BY big, i / 1000, k',
	'oids and dates' => 'SELECT o, d, gpu_count(*), gpu_max(o) FROM rows GROUP BY o, d',
	'histograms' => "SELECT k, gpu_histogram(x, 0, 500, 40), gpu_histogram(big, 9223372036854775000, 9223372036854775800, 5) FROM rows WHERE k < 50 GROUP BY k",
	'sketches' => 'SELECT k, gpu_approx_count_distinct(i), gpu_approx_count_distinct(t) FROM rows WHERE k < 20 GROUP BY k',
	'extremes with payloads' => 'SELECT k, gpu_argmax(i, x), gpu_argmin(d, f) FROM rows GROUP BY k',
	'no keys' => 'SELECT gpu_count(*), gpu_sum(i), gpu_sum(x), gpu_max(n) FROM rows',
	'no rows' => 'SELECT gpu_count(*), gpu_sum(i) FROM rows WHERE i < 0',
);
foreach my $name (sort keys %query)
{
	my $rows = "SELECT count(*), md5(string_agg(g::text, ',' ORDER BY g::text)) FROM ($query{$name}) g";
	my $plain = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $rows");

	foreach my $from (1, 3)
	{
		foreach my $plan ('', $parallel)
		{
			my $what = "$name, no room from batch $from on" . ($plan ? ', in parallel' : '');
			my ($out, $err);

			$node->provoke("memory $from");
			$node->psql('postgres', "SET gpuagg.batch_rows = 1000; $plan $rows", stdout => \$out, stderr => \$err);
			$node->provoke(undef);
			is($out, $plain, $what) or diag($err);
		}
	}
}
is($node->device('restarts'), $restarts, 'the server lives on');
ok($node->wait_for_device('memory_used', 0), '... without memory left behind');

# Some rows there and some here.
{
	my $explain = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)';

	$node->provoke('memory 3');
	like($node->safe_psql('postgres', "$explain $query{decimals}"), qr/Engine: cuda.*Input Rows: 400000.*Rows on CPU: [1-9]\d{4,5}\b/s,
		'some rows stay with the CPU');
	like($node->safe_psql('postgres', "$parallel $explain $query{decimals}"),
		qr/Engine: cuda.*Input Rows: 400000.*Participants: 3.*Rows on CPU: [1-9]\d{4,5}\b/s, '... and in a parallel plan');
	$node->provoke('memory');
	like($node->safe_psql('postgres', "$parallel $explain $query{decimals}"), qr/Engine: cuda.*Rows on CPU: 400000\b/s, '... or all of them');
	$node->provoke(undef);
	like($node->safe_psql('postgres', "$parallel $explain $query{decimals}"), qr/Engine: cuda(?!.*Rows on CPU)/s, '... or none');
}

# Rows in order do not mix: the CPU engine starts over.
{
	my $rows = 'SELECT count(*), sum(s) FROM (SELECT k, gpu_max_subarray_sum(i % 100 - 50 ORDER BY i) AS s FROM rows GROUP BY k) g';
	my $plain = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $rows");

	$node->provoke('memory 2');
	is($node->safe_psql('postgres', $rows), $plain, 'no room for rows in order');
	$node->provoke(undef);
}

# Sums that leave their range only where some rows are added apart: core's answer is a sum.
{
	my $rows = 'SELECT sum(s) FROM (SELECT gpu_sum(CASE WHEN i = 1 THEN -1.5e308 WHEN i > 300000 AND i % 10 = 0 THEN 2e304 ELSE 0 END::float8) AS s FROM rows) g';
	my $plain = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $rows");

	$node->provoke('memory 2');
	is($node->safe_psql('postgres', $rows), $plain, 'a sum out of range in a part of the rows');
	$node->provoke(undef);
}

# ... and one that leaves its range only where all are added up in order: core's answer is an error.
# The other columns make batches small, so that the lack of room is known before the large values come.
{
	my $rows = 'SELECT gpu_sum(CASE i WHEN 1 THEN 5e295 WHEN 390000 THEN 1.7976931348623157e308 WHEN 390001 THEN -1.7976931348623157e308 ELSE 0 END::float8), gpu_sum(i), gpu_sum(x), gpu_sum(f), gpu_sum(big), gpu_sum(n) FROM rows';

	foreach my $what (undef, 'memory 2')
	{
		my ($out, $err);

		$node->provoke($what);
		$node->psql('postgres', $rows, stdout => \$out, stderr => \$err);
		like($err, qr/ERROR:  value out of range: overflow/, 'large floats among others') or diag($out);
	}
	$node->provoke(undef);
}

# A rescan starts with a server that has room again.
{
	my $rows = 'SELECT j, c, s FROM (VALUES (1), (2), (3)) v(j), LATERAL (SELECT count(*) AS c, sum(s) AS s FROM (SELECT k, gpu_sum(i) AS s FROM rows WHERE i % 3 < j GROUP BY k) g) l ORDER BY j';
	my $plain = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $rows");

	$node->provoke('memory 2');
	is($node->safe_psql('postgres', $rows), $plain, 'rescans without room');
	$node->provoke(undef);
}

# A query of which a batch was reduced in part fails, and no other query with it.
{
	my ($out, $err);
	# so many columns that a batch has at most 100,000 rows: one of three participants has a second batch
	my $rows = 'SELECT count(*), sum(c), max(s) FROM (SELECT k, gpu_count(*) AS c, gpu_sum(i) + gpu_max(x) + gpu_sum(big) AS s FROM rows GROUP BY k) g';
	my $plain = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $rows");

	$node->provoke('launch 2');
	is($node->safe_psql('postgres', $rows), $plain, 'a failed launch: the CPU engine starts over');
	like($node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF) $rows"), qr/Engine: cpu \(cuda failed: too many resources/, '... and EXPLAIN says so');
	$node->psql('postgres', "$parallel $rows", stdout => \$out, stderr => \$err);
	$node->provoke(undef);
	like($err, qr/engine "cuda" failed: too many resources requested for launch\n.*cannot be read again/s, '... or a clear error, in a parallel plan');
	is($out, '', '... and no answer');
	is($node->safe_psql('postgres', "$parallel $rows"), $plain, 'the next query runs');
	is($node->device('restarts'), $restarts, '... at the same server');
	ok($node->wait_for_device('memory_used', 0), '... without memory left behind');
}

$node->stop;
done_testing();
