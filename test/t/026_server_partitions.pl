# Several tables below an Append, whose rows are cached on the device: partitions, inheritance children and UNION ALL. Each table has
# its own program. Rows of tables that are not cached, or that an index reads, arrive in batches and go to the same groups. The
# reference is the answer of the plain aggregates.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1, conf => <<CONF);
gpuagg.cache_memory = '128MB'
CONF

# The third partition has another order of columns, and dropped columns. The partitions share texts, whose codes differ by partition.
$node->safe_psql('postgres', <<SQL);
CREATE TABLE p (day int, k int, v int, n numeric(10, 2), f float8, txt text, seq int) PARTITION BY RANGE (day);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
CREATE TABLE p3 (gone int, txt text, f float8, seq int, v int, also int8, k int, n numeric(10, 2), day int);
ALTER TABLE p3 DROP gone, DROP also;
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (20) TO (30);
CREATE UNLOGGED TABLE p4 PARTITION OF p FOR VALUES FROM (30) TO (40);
CREATE TABLE p5 PARTITION OF p FOR VALUES FROM (40) TO (50) PARTITION BY LIST (k);
CREATE TABLE p5a PARTITION OF p5 FOR VALUES IN (0, 1, 2, 3, 4, 5);
CREATE TABLE p5b PARTITION OF p5 DEFAULT;
CREATE TABLE p6 PARTITION OF p FOR VALUES FROM (50) TO (60);
INSERT INTO p SELECT i % 50, i % 23, i * 7919 % 10007 - 5000, (i % 1000) / 8.0, (i % 300 - 100) / 4.0, 't' || (i::int8 * i + i % 50) % 31, i
FROM generate_series(1, 50000) i;
UPDATE p SET v = NULL, txt = NULL WHERE seq % 11 = 0;
CREATE INDEX ON p1 (seq);
CREATE TABLE parent (k int, v int, n numeric(10, 2));
CREATE TABLE child (x text) INHERITS (parent);
INSERT INTO parent SELECT i % 7, i, i / 4.0 FROM generate_series(1, 5000) i;
INSERT INTO child SELECT i % 9, -i, i / 3.0, 'x' || i FROM generate_series(1, 5000) i;
CREATE TABLE other (a numeric(12, 4), b int8, c smallint);
INSERT INTO other SELECT i / 16.0, i, i % 5 FROM generate_series(1, 5000) i;
CREATE TABLE many (k int, v int) PARTITION BY RANGE (k);
SELECT format('CREATE TABLE many%s PARTITION OF many FOR VALUES FROM (%s) TO (%s)', i, i * 10, i * 10 + 10) FROM generate_series(0, 79) i \\gexec
INSERT INTO many SELECT i % 790, i FROM generate_series(1, 20000) i;
VACUUM FREEZE ANALYZE;
SELECT gpuagg_cache_prewarm(c) FROM unnest('{p1,p2,p3,p5a,p5b,p6,parent,child,other}'::regclass[]) c;
SELECT gpuagg_cache_prewarm(('many' || i)::regclass) FROM generate_series(0, 79) i WHERE i <> 41;
SQL
ok($node->wait_until_ready, 'the server starts');

# Tests the query's answer, and with $feed the plan's line "Feed". The query runs twice, because the first execution uploads columns.
sub check_query
{
	my ($query, $feed) = @_;

	is_right_answer($node, $query, $query, times => 2);
	like($node->explain_analyze($query), qr/$feed/, "... $feed") if $feed;
	return;
}

# p4 cannot be cached because it is unlogged, and p6 has no rows
my $five = 'GPU memory \(\d+ of \d+ blocks, 5 of 7 tables\), heap pages of 7 tables';

check_query($_, $five) for (
	'SELECT gpu_count(*), gpu_sum(v), gpu_avg(f), gpu_max(seq) FROM p',
	'SELECT k, gpu_count(*), gpu_sum(v), gpu_sum(n), gpu_min(f), gpu_max(n) FROM p GROUP BY k ORDER BY k',
	'SELECT day, k, gpu_count(v), gpu_avg(n) FROM p GROUP BY day, k ORDER BY 1, 2',
	'SELECT txt, gpu_count(*), gpu_sum(v) FROM p GROUP BY txt ORDER BY txt',
	"SELECT k % 5, gpu_count(*), gpu_count(txt) FROM p WHERE txt <> 't7' AND v > -4000 GROUP BY 1 ORDER BY 1",
	'SELECT seq, gpu_sum(v) FROM p GROUP BY seq ORDER BY 2 DESC NULLS LAST, 1 LIMIT 20',
	'SELECT seq / 3, gpu_count(*) FROM p GROUP BY 1 HAVING gpu_sum(v) > 13000 ORDER BY 1',
	'SELECT k, gpu_sum(v) FILTER (WHERE f > 0) FROM p GROUP BY k ORDER BY k');
# ---- partitions are pruned, by the planner and by the executor ----
check_query('SELECT k, gpu_count(*), gpu_sum(v) FROM p WHERE day BETWEEN 5 AND 25 GROUP BY k ORDER BY k', '3 of 3 tables\)');
$node->safe_psql('postgres', 'ANALYZE p');
like($node->safe_psql('postgres', 'SET plan_cache_mode = force_generic_plan; PREPARE q(int) AS SELECT gpu_count(*), gpu_sum(v) FROM p WHERE day >= $1 AND day < 20; '
	  . 'EXECUTE q(10); EXPLAIN (ANALYZE, COSTS OFF) EXECUTE q(10)'), qr/^10000\|.*1 of 2 tables\)|^10000\|.*1 of 1 tables\)/s, 'a parameter prunes partitions');
