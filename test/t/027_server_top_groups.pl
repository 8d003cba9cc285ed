# HAVING and ORDER BY ... LIMIT at the server, with values of every type, NULLs first and last, and ties. The reference is the answer of
# the plain aggregates. Also: groups that are left out are not fetched, and are counted in EXPLAIN.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1);

$node->safe_psql('postgres', <<SQL);
CREATE TABLE t AS SELECT (i % 5003)::int AS k, CASE WHEN i % 9 > 0 THEN i % 4001 END AS nk, (i * 7919 % 10007 - 5000)::int AS v,
	CASE WHEN i % 5003 % 3 > 0 THEN i % 701 END AS rare, (i % 977 * 1000000007::bigint) AS b, (i % 1000)::numeric(10, 2) / 8 AS n,
	CASE WHEN i % 5003 % 5 > 0 THEN (i % 400 - 200) / 4.0::float8 END AS f, (i % 300 - 100)::float4 AS r, date '2020-01-01' + i % 3001 AS d,
	((i % 2003) - 1000)::float8 AS kf
FROM generate_series(1, 60000) i;
ALTER TABLE t ALTER n TYPE numeric(12, 3);
VACUUM FREEZE ANALYZE t;
SELECT gpuagg_cache_prewarm('t');
SQL
ok($node->wait_until_ready, 'the server starts');

sub check_answer { return is_right_answer($node, $_[0], $_[0]) }

