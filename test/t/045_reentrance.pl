# Functions that run queries with the extension's aggregates, in each place of a query with them: the inner query has what
# the outer one keeps in this process (dictionaries, sessions at the GPU server, memos), replaces it, fails, is cancelled.
# Both engines; answers are core's.  Freed memory is overwritten, so that what still reads it shows.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Resident;
use Test::More;

# more than a process keeps dictionaries (src/engine_cuda/dictionaries.c)
my $parts = 300;

$ENV{MALLOC_PERTURB_} = 204;

my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '64MB'
gpuagg.cache_renew = 0
autovacuum = off
CONF

$node->safe_psql('postgres', <<SQL);
CREATE TABLE part (k int, txt text) PARTITION BY LIST (k);
SELECT format('CREATE TABLE part_%s PARTITION OF part FOR VALUES IN (%s)', i, i) FROM generate_series(1, $parts) i \\gexec
INSERT INTO part SELECT i, 'value ' || j FROM generate_series(1, $parts) i, generate_series(1, 8) j;
SELECT format('CREATE VIEW v_%s AS SELECT gpu_count(*) AS n FROM part WHERE txt LIKE %L', i, '%' || i % 8 || '%') FROM generate_series(1, 40) i \\gexec

CREATE TABLE t (id int, k int, v int, txt text, nm text);
INSERT INTO t SELECT i, i % 10, i % 1000, 'text ' || i % 12, 'v_' || i % 40 + 1 FROM generate_series(1, 300) i;
CREATE TABLE s (k int, txt text);
CREATE TABLE names (k int, nm text);
INSERT INTO names SELECT i, 'v_' || i % 40 + 1 FROM generate_series(1, 40) i;
INSERT INTO s SELECT i % 10, 'text ' || i % 6 FROM generate_series(1, 12) i;
VACUUM FREEZE ANALYZE;
SELECT gpuagg_cache_prewarm(relid) FROM pg_partition_tree('part') WHERE isleaf;
SELECT gpuagg_cache_prewarm('t'), gpuagg_cache_prewarm('s'), gpuagg_cache_prewarm('names');

-- the same table and columns, and all dictionaries replaced
CREATE FUNCTION same(x int) RETURNS bigint LANGUAGE plpgsql STABLE AS
\$\$ BEGIN RETURN x + (SELECT gpu_count(*) FROM s WHERE txt LIKE '%' || x % 3 || '%') + (SELECT gpu_count(*) FROM t WHERE txt LIKE '%1%'); END \$\$;
CREATE FUNCTION by_sql(x int) RETURNS bigint LANGUAGE sql STABLE AS
\$\$ SELECT x + gpu_sum(v) FROM t WHERE txt > 'text 3' GROUP BY k = x HAVING k = x \$\$;
CREATE FUNCTION evicting(x int) RETURNS bigint LANGUAGE plpgsql STABLE AS
\$\$ BEGIN RETURN x + (SELECT gpu_count(*) FROM part WHERE txt LIKE '%' || x % 8 || '%'); END \$\$;
-- an error, caught
CREATE FUNCTION failing(x int) RETURNS bigint LANGUAGE plpgsql STABLE AS
\$\$ BEGIN RETURN (SELECT gpu_sum(1 / (v - x)) FROM t WHERE txt LIKE '%1%'); EXCEPTION WHEN division_by_zero THEN RETURN -x; END \$\$;
CREATE FUNCTION cancelled(x int) RETURNS bigint LANGUAGE plpgsql AS
\$\$ BEGIN PERFORM pg_cancel_backend(pg_backend_pid()); PERFORM gpu_count(*) FROM t WHERE txt LIKE '%1%'; RETURN 0; EXCEPTION WHEN query_canceled THEN RETURN x; END \$\$;
-- other settings, and back
CREATE FUNCTION setting(x int) RETURNS bigint LANGUAGE plpgsql AS
\$\$ DECLARE n bigint; old text := current_setting('gpuagg.engine'); BEGIN PERFORM set_config('gpuagg.engine', 'cpu', true);
PERFORM set_config('gpuagg.batch_rows', '64', true); n := (SELECT gpu_sum(v) FROM t WHERE txt LIKE '%' || x % 10 || '%');
PERFORM set_config('gpuagg.engine', old, true); PERFORM set_config('gpuagg.batch_rows', '4096', true); RETURN n; END \$\$;
-- a cursor that goes on with each call
CREATE FUNCTION fetching(x int) RETURNS bigint LANGUAGE plpgsql AS
\$\$ DECLARE c refcursor := 'kept'; n bigint; BEGIN
IF NOT EXISTS (SELECT FROM pg_cursors WHERE name = 'kept') THEN OPEN c FOR SELECT gpu_sum(v) FROM t GROUP BY id ORDER BY id; END IF;
FETCH c INTO n; RETURN coalesce(n, 0); END \$\$;
-- three levels
CREATE FUNCTION deep(x int, level int DEFAULT 3) RETURNS bigint LANGUAGE plpgsql STABLE AS
\$\$ BEGIN IF level = 0 THEN RETURN x; END IF; RETURN (SELECT gpu_max(deep(k, level - 1)) FROM s WHERE txt LIKE '%' || x % 3) + x; END \$\$;
CREATE FUNCTION explaining(x int) RETURNS bigint LANGUAGE plpgsql AS
\$\$ DECLARE l text; n bigint := 0; BEGIN FOR l IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT gpu_count(*) FROM s WHERE txt LIKE ''%1%''' LOOP n := 1; END LOOP; RETURN n + x; END \$\$;
-- by queries of a user's type, domain, cast, operator and aggregate
CREATE FUNCTION checked(x int) RETURNS bool LANGUAGE plpgsql AS
\$\$ BEGIN RETURN (SELECT gpu_count(*) > x FROM s WHERE txt LIKE '%1%'); END \$\$;
CREATE DOMAIN dom AS int CHECK (checked(VALUE));
CREATE TYPE pair AS (a int, d dom);
CREATE FUNCTION step(state bigint, x int) RETURNS bigint LANGUAGE plpgsql STABLE AS
\$\$ BEGIN RETURN state + (SELECT gpu_count(*) FROM s WHERE k = x AND txt LIKE '%1%'); END \$\$;
CREATE FUNCTION final(state bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS
\$\$ BEGIN RETURN state + (SELECT gpu_count(*) FROM part WHERE txt LIKE '%2%'); END \$\$;
CREATE AGGREGATE own (int) (sfunc = step, stype = bigint, initcond = '0', finalfunc = final);
CREATE FUNCTION of_pair(pair) RETURNS int LANGUAGE plpgsql STABLE AS
\$\$ BEGIN RETURN (\$1).a + (SELECT gpu_min(k) FROM s WHERE txt LIKE '%1%'); END \$\$;
CREATE CAST (pair AS int) WITH FUNCTION of_pair(pair);
SQL

$Resident::node = $node;
ok($node->wait_until_ready, 'the server starts');

# The answers of both engines are core's, also where these are errors.
sub as_core
{
	my ($query) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	# of volatile functions not every place can be taken
	my $require = $query =~ /\b(setting|explaining|cancelled|fetching|dom|checked)\b/ ? 'allow' : 'require';

	# first, so that a server that ends is not taken for equal answers
	my $expected = core("BEGIN; $query; COMMIT");

	foreach my $engine ('cuda', 'cpu')
	{
		is(ours("BEGIN; SET gpuagg.engine = $engine; SET gpuagg.require = $require; $query; COMMIT"), $expected, "$engine: $query");
	}
	return;
}

as_core("SELECT gpu_count(*) FROM names WHERE length(table_to_xml(nm::regclass, false, false, '')::text) > 5");
{
	my $outer = "SELECT gpu_count(*) FROM names WHERE length(table_to_xml(nm::regclass, false, false, '')::text) > 5";
	# a query may tell of any row, also of one that its caller does not see
	like(seen($outer), qr/Resident Rows: none: a function might reveal values/, 'functions that run queries are not called for the values of a dictionary');
	like(seen('SELECT n FROM v_1'), qr/Resident Rows: 2400/, '... but these queries have more dictionaries than are kept');
}
as_core("SELECT query_to_xml('SELECT gpu_count(*) AS n FROM part WHERE txt LIKE ''%' || length(nm) || '%''', false, false, '')::text, gpu_count(*) FROM names GROUP BY 1 ORDER BY 1");
like(seen("SELECT gpu_count(*) FROM t WHERE txt LIKE '%1%'"), qr/Resident Rows: [1-9]/, 'rows are on the GPU');