check_query('SELECT g, s.* FROM generate_series(5, 50, 10) g, LATERAL (SELECT gpu_count(*), gpu_sum(v) FROM p WHERE day < g AND day > g - 8) s ORDER BY 1');
# ---- an index reads one of the tables ----
check_query('SELECT k, gpu_count(*), gpu_sum(v) FROM p WHERE seq < 200 OR day > 9 AND day < 20 GROUP BY k ORDER BY k');
{
	my $mixed = 'SELECT k, gpu_count(*), gpu_sum(v) FROM (SELECT k, v, seq FROM p1 WHERE seq = 51 UNION ALL SELECT k, v, seq FROM p2) s GROUP BY k ORDER BY k';

	like($node->explain_analyze($mixed), qr/Index Scan/, 'the plan has an index scan');
	check_query($mixed, '1 of 2 tables\), .*heap pages of 1 tables, tuples of 1 subplans');
}
# ---- ordered rows, of all tables ----
check_query('SELECT gpu_longest_run(v > 0 ORDER BY seq), gpu_max_subarray_sum(v ORDER BY seq) FROM p');
check_query('SELECT k, gpu_max_subarray_sum(v ORDER BY f, seq) FROM p WHERE day < 20 GROUP BY k ORDER BY k', '[12] of 2 tables\)');
check_query('SELECT k, gpu_max_subarray_sum(v ORDER BY f, seq) FROM p WHERE day > 15 GROUP BY k ORDER BY k');
# ---- inheritance, and UNION ALL of tables with other types ----
check_query('SELECT k, gpu_count(*), gpu_sum(v), gpu_sum(n) FROM parent GROUP BY k ORDER BY k', '2 of 2 tables\)');
check_query('SELECT k, gpu_count(*), gpu_sum(n) FROM (SELECT k, n FROM parent UNION ALL SELECT c, a FROM other) s GROUP BY k ORDER BY k');
check_query('SELECT k, gpu_count(*), gpu_sum(v) FROM (SELECT k, v::int8 AS v FROM parent UNION ALL SELECT c, b FROM other) s GROUP BY k ORDER BY k');
check_query('SELECT k, gpu_count(*), gpu_sum(v) FROM (SELECT k, v FROM parent UNION ALL SELECT 3, b::int + c FROM other WHERE b > 100) s GROUP BY k ORDER BY k');
check_query("SELECT t, gpu_count(*) FROM (SELECT txt AS t FROM p1 UNION ALL SELECT x FROM child UNION ALL SELECT 't1' FROM other) s GROUP BY t ORDER BY gpu_count(*) DESC, t LIMIT 30");
# ---- many tables: the expressions of most tables are not kept, and one table is not cached ----
check_query('SELECT k % 10, gpu_count(*), gpu_sum(v) FROM many GROUP BY 1 ORDER BY 1', '(78|79|80) of 80 tables\)');
check_query('SELECT k, gpu_sum(v) FROM many GROUP BY k ORDER BY k', '(78|79|80) of 80 tables\)');

# ---- the planner prefers one process if the device has copies ----
{
	my $settings = "SET gpuagg.engine = 'auto'; SET max_parallel_workers_per_gather = 4; SET min_parallel_table_scan_size = 0; "
	  . 'SET parallel_setup_cost = 10; SET parallel_tuple_cost = 0; SET gpuagg.gpu_startup_cost = 1; ';
	my $query = 'SELECT k, gpu_count(*), gpu_sum(v), gpu_sum(n) FROM p WHERE day NOT BETWEEN 30 AND 39 GROUP BY k ORDER BY k';

	unlike($node->safe_psql('postgres', "$settings EXPLAIN $query"), qr/Gather/, 'with copies on the device the plan is not parallel');
	like($node->safe_psql('postgres', "$settings SET gpuagg.cache = off; EXPLAIN $query"), qr/Gather/, '... and without the cache it is');
}

# ---- changed rows of several tables arrive in batches ----
$node->safe_psql('postgres', 'UPDATE p SET v = v + 1, k = k % 5 WHERE seq % 5000 = 7; DELETE FROM many WHERE v % 3000 = 5');
check_query($_, 'GPU memory.*column cache|GPU memory') for (
	'SELECT k, gpu_count(*), gpu_sum(v), gpu_sum(n) FROM p GROUP BY k ORDER BY k',
	'SELECT txt, gpu_count(*), gpu_sum(v) FROM p GROUP BY txt ORDER BY txt',
	'SELECT k, gpu_sum(v) FROM many GROUP BY k ORDER BY k');
check_query('SELECT gpu_longest_run(v > 0 ORDER BY seq), gpu_max_subarray_sum(v ORDER BY seq) FROM p');
# an error is raised only if a row that passes the conditions causes it
{
	my ($out, $err);

	(undef, $out, $err) = $node->psql('postgres', 'SELECT gpu_sum(1 / (k - 3)) FROM p');
	like($err, qr/division by zero/, 'a division by zero in one table is an error');
}
check_query('SELECT gpu_sum(1 / (k - 3)) FROM p WHERE k <> 3');
# ---- statistics ----
$node->safe_psql('postgres', 'SELECT pg_stat_reset(); SELECT gpu_count(v) FROM many; SELECT pg_sleep(0)');
$node->poll_query_until('postgres', "SELECT sum(seq_scan) = 80 FROM pg_stat_user_tables WHERE relname ~ 'many[0-9]'")
  or fail('pg_stat_user_tables counts one scan of each table');

done_testing();
