# Sorted plans at the GPU server: groups leave in order, whatever goes wrong on the way.
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

# The answers of the custom scan at the server and of core; the plan, with what it did, must be like $plan.
sub compare
{
	my ($name, $query, $plan, $settings) = @_;
	my ($out, $err, $explain);

	$settings //= '';
	$plan //= qr/Engine: cuda.*Strategy: segmented \(rows arrive grouped/s;
	$node->psql('postgres', "$settings; $query", stdout => \$out, stderr => \$err);
	(my $plain = $query) =~ s/gpu_//g;
	my $core = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $plain");
	is($out, $core, $name) or diag($err);
	$node->psql('postgres', "$settings; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query", stdout => \$explain, stderr => \$err);
	like($explain, $plan, "$name: the plan");
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

	compare("$_ by $order", "SELECT $list, $values{$_} FROM s GROUP BY $list ORDER BY $order") foreach sort keys %values;
}
cmp_ok($node->devices('sum(queries)') - $before, '>=', 60, 'all of them were queries of the server');

# one server query for each, in many batches
foreach my $rows (64, 100, 4096, 1048576)
{
	compare("batches of $rows rows", "SELECT k, $values{odd} FROM s GROUP BY k ORDER BY k",
		$rows > 1e6 ? qr/Engine: cpu.*rows too wide/s : undef, "SET gpuagg.batch_rows = $rows");
}
compare('little memory', "SELECT t, $values{integers} FROM s GROUP BY t ORDER BY t", undef, "SET work_mem = '64kB'");
compare("strategy $_", "SELECT k2, k, gpu_count(*) FROM s GROUP BY k2, k ORDER BY k2, k", undef, "SET gpuagg.strategy = '$_'")
  foreach qw(direct hash sort segmented);
compare('HAVING', 'SELECT k, gpu_sum(v) FROM s GROUP BY k HAVING gpu_sum(v) > 3000 ORDER BY k');
compare('LIMIT', 'SELECT k, gpu_sum(v) FROM s GROUP BY k ORDER BY k LIMIT 7 OFFSET 200');
compare('a group each row', 'SELECT i, gpu_sum(v) FROM s GROUP BY i ORDER BY i');
compare('no rows', 'SELECT k, gpu_sum(v) FROM s WHERE k > 5000 GROUP BY k ORDER BY k');
compare('one row', 'SELECT k, gpu_sum(v) FROM s WHERE i = 5 GROUP BY k ORDER BY k', qr/Engine: cuda/);
compare('rescans', 'SELECT g, k, a FROM generate_series(1, 40) g, LATERAL (SELECT k, gpu_sum(v + g) AS a FROM s WHERE k > g * 30 GROUP BY k ORDER BY k LIMIT 3) x');
compare('rescans to the end', 'SELECT g, k, a FROM generate_series(1, 20) g, LATERAL (SELECT k, gpu_sum(v + g) AS a FROM s WHERE k BETWEEN g * 30 AND g * 35 GROUP BY k ORDER BY k OFFSET 0) x');
compare('a Sort below', 'SELECT b, v, gpu_count(*), gpu_sum(f) FROM (SELECT b, v, f FROM s ORDER BY b, v OFFSET 0) q GROUP BY b, v ORDER BY b, v', qr/Engine: cuda.*rows arrive grouped.*Sort/s, 'SET enable_sort = on; SET gpuagg.batch_rows = 500');
compare('an incremental sort', 'SELECT k2, v, gpu_count(*) FROM (SELECT k2, v FROM s ORDER BY k2, v OFFSET 0) q GROUP BY k2, v ORDER BY k2, v', qr/Engine: cuda.*rows arrive grouped.*Incremental Sort/s, 'SET enable_sort = on');
compare('volatile rows', 'SELECT k, gpu_sum(v) FROM (SELECT k, v + (random() * 0)::int AS v FROM s ORDER BY k OFFSET 0) q GROUP BY k ORDER BY k');
compare('Gather Merge', 'SELECT k, gpu_sum(v) FROM (SELECT k, v FROM s ORDER BY k OFFSET 0) q GROUP BY k ORDER BY k', undef,
	'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0');
