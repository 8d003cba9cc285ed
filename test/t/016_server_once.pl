# Rows that can be computed only once, because of volatile functions, at the GPU server. Where another query would start over on the
# CPU engine, this one must give its answer with the CPU fallback. Also rows that the server gives back, and that are spilled. The
# reference is core's answer.
use strict;
use warnings;
use IO::Socket::UNIX;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
# no cache, so that all rows arrive in batches: after an autovacuum the table could be cached
gpuagg.cache = off
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
CONF
$node->safe_psql('postgres', <<SQL);
CREATE TABLE rows AS SELECT i, CASE WHEN i % 11 > 0 THEN repeat('x', i % 30) END AS t, md5(i::text)::uuid AS u,
	('name' || i % 7)::name AS c, make_interval(secs => i) AS v, i::numeric AS n
FROM generate_series(1, 100000) i;
ANALYZE rows;
SQL

# Tests that the answer with little memory is core's.
sub is_core_answer
{
	my ($query, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	return is_right_answer($node, $query, $name, settings => "SET work_mem = '64kB';", reference => core_query($query));
}

ok($node->wait_until_ready, 'the server starts');

# The values of arguments of gpu_count are not sent, only whether they are NULL. A spill must not need the values.
foreach my $from (1, 2)
{
	my $failures = $node->device('out_of_memory');
	# these values are sent, and divide the rows into several batches
	my @factors = $from > 1 ? 1 .. 12 : ();
	my $sums = join '', map { ", gpu_sum(i::bigint * i % (1000003 + $_)) AS s$_" } @factors;
	my $outer = join '', map { ", max(s$_)" } @factors;

	$node->set_fault("memory $from");
	is_core_answer("SELECT count(*), sum(a), sum(b), sum(c), sum(d), sum(e)$outer FROM (SELECT i, gpu_count(t) AS a, gpu_count(u) AS b,
		gpu_count(c) AS c, gpu_count(v) AS d, gpu_count(n) AS e$sums FROM rows GROUP BY i) g", "counts of rows that are given back and spilled are right, from batch $from on");
	$node->clear_fault;
	is($node->device('out_of_memory'), $failures + 1, '... and the server had no memory for them');
}

# Values that make the CPU engine start over where it can. Here it cannot, and the query must not fail.
is_core_answer('SELECT gpu_max(v), gpu_min(v) FROM (SELECT -floor(random() * 0.9) AS v FROM rows OFFSET 0) s', 'minus zeros: the answer is core\'s');
is_core_answer('SELECT gpu_max(v), gpu_count(*) FROM (SELECT i, (random() * 0)::int + i AS v FROM rows OFFSET 0) s', 'integers: the answer is core\'s');
is_core_answer('SELECT k, gpu_sum(v) FROM (SELECT (n * CASE WHEN i % 2 = 0 THEN 1 ELSE 1.0 END) % 10 AS k, i + (random() * 0)::int AS v FROM rows OFFSET 0) r GROUP BY k ORDER BY k',
	'equal keys that print differently: the answer is core\'s');
foreach my $query (
	"SELECT gpu_sum(v) FROM (SELECT 1e308 + random() * 0 AS v FROM rows OFFSET 0) s",
	"SELECT gpu_product(v) FROM (SELECT CASE WHEN i < 4 THEN 1e200 ELSE 1 END + random() * 0 AS v FROM rows OFFSET 0) s")
{
	my ($out, $err);

	$node->psql('postgres', $query, stdout => \$out, stderr => \$err);
	like($err, qr/value out of range: overflow/, "an overflow is an error: $query");
}
# this product overflows only in another order of rows
is($node->safe_psql('postgres', 'SELECT gpu_product(v) FROM (SELECT CASE i WHEN 1 THEN 1e200 WHEN 2 THEN 1e-300 WHEN 3 THEN 1e200 ELSE 1 END + random() * 0 AS v FROM rows OFFSET 0) s'),
	'1e+100', 'a product that overflows in another order is right');
{
	my $rows = '(SELECT random() * 0 + i AS v, i FROM rows OFFSET 0) s';
	my $query = "SELECT gpu_longest_run(v > 0 ORDER BY i) FROM $rows";

	$node->set_fault("memory 2");
	is($node->safe_psql('postgres', "SET gpuagg.batch_rows = 64; $query"), 100000,
		'ordered rows give the right answer without device memory');
	$node->clear_fault;
	like($node->explain_analyze($query), qr/Engine: cpu \(all ordered rows must fit into GPU memory, and the input cannot be read twice/,
		'... as they are not sent at all');
}

# While an engine moves its groups to the CPU fallback, a hash function of its keys runs a query that needs more sessions than a
# process may have.
$node->safe_psql('postgres', <<SQL);
CREATE TABLE few AS SELECT i::float8 AS x FROM generate_series(1, 100) i;
CREATE TYPE number;
CREATE FUNCTION number_in(cstring) RETURNS number LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION number_out(number) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE number (INPUT = number_in, OUTPUT = number_out, LIKE = int4);
CREATE CAST (int AS number) WITHOUT FUNCTION;
CREATE CAST (number AS int) WITHOUT FUNCTION;
CREATE FUNCTION many_sums() RETURNS float8 LANGUAGE plpgsql AS \$\$
DECLARE
	total float8;
BEGIN
	EXECUTE 'SELECT sum(v) FROM (' ||
		(SELECT string_agg('SELECT gpu_sum(x) AS v FROM few', ' UNION ALL ') FROM generate_series(1, 20)) || ') q' INTO total;
	RETURN total;
END \$\$;
CREATE FUNCTION number_hash(number) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS \$\$
BEGIN
	IF \$1::int = 1500 THEN
		PERFORM many_sums();
	END IF;
	RETURN hashint4(\$1::int);
END \$\$;
CREATE FUNCTION number_eq(number, number) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE OPERATOR = (LEFTARG = number, RIGHTARG = number, FUNCTION = number_eq, HASHES);
CREATE OPERATOR CLASS number_ops DEFAULT FOR TYPE number USING hash AS OPERATOR 1 =, FUNCTION 1 number_hash(number);
CREATE TABLE numbers AS SELECT (i % 20000)::int::number AS k, (CASE WHEN i = 99000 THEN 'NaN'::numeric ELSE i END)::numeric(12, 2) AS n
FROM generate_series(1, 100000) i;
ANALYZE few, numbers;
SQL
{
	my ($out, $err);

	$node->psql('postgres', 'SELECT count(k::text), sum(c), count(*) FILTER (WHERE s = \'NaN\') FROM (SELECT k, gpu_count(*) AS c, gpu_sum(n) AS s FROM numbers GROUP BY k) q', stdout => \$out, stderr => \$err);
	is($out, '20000|100000|1', 'queries run while groups are moved to the CPU') or diag($err);
}

# Each participant reads a whole table and spills its groups. One finds an overflow only when it exports its groups.
$node->safe_psql('postgres', <<SQL);
CREATE TABLE once AS SELECT i % 100000 AS k, CASE i % 100000 WHEN 90007 THEN 1.7e308 ELSE 1 END::float8 AS x FROM generate_series(0, 199999) i;
CREATE TABLE longer AS SELECT i % 100000 + 1000000 AS k, 1::float8 AS x FROM generate_series(0, 599999) i;
ALTER TABLE once SET (parallel_workers = 0);
ALTER TABLE longer SET (parallel_workers = 0);
ANALYZE once, longer;
SQL
foreach my $engine ('cuda', 'cpu')
{
	my ($out, $err);
	my $failures = $node->device('out_of_memory');

	$node->set_fault("memory 1");
	$node->psql('postgres', "SET gpuagg.engine = $engine; SET work_mem = '64kB'; SET parallel_leader_participation = off; SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
		SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
		SELECT max(s) FROM (SELECT k, gpu_sum(x) AS s FROM (SELECT * FROM once UNION ALL SELECT * FROM longer) u GROUP BY k) g",
		stdout => \$out, stderr => \$err);
	$node->clear_fault;
	like($err, qr/value out of range: overflow/, "an overflow in exported groups is an error, engine $engine") or diag($out);
	cmp_ok($node->device('out_of_memory') - $failures, $engine eq 'cuda' ? '>' : '==', 0, '... where the server had no memory, if it was asked');
}

# The server is killed between two scans of a query with volatile functions.
{
	my $socket = $node->socket_path;
	my $peer = IO::Socket::UNIX->new(Peer => $socket) or die "no connection";
	my $pid = unpack('l', $peer->sockopt(17));	# SO_PEERCRED

	close $peer;
	$node->safe_psql('postgres', <<SQL);
CREATE FUNCTION kill_server(j int) RETURNS int LANGUAGE plpgsql AS \$\$
BEGIN
	IF j = 2 THEN
		COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; kill -9 $pid; sleep 0.1';
	END IF;
	RETURN j;
END \$\$;
SQL
	my ($out, $err);
	$node->psql('postgres', 'SELECT j, c FROM (SELECT kill_server(j) AS j FROM generate_series(1, 3) j OFFSET 0) o,
		LATERAL (SELECT gpu_count(*) AS c FROM (SELECT random() FROM rows WHERE i > 10 * o.j OFFSET 0) r) s', stdout => \$out, stderr => \$err);
	is($out, "1|99990\n2|99980\n3|99970", 'a server that ends before a rescan does not change the answer') or diag($err);
}

$node->stop;
done_testing();
