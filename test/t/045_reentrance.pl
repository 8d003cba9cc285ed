# A query whose functions run queries with the extension's aggregates, in each place of the outer query. The inner query uses, replaces
# or evicts what the outer one keeps in this process (dictionaries, sessions at the GPU server, memos), fails, or is cancelled. Both
# engines must give core's answer. Freed memory is overwritten (MALLOC_PERTURB_), so that a use of it shows.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Resident;
use Test::More;

# more than the number of dictionaries that a process keeps (src/engine_cuda/dictionaries.c)
my $parts = 300;

$ENV{MALLOC_PERTURB_} = 204;

my $node = GpuaggNode->start_new('main', cached => 1);

$node->safe_psql('postgres', <<SQL);
CREATE TABLE part (k int, txt text) PARTITION BY LIST (k);
SELECT format('CREATE TABLE part_%s PARTITION OF part FOR VALUES IN (%s)', i, i) FROM generate_series(1, $parts) i \\gexec
INSERT INTO part SELECT i, 'value ' || j FROM generate_series(1, $parts) i, generate_series(1, 8) j;
SELECT format('CREATE VIEW v_%s AS SELECT gpu_count(*) AS n FROM part WHERE txt LIKE %L', i, '%' || i % 8 || '%') FROM generate_series(1, 10) i \\gexec

CREATE TABLE t (id int, k int, v int, txt text, nm text);
INSERT INTO t SELECT i, i % 10, i % 1000, 'text ' || i % 12, 'v_' || i % 10 + 1 FROM generate_series(1, 300) i;
CREATE TABLE s (k int, txt text);
CREATE TABLE names (k int, nm text);
INSERT INTO names SELECT i, 'v_' || i % 10 + 1 FROM unnest(ARRAY[1, 3, 9, 10]) i;
INSERT INTO s SELECT i % 10, 'text ' || i % 6 FROM generate_series(1, 12) i;
VACUUM FREEZE ANALYZE;
SELECT gpuagg_cache_prewarm(relid) FROM pg_partition_tree('part') WHERE isleaf;
SELECT gpuagg_cache_prewarm('t'), gpuagg_cache_prewarm('s'), gpuagg_cache_prewarm('names');

-- reads the same table and columns
CREATE FUNCTION same(x int) RETURNS bigint LANGUAGE plpgsql STABLE AS
\$\$ BEGIN RETURN x + (SELECT gpu_count(*) FROM s WHERE txt LIKE '%' || x % 3 || '%') + (SELECT gpu_count(*) FROM t WHERE txt LIKE '%1%'); END \$\$;
-- a function in SQL
CREATE FUNCTION by_sql(x int) RETURNS bigint LANGUAGE sql STABLE AS
\$\$ SELECT x + gpu_sum(v) FROM t WHERE txt > 'text 3' GROUP BY k = x HAVING k = x \$\$;
-- replaces all dictionaries
CREATE FUNCTION evicting(x int) RETURNS bigint LANGUAGE plpgsql STABLE AS
\$\$ BEGIN RETURN x + (SELECT gpu_count(*) FROM part WHERE txt LIKE '%' || x % 8 || '%'); END \$\$;
-- an error that is caught
CREATE FUNCTION failing(x int) RETURNS bigint LANGUAGE plpgsql STABLE AS
\$\$ BEGIN RETURN (SELECT gpu_sum(1 / (v - x)) FROM t WHERE txt LIKE '%1%'); EXCEPTION WHEN division_by_zero THEN RETURN -x; END \$\$;
-- a cancel that is caught
CREATE FUNCTION cancelled(x int) RETURNS bigint LANGUAGE plpgsql AS
\$\$ BEGIN PERFORM pg_cancel_backend(pg_backend_pid()); PERFORM gpu_count(*) FROM t WHERE txt LIKE '%1%'; RETURN 0; EXCEPTION WHEN query_canceled THEN RETURN x; END \$\$;
-- other settings during the query
CREATE FUNCTION setting(x int) RETURNS bigint LANGUAGE plpgsql AS
\$\$ DECLARE n bigint; old text := current_setting('gpuagg.engine'); BEGIN PERFORM set_config('gpuagg.engine', 'cpu', true);
PERFORM set_config('gpuagg.batch_rows', '64', true); n := (SELECT gpu_sum(v) FROM t WHERE txt LIKE '%' || x % 10 || '%');
PERFORM set_config('gpuagg.engine', old, true); PERFORM set_config('gpuagg.batch_rows', '4096', true); RETURN n; END \$\$;
-- a cursor that continues with each call
CREATE FUNCTION fetching(x int) RETURNS bigint LANGUAGE plpgsql AS
\$\$ DECLARE c refcursor := 'kept'; n bigint; BEGIN
IF NOT EXISTS (SELECT FROM pg_cursors WHERE name = 'kept') THEN OPEN c FOR SELECT gpu_sum(v) FROM t GROUP BY id ORDER BY id; END IF;
FETCH c INTO n; RETURN coalesce(n, 0); END \$\$;
-- three levels of queries
CREATE FUNCTION deep(x int, level int DEFAULT 2) RETURNS bigint LANGUAGE plpgsql STABLE AS
\$\$ BEGIN IF level = 0 THEN RETURN x; END IF; RETURN (SELECT gpu_max(deep(k, level - 1)) FROM s WHERE txt LIKE '%' || x % 3) + x; END \$\$;
CREATE FUNCTION explaining(x int) RETURNS bigint LANGUAGE plpgsql AS
\$\$ DECLARE l text; n bigint := 0; BEGIN FOR l IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) SELECT gpu_count(*) FROM s WHERE txt LIKE ''%1%''' LOOP n := 1; END LOOP; RETURN n + x; END \$\$;
-- queries in a domain's check, an aggregate's functions and a cast
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

# Tests that both engines give core's answer, or its error.
sub check_both_engines
{
	my ($query) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	# the custom scan does not support volatile functions in every place
	my $require = $query =~ /\b(setting|explaining|cancelled|fetching|dom|checked)\b/ ? 'allow' : 'require';

	# before the others, so that a crash is not taken for equal answers
	my $expected = core_answer("BEGIN; $query; COMMIT");

	foreach my $engine ('cuda', 'cpu')
	{
		is(our_answer("BEGIN; SET gpuagg.engine = $engine; SET gpuagg.require = $require; $query; COMMIT"), $expected, "$engine: $query");
	}
	return;
}

check_both_engines("SELECT gpu_count(*) FROM names WHERE length(table_to_xml(nm::regclass, false, false, '')::text) > 5");
{
	my $outer = "SELECT gpu_count(*) FROM names WHERE length(table_to_xml(nm::regclass, false, false, '')::text) > 5";
	# a query may reveal any row, also one that its caller must not see
	like(plan_and_errors($outer), qr/Resident Rows: none: a function might reveal values/, 'functions that run queries are not called for values of a dictionary');
	like(plan_and_errors('SELECT n FROM v_1'), qr/Resident Rows: 2400/, '... but these queries use more dictionaries than a process keeps');
}
check_both_engines("SELECT query_to_xml('SELECT gpu_count(*) AS n FROM part WHERE txt LIKE ''%' || length(nm) || '%''', false, false, '')::text, gpu_count(*) FROM names GROUP BY 1 ORDER BY 1");
like(plan_and_errors("SELECT gpu_count(*) FROM t WHERE txt LIKE '%1%'"), qr/Resident Rows: [1-9]/, 'rows come from the device');

