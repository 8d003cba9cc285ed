# The GPU server has no memory for a batch, or fails in the middle of one. The batches contain values of every type and kind of
# aggregate. The reference is the answer of the plain aggregates.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{GPUAGG_STUB_SKIPPED} = 1;
my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
# no cache, so that all rows arrive in batches: after an autovacuum the table could be cached
gpuagg.cache = off
synchronize_seqscans = off
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
CONF

# Columns of every type that batches have, with NULLs, numerics beyond 64 bits, and integers that no double represents.
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
my $parallel = parallel_settings();

ok($node->wait_until_ready, 'the server starts');
my $restarts = $node->safe_psql('postgres', 'SELECT restarts FROM gpuagg_devices() WHERE device = 0');

is($node->safe_psql('postgres', 'SELECT device, name, state, last_error FROM gpuagg_devices() WHERE device > 1'),
	'2|stub|not used|not used: compute capability 7.0 is below 8.0, the least that gpuagg was built for',
	'a device that is not used is listed with the reason');

# ---- no memory for a batch ----

# Queries that send keys, arguments, filters, counts, bins, dictionary codes and payloads.
my %query = (
	'integer keys' => 'SELECT k, gpu_count(*), gpu_count(t), gpu_count(b), gpu_sum(big), gpu_avg(i), gpu_min(d), gpu_max(o) FROM rows GROUP BY k',
	'narrow keys that are arguments too' => 'SELECT k2, b, gpu_sum(k2), gpu_count(b) FILTER (WHERE b), gpu_sum(i) FILTER (WHERE NOT b) FROM rows GROUP BY k2, b',
	'floats' => 'SELECT k, gpu_sum(x), gpu_min(f), gpu_max(x), gpu_avg(f) FROM rows GROUP BY k',
	'decimals' => 'SELECT k, gpu_sum(n), gpu_avg(n), gpu_min(n), gpu_sum(wide) FROM rows GROUP BY k',
	'text as a key' => 'SELECT t, gpu_count(*), gpu_sum(i) FROM rows GROUP BY t',
	'a number and a text as keys' => 'SELECT x, t, gpu_count(*), gpu_count(x), gpu_max(x) FROM rows GROUP BY x, t',
	'wide keys' => 'SELECT big, i / 1000 AS j, k, gpu_count(*), gpu_sum(big) FROM rows GROUP BY big, i / 1000, k',
	'oids and dates' => 'SELECT o, d, gpu_count(*), gpu_max(o) FROM rows GROUP BY o, d',
	'histograms' => "SELECT k, gpu_histogram(x, 0, 500, 40), gpu_histogram(big, 9223372036854775000, 9223372036854775800, 5) FROM rows WHERE k < 50 GROUP BY k",
	'sketches' => 'SELECT k, gpu_approx_count_distinct(i), gpu_approx_count_distinct(t) FROM rows WHERE k < 20 GROUP BY k',
	'sketches of integers' => 'SELECT k, gpu_approx_count_distinct(i) FROM rows WHERE k < 20 GROUP BY k',
	'extremes with payloads' => 'SELECT k, gpu_argmax(i, x), gpu_argmin(d, f) FROM rows GROUP BY k',
	'no keys' => 'SELECT gpu_count(*), gpu_sum(i), gpu_sum(x), gpu_max(n) FROM rows',
	'no rows' => 'SELECT gpu_count(*), gpu_sum(i) FROM rows WHERE i < 0',
);
my $reached = 0;
foreach my $name (sort keys %query)
{
	# the batches that reach the server
	my ($batches) = $node->safe_psql('postgres', "SET gpuagg.batch_rows = 1000; EXPLAIN (ANALYZE, COSTS OFF) $query{$name}") =~ /Engine: cuda.*Batches: (\d+)/s;
	my $rows = "SELECT count(*), md5(string_agg(g::text, ',' ORDER BY g::text)) FROM ($query{$name}) g";

	foreach my $from (1, 3)
	{
		foreach my $plan ('', $parallel)
		{
			my $failures = $node->device('out_of_memory');

			$node->set_fault("memory $from");
			is_right_answer($node, $rows, "$name: the answer is right without memory from batch $from on" . ($plan ? ', in parallel' : ''),
				settings => "SET gpuagg.batch_rows = 1000; $plan");
			$node->clear_fault;
			next if $plan;
			$failures = $node->device('out_of_memory') - $failures;
			is($failures, ($batches // 0) >= $from ? 1 : 0, '... and the server had no memory if there was such a batch');
			$reached += $failures;
		}
	}
}
cmp_ok($reached, '>=', 18, 'most queries had no memory at the server');
is($node->device('restarts'), $restarts, 'the server was not restarted');
ok($node->wait_for_device('memory_used', 0), '... and no device memory is left');

# The GPU reduces some rows, and the CPU fallback the others.
{
	my $explain = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)';

	$node->set_fault('memory 3');
	like($node->safe_psql('postgres', "$explain $query{decimals}"), qr/Engine: cuda.*Input Rows: 400000.*Rows on CPU: [1-9]\d{4,5}\b/s,
		'the CPU fallback takes some rows');
	like($node->safe_psql('postgres', "$parallel $explain $query{decimals}"),
		qr/Engine: cuda.*Input Rows: 400000.*Participants: 3.*Rows on CPU: [1-9]\d{4,5}\b/s, '... also in a parallel plan');
	$node->set_fault('memory');
	like($node->safe_psql('postgres', "$parallel $explain $query{decimals}"), qr/Engine: cuda.*Rows on CPU: 400000\b/s, '... or all of them');
	$node->clear_fault;
	like($node->safe_psql('postgres', "$parallel $explain $query{decimals}"), qr/Engine: cuda(?!.*Rows on CPU)/s, '... or none');
}

# Ordered rows cannot be divided. The CPU engine starts over.
{
	my $rows = 'SELECT count(*), sum(s) FROM (SELECT k, gpu_max_subarray_sum(i % 100 - 50 ORDER BY i) AS s FROM rows GROUP BY k) g';

	$node->set_fault('memory 2');
	is_right_answer($node, $rows, 'ordered rows: the answer is right without memory from batch 2 on');
	$node->clear_fault;
}

# A sum that overflows only if some rows are added separately. Core's answer is a number.
{
	my $rows = 'SELECT sum(s) FROM (SELECT gpu_sum(CASE WHEN i = 1 THEN -1.5e308 WHEN i > 300000 AND i % 10 = 0 THEN 2e304 ELSE 0 END::float8) AS s FROM rows) g';

	$node->set_fault('memory 2');
	is_right_answer($node, $rows, 'a sum that overflows only in a part of the rows is a number');
	$node->clear_fault;
}

# A sum that overflows only if all rows are added in their order. Core's answer is an error. The other columns make batches small, so
# that the lack of memory is known before the large values come.
{
	my $rows = 'SELECT gpu_sum(CASE i WHEN 1 THEN 5e295 WHEN 390000 THEN 1.7976931348623157e308 WHEN 390001 THEN -1.7976931348623157e308 ELSE 0 END::float8), gpu_sum(i), gpu_sum(x), gpu_sum(f), gpu_sum(big), gpu_sum(n) FROM rows';

	foreach my $what (undef, 'memory 2')
	{
		my ($out, $err);

		$node->set_fault($what) if $what;
		$node->psql('postgres', $rows, stdout => \$out, stderr => \$err);
		like($err, qr/ERROR:  value out of range: overflow/, 'a sum that overflows in the order of the rows is an error') or diag($out);
	}
	$node->clear_fault;
}

# A rescan tries the server again.
{
	my $rows = 'SELECT j, c, s FROM (VALUES (1), (2), (3)) v(j), LATERAL (SELECT count(*) AS c, sum(s) AS s FROM (SELECT k, gpu_sum(i) AS s FROM rows WHERE i % 3 < j GROUP BY k) g) l ORDER BY j';

	$node->set_fault('memory 2');
	is_right_answer($node, $rows, 'rescans give the right answer without memory from batch 2 on');
	$node->clear_fault;
}

# ---- a launch that fails ----

# If a kernel launch fails in the middle of a batch, that query fails at the server, and no other.
{
	my ($out, $err);
	# with these columns a batch has at most 100,000 rows, so that one of three participants has a second batch
	my $rows = 'SELECT count(*), sum(c), max(s) FROM (SELECT k, gpu_count(*) AS c, gpu_sum(i) + gpu_max(x) + gpu_sum(big) AS s FROM rows GROUP BY k) g';
	my $plain = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $rows");

	$node->set_fault('launch 2');
	is($node->safe_psql('postgres', $rows), $plain, 'a failed launch: the CPU engine starts over');
	like($node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF) $rows"), qr/Engine: cpu \(cuda failed: too many resources/, '... and EXPLAIN shows the reason');
	$node->psql('postgres', "$parallel $rows", stdout => \$out, stderr => \$err);
	$node->clear_fault;
	like($err, qr/engine "cuda" failed: too many resources requested for launch\n.*cannot be read again/s, '... in a parallel plan the query fails');
	is($out, '', '... and returns no rows');
	is($node->safe_psql('postgres', "$parallel $rows"), $plain, 'the next query gives the right answer');
	is($node->device('restarts'), $restarts, '... from the same server');
	ok($node->wait_for_device('memory_used', 0), '... and leaves no device memory');
}

$node->stop;
done_testing();
