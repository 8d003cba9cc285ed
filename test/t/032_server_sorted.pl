# Sorted plans at the GPU server. Groups must come in the order of their keys, with keys and values of all types, and whatever goes
# wrong at the server. The reference is core's answer.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.feed = 'tuples'
autovacuum = off
enable_seqscan = off
enable_bitmapscan = off
enable_sort = off
CONF
$node->safe_psql('postgres', <<SQL);
CREATE TABLE s AS SELECT i / 48 AS k, CASE WHEN i < 59000 THEN i / 2000 END AS nk, (i / 333)::int2 AS k2, (i / 7) / 4.0 AS nm, ((i / 3) / 8.0)::float8 AS kf,
	't' || lpad((i / 5)::text, 7, '0') AS t, date '2000-01-01' + i / 91 AS d, i % 4 = 1 AS b, (i * 7919::int8 % 10007 - 5000)::int AS v,
	CASE WHEN i % 3 > 0 THEN (i % 701)::int2 END AS rare, i % 977 * 1000000007::int8 AS big, i, 1 AS one,
	(CASE WHEN i IN (20017, 50000) THEN 'NaN' ELSE (i % 1000) / 8.0 END)::numeric(12, 3) AS n, CASE WHEN i % 5 > 0 THEN (i % 400 - 200) / 4.0::float8 END AS f,
	CASE WHEN i BETWEEN 30000 AND 30010 THEN 1e300 WHEN i BETWEEN 40000 AND 40003 THEN -0.0::float8 ELSE i % 2 END AS odd
	FROM generate_series(0, 59999) i;
CREATE INDEX ON s (k);
CREATE INDEX ON s (nk);
CREATE INDEX ON s (nk DESC NULLS LAST);
CREATE INDEX ON s (t);
CREATE INDEX ON s (nm);
CREATE INDEX ON s (kf);
CREATE INDEX ON s (d, b);
CREATE INDEX ON s (k2, k);
CREATE INDEX ON s (one, i);
CREATE INDEX ON s (i);
VACUUM ANALYZE s;
SQL
ok($node->wait_until_ready, 'the server starts');

# Tests that the query's answer is core's, and that EXPLAIN ANALYZE prints $plan, by default a sorted plan at the server.
sub check_query
{
	my ($name, $query, $plan, $settings) = @_;

	$settings = $settings ? "$settings;" : '';
	$plan //= qr/Engine: cuda.*Strategy: segmented \(rows arrive grouped/s;
	is_right_answer($node, $query, "$name: the answer is core's", settings => $settings, reference => core_query($query));
	like(answer($node, "$settings EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query"), $plan, "$name: the plan is the expected one");
	return;
}

my $before = $node->devices('sum(queries)');
my %values = (
	integers => 'gpu_count(*), gpu_sum(v), gpu_sum(rare), gpu_count(rare), gpu_min(rare), gpu_max(big), gpu_sum(big), gpu_avg(v)',
	others => 'gpu_avg(f), gpu_sum(f), gpu_max(f), gpu_max(d), gpu_bool_and(b), gpu_bit_xor(v), gpu_sum(v) FILTER (WHERE b), gpu_count(*) FILTER (WHERE rare > 9)',
	odd => 'gpu_sum(n), gpu_min(n), gpu_max(n), gpu_sum(odd), gpu_min(odd), gpu_max(odd)');
my @keys = (['k'], [ 'k', 'k DESC' ], ['nk'], [ 'nk', 'nk DESC NULLS LAST' ], ['t'], ['nm'], ['kf'], ['d, b'], ['k2, k'], ['one']);