my @few = map { "$_(k)" } qw(same by_sql failing setting deep explaining);
foreach my $f (@few)
{
	as_core("SELECT $f, k FROM (SELECT k, gpu_sum(v) FROM s JOIN t USING (k) GROUP BY k) x ORDER BY k");
	as_core("SELECT $f AS key, gpu_count(*) FROM s GROUP BY 1 ORDER BY 1");
	as_core("SELECT txt, gpu_sum($f), gpu_count(*) FILTER (WHERE $f > 20) FROM s GROUP BY txt ORDER BY txt");
	as_core("SELECT txt, gpu_count(*) FROM s WHERE txt LIKE '%1%' AND $f > 20 AND k > 2 GROUP BY txt ORDER BY txt");
	as_core("SELECT k, gpu_count(*) FROM t GROUP BY k HAVING $f > 20 ORDER BY k");
	as_core("SELECT txt, array_agg(k ORDER BY $f, k), gpu_count(DISTINCT $f) FROM s GROUP BY txt ORDER BY txt");
	as_core("SELECT gpu_count(*) FROM s JOIN generate_series(1, 5) g ON $f = g + s.k");
	as_core("SELECT k, l.n FROM generate_series(1, 3) k, LATERAL (SELECT gpu_count(*) n FROM s WHERE s.k < $f) l ORDER BY k");
	as_core("SELECT k, gpu_sum(n), (SELECT gpu_max(v) FROM t WHERE t.k = x.k) FROM (SELECT k, txt, gpu_max($f) n FROM s GROUP BY k, txt) x GROUP BY GROUPING SETS ((k), ()) ORDER BY k");
}
as_core("SELECT gpu_max(evicting(k)), gpu_count(*) FILTER (WHERE evicting(k) > 9) FROM names WHERE nm LIKE '%1%'");
as_core("SELECT evicting(k % 2), gpu_count(*) FROM names GROUP BY 1 HAVING evicting(3) > 3 ORDER BY 1");
as_core("SELECT txt, gpu_max(cancelled(k)) FROM s GROUP BY txt ORDER BY txt");
as_core("SELECT txt, gpu_sum(fetching(k)) FROM s GROUP BY txt ORDER BY txt");
as_core("SELECT gpu_max(k::dom), gpu_count(ROW(k, k)::pair) FROM s WHERE k < 2");
as_core("SELECT gpu_max(('(' || k || ',' || k || ')')::pair::int) FROM s");
as_core("SELECT nm, own(k), gpu_count(*) FROM names GROUP BY nm ORDER BY nm");
as_core("CREATE INDEX ON s (of_pair(ROW(k, 1))); SELECT gpu_count(*) FROM s WHERE of_pair(ROW(k, 1)) = 3");

unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC/, 'no crash');
done_testing;
