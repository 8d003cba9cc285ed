# Rows that come once, of volatile functions, at the GPU server; and rows that come back from it and are spilled.
use strict;
use warnings;
use IO::Socket::UNIX;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
# what is tested are batches: autovacuum may let the table be cached in the middle
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

# The answers of the custom scan at the server and of core.
sub compare
{
	my ($query, $name) = @_;
	my ($out, $err, $core);

	$node->psql('postgres', "SET work_mem = '64kB'; $query", stdout => \$out, stderr => \$err);
	(my $plain = $query) =~ s/gpu_//g;
	$core = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; $plain");
	return is($out, $core, $name) || diag($err);
}

ok($node->wait_until_ready, 'the server starts');

# Of a value that is only counted no more than its presence travels; a spill copies values.
foreach my $from (1, 2)
{
	$node->provoke("memory $from");
	compare('SELECT count(*), sum(a), sum(b), sum(c), sum(d), sum(e) FROM (SELECT i, gpu_count(t) AS a, gpu_count(u) AS b,
		gpu_count(c) AS c, gpu_count(v) AS d, gpu_count(n) AS e FROM rows GROUP BY i) g', "counts that come back are spilled, from batch $from on");
	$node->provoke(undef);
}

# What makes the CPU engine start over where it can is no error where it cannot.
compare('SELECT gpu_max(v), gpu_min(v) FROM (SELECT -floor(random() * 0.9) AS v FROM rows OFFSET 0) s', 'minus zeros that come once');
compare('SELECT gpu_max(v), gpu_count(*) FROM (SELECT i, (random() * 0)::int + i AS v FROM rows OFFSET 0) s', 'integers that come once');
compare('SELECT k, gpu_sum(v) FROM (SELECT (n * CASE WHEN i % 2 = 0 THEN 1 ELSE 1.0 END) % 10 AS k, i + (random() * 0)::int AS v FROM rows OFFSET 0) r GROUP BY k ORDER BY k',
	'keys that may look different');
foreach my $query (
	"SELECT gpu_sum(v) FROM (SELECT 1e308 + random() * 0 AS v FROM rows OFFSET 0) s",
	"SELECT gpu_product(v) FROM (SELECT CASE WHEN i < 4 THEN 1e200 ELSE 1 END + random() * 0 AS v FROM rows OFFSET 0) s")
{
	my ($out, $err);

	$node->psql('postgres', $query, stdout => \$out, stderr => \$err);
	like($err, qr/value out of range: overflow/, "an overflow of rows that come once: $query");
}
# the first product overflows only in another order
is($node->safe_psql('postgres', 'SELECT gpu_product(v) FROM (SELECT CASE i WHEN 1 THEN 1e200 WHEN 2 THEN 1e-300 WHEN 3 THEN 1e200 ELSE 1 END + random() * 0 AS v FROM rows OFFSET 0) s'),
	'1e+100', 'a product of rows that come once');
{
	my $rows = '(SELECT random() * 0 + i AS v, i FROM rows OFFSET 0) s';

	$node->provoke("memory 2");
	is($node->safe_psql('postgres', "SET gpuagg.batch_rows = 64; SELECT gpu_longest_run(v > 0 ORDER BY i) FROM $rows"), 100000,
		'rows in order that come once, where there is no room');
	$node->provoke(undef);
}

# While an engine moves its groups to the CPU, functions of its keys run queries that need more sessions than a process has.
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
	is($out, '20000|100000|1', 'queries inside a merge') or diag($err);
}

# One participant reads a table whole, has all its groups spilled and meets an overflow only when it exports them.
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

	$node->provoke("memory 1");
	$node->psql('postgres', "SET gpuagg.engine = $engine; SET work_mem = '64kB'; SET parallel_leader_participation = off; SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
		SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
		SELECT max(s) FROM (SELECT k, gpu_sum(x) AS s FROM (SELECT * FROM once UNION ALL SELECT * FROM longer) u GROUP BY k) g",
		stdout => \$out, stderr => \$err);
	$node->provoke(undef);
	like($err, qr/value out of range: overflow/, "an overflow in the groups that a participant exports, engine $engine") or diag($out);
}

# Between two scans of a query the server goes, and the rows of the second come once.
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
	is($out, "1|99990\n2|99980\n3|99970", 'a server that goes before a rescan') or diag($err);
}

$node->stop;
done_testing();