my @few = map { "$_(k)" } qw(same by_sql failing setting deep explaining);
foreach my $f (@few)
{
	check_both_engines("SELECT $f, k FROM (SELECT k, gpu_sum(v) FROM s JOIN t USING (k) GROUP BY k) x ORDER BY k");
	check_both_engines("SELECT $f AS key, gpu_count(*) FROM s GROUP BY 1 ORDER BY 1");
	check_both_engines("SELECT txt, gpu_sum($f), gpu_count(*) FILTER (WHERE $f > 20) FROM s GROUP BY txt ORDER BY txt");
	check_both_engines("SELECT txt, gpu_count(*) FROM s WHERE txt LIKE '%1%' AND $f > 20 AND k > 2 GROUP BY txt ORDER BY txt");
	next if $f !~ /^(same|setting|deep)/;
	check_both_engines("SELECT k, gpu_count(*) FROM s GROUP BY k HAVING $f > 20 ORDER BY k");
	check_both_engines("SELECT txt, array_agg(k ORDER BY $f, k), gpu_count(DISTINCT $f) FROM s GROUP BY txt ORDER BY txt");
	check_both_engines("SELECT gpu_count(*) FROM s JOIN generate_series(1, 2) g ON ($f + g + s.k) % 2 = 0");
	check_both_engines("SELECT k, l.n FROM generate_series(1, 3) k, LATERAL (SELECT gpu_count(*) n FROM s WHERE s.k < $f) l ORDER BY k");
	check_both_engines("SELECT k, gpu_sum(n), (SELECT gpu_max(v) FROM t WHERE t.k = x.k) FROM (SELECT k, txt, gpu_max($f) n FROM s GROUP BY k, txt) x GROUP BY GROUPING SETS ((k), ()) ORDER BY k");
}
check_both_engines("SELECT gpu_max(evicting(k)), gpu_count(*) FILTER (WHERE evicting(k) > 9) FROM names WHERE nm LIKE '%1%'");
check_both_engines("SELECT evicting(k % 2), gpu_count(*) FROM names GROUP BY 1 HAVING evicting(3) > 3 ORDER BY 1");
check_both_engines("SELECT txt, gpu_max(cancelled(k)) FROM s GROUP BY txt ORDER BY txt");
check_both_engines("SELECT txt, gpu_sum(fetching(k)) FROM s GROUP BY txt ORDER BY txt");
check_both_engines("SELECT gpu_max(k::dom), gpu_count(ROW(k, k)::pair) FROM s WHERE k < 2");
check_both_engines("SELECT gpu_max(('(' || k || ',' || k || ')')::pair::int) FROM s");
check_both_engines("SELECT nm, own(k), gpu_count(*) FROM names GROUP BY nm ORDER BY nm");
check_both_engines("CREATE INDEX ON s (of_pair(ROW(k, 1))); SELECT gpu_count(*) FROM s WHERE of_pair(ROW(k, 1)) = 3");

unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC/, 'the log shows no crash');
done_testing;