like($node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT k, $_->[0] FROM s GROUP BY k ORDER BY k"), qr/Engine: cpu \(.*$_->[1]/, "$_->[0] is the CPU engine's")
  foreach [ 'gpu_product(1 + f / 1e6)', 'products' ], [ 'gpu_histogram(v, -5000, 5000, 4)', 'histograms and sketches' ];

# one float that is so large that its square only just has room, and many small ones behind it
$node->safe_psql('postgres', 'CREATE TABLE large AS SELECT i / 20000 AS k, i, CASE WHEN i = 20000 THEN 1e154 ELSE i % 2 END::float8 AS f FROM generate_series(0, 59999) i; CREATE INDEX ON large (k, i); VACUUM ANALYZE large');
compare("large floats, batches of $_", 'SELECT k, gpu_count(*), gpu_sum(f), gpu_avg(f) FROM large GROUP BY k ORDER BY k', undef, "SET gpuagg.batch_rows = $_") foreach 64, 4096;
# zeros with either sign in a group, of which the server takes none
$node->safe_psql('postgres', "CREATE TABLE zeros AS SELECT CASE i % 4 WHEN 0 THEN -0.0::float8 ELSE i % 4 / 2 END * (i / 1000) AS f FROM generate_series(0, 9999) i; CREATE INDEX ON zeros (f); VACUUM ANALYZE zeros");
$node->provoke('memory');
compare('zeros taken back', 'SELECT gpu_count(*), gpu_sum(f) FROM zeros GROUP BY f ORDER BY f', qr/Engine: cuda/);
$node->provoke(undef);

# a cursor, with other queries of the server between its fetches
{
	my $fetches = join(' ', map { "FETCH 400 FROM c; SELECT gpu_count(*) FROM s WHERE i < $_ * 10;" } 1 .. 5);
	my $cursor = "BEGIN; DECLARE c CURSOR FOR SELECT k, gpu_sum(v), gpu_min(odd), gpu_sum(n) FROM s GROUP BY k ORDER BY k; $fetches COMMIT";
	(my $plain = $cursor) =~ s/gpu_//g;

	is($node->safe_psql('postgres', "SET gpuagg.batch_rows = 1000; $cursor"),
		$node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $plain"), 'a cursor');
}

# A query that the server has no room for is the CPU engine's, which says why.
$node->provoke('lane');
compare('no lane', "SELECT k, $values{integers} FROM s GROUP BY k ORDER BY k", qr/Engine: cpu \(cuda failed: out of memory/);
$node->provoke(undef);

# What goes wrong at the server, at each batch: the rest comes from the CPU.
foreach my $fault (qw(memory launch abort segv fetch keys))
{
	foreach my $from (1, 2, 4)
	{
		my ($out, $err);
		my $query = "SELECT t, $values{integers} FROM s GROUP BY t ORDER BY t";
		(my $plain = $query) =~ s/gpu_//g;

		ok($node->wait_until_ready, "the server is there before $fault $from");
		$node->provoke("$fault $from");
		$node->psql('postgres', "SET client_min_messages = debug1; SET gpuagg.batch_rows = 1000; $query", stdout => \$out, stderr => \$err);
		$node->provoke(undef);
		is($out, $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $plain"), "$fault at batch $from");
		like($err, qr/rows are reduced on the CPU from here on/, "$fault at batch $from: the CPU takes over");
	}
}
ok($node->wait_until_ready, 'the server is there again');

# the same with rows beside those that come back
foreach my $fault ('abort', 'memory')
{
	foreach my $from (1 .. 5)
	{
		my ($out, $err);
		my $query = "SELECT t, $values{odd} FROM s WHERE i > 18000 GROUP BY t ORDER BY t";
		(my $plain = $query) =~ s/gpu_//g;

		ok($node->wait_until_ready, "the server is there before $fault $from");
		$node->provoke("$fault $from");
		$node->psql('postgres', "SET gpuagg.batch_rows = 400; $query", stdout => \$out, stderr => \$err);
		$node->provoke(undef);
		is($out, $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $plain"), "$fault at batch $from, rows beside it") or diag($err);
	}
}
ok($node->wait_until_ready, 'the server is there once more');

# an overflow that core reports
foreach my $engine ('cuda', 'cpu')
{
	my ($out, $err);

	$node->psql('postgres', "SET gpuagg.engine = $engine; SELECT k, gpu_sum(odd * 1e8) FROM s GROUP BY k ORDER BY k", stdout => \$out, stderr => \$err);
	like($err, qr/value out of range: overflow/, "an overflow, engine $engine");
}

# cancel, while the server takes its time
{
	my ($out, $err);

	$node->provoke('slow 1');
	$node->psql('postgres', "SET statement_timeout = 100; SET gpuagg.batch_rows = 64; SELECT t, gpu_sum(v) FROM s, generate_series(1, 50) GROUP BY t ORDER BY t", stdout => \$out, stderr => \$err);
	like($err, qr/canceling statement due to statement timeout/, 'a cancel');
	$node->provoke(undef);
}
compare('after all that', "SELECT k, $values{integers} FROM s GROUP BY k ORDER BY k");
$node->stop;
done_testing();