# Returns the number of groups, the kB that were fetched, and the number of groups that HAVING removed.
sub counts
{
	my ($query) = @_;
	my $plan = $node->explain_analyze($query);
	my ($groups) = $plan =~ /Groups: (\d+)/;
	my ($bytes) = $plan =~ /From Device: (\d+) kB/;
	my ($removed) = $plan =~ /Rows Removed by Filter: (\d+)/;

	return ($groups, $bytes // -1, $removed // 0);
}

my @values = (
	'gpu_count(*)', 'gpu_count(rare)', 'gpu_sum(v)', 'gpu_sum(rare)', 'gpu_min(rare)', 'gpu_max(v)', 'gpu_sum(b)', 'gpu_max(b)',
	'gpu_sum(n)', 'gpu_min(n)', 'gpu_sum(f)', 'gpu_avg(f)', 'gpu_max(f)', 'gpu_min(r)', 'gpu_max(d)', 'gpu_sum(v) FILTER (WHERE v > 4000)');

for my $value (@values)
{
	for my $order ('', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST')
	{
		my $query = "SELECT k, $value AS x FROM t GROUP BY k ORDER BY x $order, k LIMIT 12";

		check_answer($query);
		my ($groups, $bytes) = counts($query =~ s/, k LIMIT 12/ LIMIT 12/r);

		is($groups, 5003, '... EXPLAIN counts all groups');
		# many groups tie in counts, and in NULLs that come first; all groups would be at least 79 kB
		cmp_ok($bytes, '<', $value =~ /count\(\*/ ? 200 : 70, "... few are fetched ($bytes kB)");
	}
}
# ---- order by keys, with NULLs and with a sign ----
for my $key ('k', 'nk', 'd')
{
	for my $order ('', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST')
	{
		my $query = "SELECT $key, gpu_count(*), gpu_sum(v) FROM t GROUP BY $key ORDER BY $key $order LIMIT 7 OFFSET 3";

		check_answer($query);
		cmp_ok((counts($query))[1], '<=', 2, '... few are fetched');
	}
}
check_answer('SELECT kf, gpu_count(*) FROM t GROUP BY kf ORDER BY kf LIMIT 7');
check_answer('SELECT nk, k % 7, gpu_count(*) FROM t GROUP BY 1, 2 ORDER BY nk DESC, 2 LIMIT 20');
check_answer('SELECT k, nk, gpu_sum(v) FROM t GROUP BY k, nk ORDER BY 3 DESC, 1, 2 LIMIT 20');

# ---- HAVING: operators, types, NULLs, several conditions. The executor checks conditions that the server cannot. ----
my @conditions = (
	'gpu_sum(v) > 20000', 'gpu_sum(v) >= 20000 AND gpu_count(*) = 12', 'gpu_sum(rare) < 2000', 'gpu_min(rare) = 17', '1000 > gpu_sum(rare)',
	'gpu_avg(f) > 40', 'gpu_sum(f) <= -100.5', 'gpu_max(r) < 150', 'gpu_sum(n) > 1000.125', 'gpu_sum(b) >= 6000000000000',
	'gpu_max(d) < date \'2025-06-01\'', 'gpu_sum(v) <> 7 AND gpu_sum(v) > 20000', 'gpu_sum(v) > 20000 AND k % 2 = 0',
	'gpu_sum(v) > 0 AND gpu_count(*) > 5 AND gpu_max(v) > 4900 AND gpu_min(v) < 0 AND gpu_max(b) > 0 AND gpu_sum(rare) > 0',
	'gpu_sum(b) > 9223372036854775808', 'gpu_count(*) > 1000', 'gpu_min(rare) > 100.5');
for my $having (@conditions)
{
	my $query = "SELECT k, gpu_count(*), gpu_sum(v), gpu_sum(rare) FROM t GROUP BY k HAVING $having";
	my @ours;

	check_answer("$query ORDER BY k");
	check_answer("$query ORDER BY 3 DESC, k LIMIT 9");
	@ours = counts($query);
	my $cpu = $node->safe_psql('postgres', "SET gpuagg.engine = 'cpu'; EXPLAIN (ANALYZE, COSTS OFF) $query");
	my ($groups) = $cpu =~ /Groups: (\d+)/;
	my ($removed) = $cpu =~ /Rows Removed by Filter: (\d+)/;

	is("$ours[0] $ours[2]", "$groups " . ($removed // 0), '... EXPLAIN counts the same groups and removed groups as with the CPU engine');
}
cmp_ok((counts('SELECT k, gpu_sum(v) FROM t GROUP BY k HAVING gpu_sum(v) > 40000'))[1], '<', 10, 'groups that HAVING removes are not fetched');
# a parameter is known before the query runs; a subquery is not executed early
check_answer('PREPARE p(int) AS SELECT k, gpu_sum(v) FROM t GROUP BY k HAVING gpu_sum(v) > $1 ORDER BY 2, 1 LIMIT 3; EXECUTE p(20000); EXECUTE p(NULL); DEALLOCATE p');
check_answer('SELECT k, gpu_sum(v) FROM t GROUP BY k HAVING gpu_sum(v) > (SELECT max(v) * 5 FROM t) ORDER BY 2, 1 LIMIT 3');
check_answer('SELECT k, gpu_sum(v) FROM t WHERE v > 20000 GROUP BY k HAVING gpu_sum(v) > 1 / (SELECT 0) ORDER BY 2 LIMIT 3');
# a query without keys has always one group
check_answer('SELECT gpu_count(*), gpu_sum(v) FROM t HAVING gpu_sum(v) > 0');
check_answer('SELECT gpu_count(*), gpu_sum(v) FROM t HAVING gpu_sum(v) < 0');
check_answer('SELECT gpu_count(*), gpu_sum(v) FROM t WHERE v > 20000 HAVING gpu_count(*) = 0');
# rows from the device and from batches, and rescans
$node->safe_psql('postgres', 'UPDATE t SET v = v + 1 WHERE k = 17');
check_answer('SELECT k, gpu_sum(v) AS x FROM t GROUP BY k HAVING gpu_max(v) > 100 ORDER BY x DESC, k LIMIT 12');
check_answer('SELECT g, s.* FROM generate_series(1, 4) g, LATERAL (SELECT k, gpu_sum(v) AS x FROM t WHERE v > g * 1000 GROUP BY k HAVING gpu_sum(v) > g * 10000 ORDER BY x, k LIMIT 3) s');

# ---- ties: the device compares up to four values, and returns few groups that tie ----
{
	my $limit_of = sub { return $node->explain_analyze($_[0]) =~ /Device Limit: ([^\n]*)/ ? $1 : 'none' };
	my $check_limit = sub
	{
		my ($query, $limit) = @_;

		check_answer($query);
		is($limit_of->($query), $limit, "... the device's limit is $limit");
		my ($groups, $bytes) = counts($query);
		cmp_ok($bytes, '<=', 8, "... few of $groups groups are fetched ($bytes kB)");
		return;
	};

	$node->safe_psql('postgres', <<SQL);
CREATE TABLE equals AS SELECT i AS k, i % 50000 AS half, CASE WHEN i % 3 = 0 THEN i % 10 END AS x, 7 AS c, (i % 5)::float8 AS f,
	(9e18 + i % 4)::numeric(30) AS wide FROM generate_series(1, 100000) i;
VACUUM FREEZE ANALYZE equals;
SELECT gpuagg_cache_prewarm('equals');
SQL
	$check_limit->('SELECT k, gpu_count(*) FROM equals GROUP BY k ORDER BY 2 DESC, k LIMIT 10', '10 by 2 keys');
	$check_limit->('SELECT half, gpu_count(*), gpu_sum(x) FROM equals GROUP BY half ORDER BY 2 DESC, 3 DESC, half DESC LIMIT 10', '10 by 3 keys');
	$check_limit->('SELECT half, gpu_count(*), gpu_sum(x) FROM equals GROUP BY half ORDER BY 2, 3 DESC NULLS LAST, half LIMIT 10 OFFSET 7', '17 by 3 keys');
	$check_limit->('SELECT half, gpu_sum(c), gpu_sum(x), gpu_avg(f) FROM equals GROUP BY half ORDER BY 2, 3 NULLS FIRST, 4 DESC, half DESC LIMIT 5', '5 by 4 keys');
	# the query does not say which of the tied groups it needs
	{
		my $query = 'SELECT k, gpu_count(*) FROM equals GROUP BY k ORDER BY 2 DESC LIMIT 10';

		is($limit_of->($query), '10 by 1 key', 'the device\'s limit is 10 by 1 key if ties are not needed');
		cmp_ok((counts($query))[1], '<=', 8, '... and few tied groups are fetched');
		is($node->safe_psql('postgres', "SELECT count(*), sum(c) FROM ($query) q(k, c)"), '10|10', '... and the query returns ten groups');
	}
	# All ties are needed with WITH TIES, and if the order has more values than the device compares, or an expression.
	check_answer('SELECT count(*) FROM (SELECT half, gpu_count(*) FROM equals GROUP BY half ORDER BY 2 DESC FETCH FIRST 10 ROWS WITH TIES) q');
	is($limit_of->('SELECT half, gpu_count(*) FROM equals GROUP BY half ORDER BY 2 DESC FETCH FIRST 10 ROWS WITH TIES'), '10 by 1 key, with ties', '... the device returns ties');
	check_answer('SELECT half, gpu_count(*), gpu_sum(x) FROM equals GROUP BY half ORDER BY 2, half % 7, half LIMIT 10');
	is($limit_of->('SELECT half, gpu_count(*), gpu_sum(x) FROM equals GROUP BY half ORDER BY 2, half % 7, half LIMIT 10'), '10 by 1 key, with ties', '... the device returns ties for an order by an expression');
	check_answer('SELECT half, gpu_count(*) FROM equals GROUP BY half ORDER BY gpu_count(*), gpu_sum(c), gpu_max(c), gpu_min(x), half DESC LIMIT 10');
	is($limit_of->('SELECT half, gpu_count(*) FROM equals GROUP BY half ORDER BY gpu_count(*), gpu_sum(c), gpu_max(c), gpu_min(x), half DESC LIMIT 10'), '10 by 4 keys, with ties', '... the device returns ties for an order by five values');
	# the device compares 64 bits, in which larger values may tie
	check_answer('SELECT half, gpu_sum(wide) FROM equals GROUP BY half ORDER BY 2 DESC, half LIMIT 10');
	check_answer('SELECT k, gpu_max(wide) FROM equals GROUP BY k ORDER BY 2 DESC, k LIMIT 10');
	# with HAVING
	$check_limit->('SELECT half, gpu_count(*), gpu_sum(x) FROM equals GROUP BY half HAVING gpu_sum(x) > 3 ORDER BY 2 DESC, 3, half DESC LIMIT 10', '10 by 3 keys');
}

# ---- a rescan after a scan without rows ----
{
	my $query = 'SELECT g, s.* FROM (VALUES (3), (1)) g(g), LATERAL (SELECT k, gpu_sum(v) AS x FROM t WHERE v > (g - 2) * 20000 GROUP BY k ORDER BY x, k LIMIT 3) s';

	check_answer($query);
	my ($groups, $bytes) = counts($query);

	is($groups, 5003, '... EXPLAIN counts all groups');
	cmp_ok($bytes, '<', 30, '... few are fetched');
}

# ---- rescans with a LIMIT and without ORDER BY ----
{
	my $settings = "SET gpuagg.cache = 'off'; SET gpuagg.batch_rows = 64; SET enable_material = off; SET gpuagg.replace_builtin = on";
	my $query = 'SELECT g, count(*) FROM generate_series(1, 3) g LEFT JOIN LATERAL (SELECT k FROM firsts GROUP BY k LIMIT 5) s ON true GROUP BY g ORDER BY g';

	$node->safe_psql('postgres', 'CREATE TABLE firsts AS SELECT i / 100 AS k FROM generate_series(0, 9999) i; VACUUM ANALYZE firsts');
	like($node->safe_psql('postgres', "$settings; EXPLAIN (ANALYZE, COSTS OFF) $query"), qr/Nested Loop.*Custom Scan[^\n]*loops=3\).*Engine: cuda/s, 'rescans with a LIMIT and without an order run on the GPU');
	is($node->safe_psql('postgres', "$settings; $query"), "1|5\n2|5\n3|5", '... and each returns its groups');
}

done_testing();