foreach my $key (@keys)
{
	my ($list, $order) = ($key->[0], $key->[1] // $key->[0]);

	check_query("$_ by $order", "SELECT $list, $values{$_} FROM s GROUP BY $list ORDER BY $order") foreach sort keys %values;
}
cmp_ok($node->devices('sum(queries)') - $before, '>=', 60, 'all of these queries ran at the server');

# ---- batches, memory, strategies, clauses ----

foreach my $rows (64, 100, 4096, 1048576)
{
	check_query("batches of $rows rows", "SELECT k, $values{odd} FROM s GROUP BY k ORDER BY k",
		$rows > 1e6 ? qr/Engine: cpu.*rows too wide/s : undef, "SET gpuagg.batch_rows = $rows");
}
check_query('little memory', "SELECT t, $values{integers} FROM s GROUP BY t ORDER BY t", undef, "SET work_mem = '64kB'");
check_query("strategy $_", "SELECT k2, k, gpu_count(*) FROM s GROUP BY k2, k ORDER BY k2, k", undef, "SET gpuagg.strategy = '$_'")
  foreach qw(direct hash sort segmented);
check_query('HAVING', 'SELECT k, gpu_sum(v) FROM s GROUP BY k HAVING gpu_sum(v) > 3000 ORDER BY k');
check_query('LIMIT', 'SELECT k, gpu_sum(v) FROM s GROUP BY k ORDER BY k LIMIT 7 OFFSET 200');
check_query('a group each row', 'SELECT i, gpu_sum(v) FROM s GROUP BY i ORDER BY i');
check_query('no rows', 'SELECT k, gpu_sum(v) FROM s WHERE k > 5000 GROUP BY k ORDER BY k');
check_query('one row', 'SELECT k, gpu_sum(v) FROM s WHERE i = 5 GROUP BY k ORDER BY k', qr/Engine: cuda/);
check_query('rescans', 'SELECT g, k, a FROM generate_series(1, 40) g, LATERAL (SELECT k, gpu_sum(v + g) AS a FROM s WHERE k > g * 30 GROUP BY k ORDER BY k LIMIT 3) x');
check_query('rescans to the end', 'SELECT g, k, a FROM generate_series(1, 20) g, LATERAL (SELECT k, gpu_sum(v + g) AS a FROM s WHERE k BETWEEN g * 30 AND g * 35 GROUP BY k ORDER BY k OFFSET 0) x');
check_query('a Sort below', 'SELECT b, v, gpu_count(*), gpu_sum(f) FROM (SELECT b, v, f FROM s ORDER BY b, v OFFSET 0) q GROUP BY b, v ORDER BY b, v', qr/Engine: cuda.*rows arrive grouped.*Sort/s, 'SET enable_sort = on; SET gpuagg.batch_rows = 500');
check_query('an incremental sort', 'SELECT k2, v, gpu_count(*) FROM (SELECT k2, v FROM s ORDER BY k2, v OFFSET 0) q GROUP BY k2, v ORDER BY k2, v', qr/Engine: cuda.*rows arrive grouped.*Incremental Sort/s, 'SET enable_sort = on');
check_query('volatile rows', 'SELECT k, gpu_sum(v) FROM (SELECT k, v + (random() * 0)::int AS v FROM s ORDER BY k OFFSET 0) q GROUP BY k ORDER BY k');
check_query('Gather Merge', 'SELECT k, gpu_sum(v) FROM (SELECT k, v FROM s ORDER BY k OFFSET 0) q GROUP BY k ORDER BY k', undef,
	'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0');
like($node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT k, $_->[0] FROM s GROUP BY k ORDER BY k"), qr/Engine: cpu \(.*$_->[1]/, "the CPU engine computes $_->[0]")
  foreach [ 'gpu_product(1 + f / 1e6)', 'products' ], [ 'gpu_histogram(v, -5000, 5000, 4)', 'histograms and sketches' ];

# one float whose square is near the largest float, followed by many small ones
$node->safe_psql('postgres', 'CREATE TABLE large AS SELECT i / 20000 AS k, i, CASE WHEN i = 20000 THEN 1e154 ELSE i % 2 END::float8 AS f FROM generate_series(0, 59999) i; CREATE INDEX ON large (k, i); VACUUM ANALYZE large');
check_query("large floats, batches of $_", 'SELECT k, gpu_count(*), gpu_sum(f), gpu_avg(f) FROM large GROUP BY k ORDER BY k', undef, "SET gpuagg.batch_rows = $_") foreach 64, 4096;
# zeros with both signs in a group, which the server gives back
$node->safe_psql('postgres', "CREATE TABLE zeros AS SELECT CASE i % 4 WHEN 0 THEN -0.0::float8 ELSE i % 4 / 2 END * (i / 1000) AS f FROM generate_series(0, 9999) i; CREATE INDEX ON zeros (f); VACUUM ANALYZE zeros");
$node->set_fault('memory');
check_query('zeros that are given back', 'SELECT gpu_count(*), gpu_sum(f) FROM zeros GROUP BY f ORDER BY f', qr/Engine: cuda/);
$node->clear_fault;

# a cursor, with other queries at the server between its fetches
{
	my $fetches = join(' ', map { "FETCH 400 FROM c; SELECT gpu_count(*) FROM s WHERE i < $_ * 10;" } 1 .. 5);
	my $cursor = "BEGIN; DECLARE c CURSOR FOR SELECT k, gpu_sum(v), gpu_min(odd), gpu_sum(n) FROM s GROUP BY k ORDER BY k; $fetches COMMIT";

	is_right_answer($node, $cursor, 'a cursor gives the right answer', settings => 'SET gpuagg.batch_rows = 1000;', reference => core_query($cursor));
}

# ---- faults ----

# The server has no memory for the query. The CPU engine runs it, and EXPLAIN shows the reason.
$node->set_fault('lane');
check_query('no lane', "SELECT k, $values{integers} FROM s GROUP BY k ORDER BY k", qr/Engine: cpu \(cuda failed: out of memory/);
$node->clear_fault;

# A fault at a batch: the CPU engine takes the remaining rows.
my $by_text = "SELECT t, $values{integers} FROM s GROUP BY t ORDER BY t";
my $right = $node->safe_psql('postgres', core_query($by_text));
foreach my $fault (qw(memory launch abort segv fetch keys))
{
	foreach my $from (1, 2, 4)
	{
		my ($out, $err);

		ok($node->wait_until_ready, "the server is ready before fault $fault at batch $from");
		$node->set_fault("$fault $from");
		$node->psql('postgres', "SET client_min_messages = debug1; SET gpuagg.batch_rows = 1000; $by_text", stdout => \$out, stderr => \$err);
		$node->clear_fault;
		is($out, $right, '... the answer is right');
		like($err, qr/rows are reduced on the CPU from here on/, '... a message says that the CPU takes the remaining rows');
	}
}
ok($node->wait_until_ready, 'the server is ready after the faults');

# The same with rows that the CPU fallback has taken before.
foreach my $fault ('abort', 'memory')
{
	foreach my $from (1 .. 5)
	{
		my $query = "SELECT t, $values{odd} FROM s WHERE i > 18000 GROUP BY t ORDER BY t";

		ok($node->wait_until_ready, "the server is ready before fault $fault at batch $from");
		$node->set_fault("$fault $from");
		is_right_answer($node, $query, '... the answer is right, also of rows of the CPU fallback', settings => 'SET gpuagg.batch_rows = 400;',
			reference => core_query($query));
		$node->clear_fault;
	}
}
ok($node->wait_until_ready, 'the server is ready after these faults');

# an overflow, which core reports too
foreach my $engine ('cuda', 'cpu')
{
	my ($out, $err);

	$node->psql('postgres', "SET gpuagg.engine = $engine; SELECT k, gpu_sum(odd * 1e8) FROM s GROUP BY k ORDER BY k", stdout => \$out, stderr => \$err);
	like($err, qr/value out of range: overflow/, "an overflow is an error, engine $engine");
}

# a timeout while the server is slow
{
	my ($out, $err);

	$node->set_fault('slow 1');
	$node->psql('postgres', "SET statement_timeout = 100; SET gpuagg.batch_rows = 64; SELECT t, gpu_sum(v) FROM s, generate_series(1, 50) GROUP BY t ORDER BY t", stdout => \$out, stderr => \$err);
	like($err, qr/canceling statement due to statement timeout/, 'a query at a slow server can be cancelled');
	$node->clear_fault;
}
check_query('after all that', "SELECT k, $values{integers} FROM s GROUP BY k ORDER BY k");
$node->stop;
done_testing();
