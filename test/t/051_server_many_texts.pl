# Text columns of many values that are cached on the device: their codes are keys of groups, and only groups that leave have their
# values fetched. The reference is core's answer. Also: rows that change, dictionaries that have no memory, and that are lost.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Resident;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1, conf => "work_mem = '64MB'\n");
my $rows = 140000;

# NULLs, empty values, values that are compressed and values of 3 kB that are not; $rows distinct values all in all
$node->safe_psql('postgres', <<SQL);
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE w (id int, k int, v int, s text, vc varchar(40), u uuid, b bytea, few text, ch char(12), cb text COLLATE blind);
ALTER TABLE w ALTER s SET STORAGE MAIN, ALTER vc SET STORAGE MAIN, ALTER b SET STORAGE MAIN, ALTER few SET STORAGE MAIN, ALTER ch SET STORAGE MAIN, ALTER cb SET STORAGE MAIN;
INSERT INTO w SELECT i, i % 7, i % 1000, CASE WHEN i % 50 = 0 THEN NULL WHEN i % 71 = 0 THEN '' WHEN i % 5000 = 3 THEN repeat(md5(i::text), 200)
	WHEN i % 5000 = 4 THEN (SELECT string_agg(md5((i * 100 + j)::text), '') FROM generate_series(1, 90) j) ELSE 'value ' || i / 2 END,
	md5((i % 100000)::text), md5(i::text)::uuid, decode(md5((i / 3)::text), 'hex'), 'few' || i % 9, 'c' || i % 80000, 'C' || i % 500
FROM generate_series(1, $rows) i;
VACUUM FREEZE ANALYZE w;
SQL
$Resident::node = $node;
ok($node->wait_until_ready, 'the server starts');
$node->safe_psql('postgres', 'SELECT gpuagg_cache_prewarm(\'w\')');

# Compares all groups of a query by a checksum. The columns of `keys` are the keys.
sub all_groups
{
	my ($keys, $rest, $from) = @_;
	my @keys = split /, /, $keys;
	my $text = join(" || ' ' || ", map { "coalesce($_\::text, 'null')" } @keys);

	return "SELECT count(*), sum(n), sum(hashtextextended($text || ' ' || n || ' ' || x, 0)) FROM (SELECT $keys, gpu_count(*) AS n, $rest AS x FROM $from GROUP BY $keys) g";
}

# ---- keys ----
foreach my $keys ('s', 'vc', 'u', 'b', 's, k', 's, few', 'k, vc, few', 's, vc, few', 'vc, v, k')
{
	my $plan = is_resident(all_groups($keys, 'gpu_sum(v)', 'w'));
	like($plan, qr/Resident Rows: $rows\n/, '... all of them');
}
is_resident(all_groups('s, vc, u, b', 'gpu_sum(v)', 'w WHERE v < 100'));
is_resident(all_groups('s', 'gpu_max(v)', 'w WHERE k = 3'));
is_resident(all_groups('s', 'gpu_max(v)', "w WHERE few = 'few3'"));
is_resident('SELECT s, gpu_count(*), gpu_sum(v) FROM w GROUP BY s ORDER BY 2 DESC, 3 DESC, s LIMIT 5');
is_resident('SELECT vc, gpu_sum(v) FROM w GROUP BY vc HAVING gpu_sum(v) > 1990 ORDER BY 2 DESC, 1');
is_resident('SELECT s, gpu_count(*) FROM w GROUP BY s HAVING gpu_count(*) > 2 ORDER BY s');
is_resident('SELECT vc::text, gpu_count(*) FROM w WHERE id < 30000 GROUP BY vc::text ORDER BY 1 LIMIT 10');
is_resident('SELECT s, gpu_count(*) FROM w WHERE s IS NULL GROUP BY s');
# equality is not that of bytes: values are looked up
is_resident('SELECT ch, gpu_count(*) FROM w GROUP BY ch ORDER BY ch LIMIT 5');
is_resident('SELECT cb, gpu_count(*) FROM w GROUP BY cb ORDER BY cb LIMIT 5');

# ---- conditions and arguments: tables of values ----
is_resident("SELECT k, gpu_count(*), gpu_sum(length(vc)) FROM w WHERE vc LIKE '%7' GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM w WHERE s = 'value 77' GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM w WHERE s LIKE 'value 1%' AND u > md5('x')::uuid GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*) FROM w WHERE vc < '7' AND id BETWEEN 20000 AND 20100 GROUP BY k ORDER BY k");

# ---- results of expressions are kept for other sessions, and extended for new values ----
my $texts = "SELECT k, gpu_count(*), gpu_sum(length(s)) FROM w WHERE vc NOT LIKE '%77%' GROUP BY k ORDER BY k";

# the number of kept results, how often they were found, and for how many values they are
sub kept { return split /\|/, $node->safe_psql('postgres', "SELECT count(*), coalesce(sum(hits), 0), coalesce(sum(rows), 0) FROM gpuagg_cache WHERE relation = 'w'::regclass AND tier = 'lookup'") }

is_resident($texts);
my @kept = kept();
cmp_ok($kept[0], '>=', 2, 'results of expressions are kept');
is_resident($texts);
my @found = kept();
is($found[0], $kept[0], '... once each');
cmp_ok($found[1], '>=', $kept[1] + 4, '... and are found by other sessions');
is_core_answer("SET extra_float_digits = $_; SELECT k, gpu_count(*) FROM w WHERE (length(s) / 7.0::float8)::text LIKE '%7' GROUP BY k ORDER BY k", "... not with another setting ($_)") for 0, 3, 0, 3;
is_core_answer("SELECT k, gpu_count(*) FROM w WHERE $_ GROUP BY k ORDER BY k", "... and not those of $_") foreach "vc LIKE '%77%'", "vc NOT LIKE '%78%'", "vc LIKE '%1%' COLLATE \"C\"", "vc < 'a' COLLATE \"C\"",
	"vc < 'a' COLLATE \"en-x-icu\"", "vc < 'a'", "length(vc) = 32", "octet_length(vc) = 32", "vc::text = s", "CASE WHEN vc LIKE 'a%' THEN 1 ELSE 2 END = 1";
# the planner counts the rows as cached, however many values the condition is computed for
like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; SET gpuagg.gpu_startup_cost = 40; EXPLAIN (VERBOSE) SELECT gpu_count(*) FROM w WHERE vc LIKE '%7'"), qr/Engine: cuda/, 'the engine is chosen by the rows that are cached');

# ---- the least and the greatest texts; distinct texts ----
is_resident("SELECT k, gpu_count(*), min(s), max(s), min(vc), max(few), max(s) FILTER (WHERE v < 7) FROM w GROUP BY k ORDER BY k");
is_resident("SELECT gpu_count(*), min(s), max(s), min(vc) FILTER (WHERE id < 0) FROM w WHERE vc LIKE '%77%'");
is_resident("SELECT few, min(s), gpu_count(DISTINCT s), gpu_count(DISTINCT v) FROM w WHERE s <> '' GROUP BY few ORDER BY few");
is_resident("SELECT k, gpu_count(*), min(s), min(s COLLATE \"en-x-icu\"), max(s COLLATE \"C\"), max(s COLLATE \"en-x-icu\") FROM w GROUP BY k ORDER BY k");
is_resident("SELECT s, gpu_count(*) AS n, min(vc) FROM w GROUP BY s ORDER BY n DESC, s LIMIT 5");
is_core_answer("SELECT gpu_count(*), min(s), max(vc) FROM w WHERE id < 0");
is_resident("SELECT gpu_count(DISTINCT $_), gpu_count(*) FROM w") foreach qw(s vc u b few ch cb);
is_resident("SELECT k, gpu_count(DISTINCT s), gpu_count(DISTINCT vc) FILTER (WHERE v < 100), gpu_count(DISTINCT left(vc, 2)) FROM w GROUP BY k ORDER BY k");
is_core_answer("SELECT k, gpu_count(*), min($_), max($_) FROM w GROUP BY k ORDER BY k", "extremes of $_") foreach 'lower(s)', 'left(vc, 3)', 'ch', 'b', 's || vc';
is_core_answer("SELECT k, gpu_count(*), gpu_count(DISTINCT $_) FROM w GROUP BY k ORDER BY k", "distinct values of $_") foreach "s || vc", "(v / 8.0)::numeric", "ARRAY[k, v]", "nullif(s, '')";
is_core_answer("SELECT k, min(s), min(DISTINCT s), gpu_count(*) FROM w GROUP BY GROUPING SETS ((k), (), (k, few)) ORDER BY 1, 2, 3, 4");
my $extremes = "SELECT k, few, gpu_count(*), min(s), max(s), max(vc) FROM w GROUP BY k, few ORDER BY k, few";
my $distinct = "SELECT k, gpu_count(DISTINCT s), gpu_count(DISTINCT vc) FROM w GROUP BY k ORDER BY k";

# a block has 120 rows, so the fourth range of 256 blocks has 600
$node->safe_psql('postgres', "CREATE TABLE tail (id int, t text); INSERT INTO tail SELECT i, md5(i::text) FROM generate_series(1, 3 * 256 * 120 + 600) i");
$node->safe_psql('postgres', 'VACUUM FREEZE ANALYZE tail');
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('tail')");
is_resident("SELECT id % 5, gpu_count(*) FROM tail WHERE t < '7' GROUP BY 1 ORDER BY 1");
# with a changed block, each range is compared with the condition
$node->safe_psql('postgres', 'UPDATE tail SET t = t WHERE id = 1');
is_resident("SELECT id % 5, gpu_count(*) FROM tail WHERE t < '8' AND id > 92700 GROUP BY 1 ORDER BY 1", 'a column has far more values than the query reads rows');
is_resident("SELECT id % 5, gpu_count(*) FROM tail WHERE t < '7' AND id > 92700 GROUP BY 1 ORDER BY 1");

# ---- cursors, rescans, parallel plans ----
is(our_answer('BEGIN; DECLARE c CURSOR FOR SELECT s, gpu_count(*) FROM w GROUP BY s; MOVE 50000 IN c; SELECT count(*) FROM (SELECT vc, gpu_count(*) FROM w GROUP BY vc) g; MOVE ALL IN c; COMMIT'),
	'100000', 'two queries at a time');
is_core_answer('SELECT x, (SELECT gpu_count(*) FROM w WHERE w.k = x AND few = \'few1\' GROUP BY s ORDER BY 1 DESC LIMIT 1) FROM generate_series(0, 8) x ORDER BY x');
is(our_answer("SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; " . all_groups('s, few', 'gpu_sum(v)', 'w')),
	core_answer(all_groups('s, few', 'gpu_sum(v)', 'w')), 'a parallel plan');

# ---- rows that change: they come as batches, and groups of both meet by value ----
my $groups = all_groups('s', 'gpu_sum(v)', 'w');
my $two = all_groups('vc, few', 'gpu_sum(v)', 'w');
my $other = $node->background_psql('postgres');
@kept = kept();
foreach my $change ("UPDATE w SET s = 'new ' || id WHERE id % 40000 = 11", "UPDATE w SET s = NULL, vc = 'value 1' WHERE id BETWEEN 100 AND 200",
	"INSERT INTO w (id, k, v, s, vc, few) SELECT i, 1, i, CASE WHEN i % 2 = 0 THEN 'value ' || i ELSE 'added ' || i END, md5(i::text), 'few1' FROM generate_series(1, 3000) i",
	"DELETE FROM w WHERE id % 9999 = 1")
{
	$node->safe_psql('postgres', $change);
	my $expected = core_answer($groups);
	like(plan_and_errors($groups), qr/Rows on CPU: [1-9].*Resident Rows: [1-9]/s, "some rows are on the CPU after $change");
	is(our_answer($groups), $expected, '... and groups are right');
	is_core_answer($two, '... and with two keys');
	is_core_answer($_) foreach $extremes, $distinct, $texts;
	is($other->query_safe($groups), $expected, '... in another session');
	$node->safe_psql('postgres', 'VACUUM FREEZE w');
	$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('w')");
	like(plan_and_errors($groups), qr/Resident Rows: [1-9]/, '... and all are on the device after VACUUM');
	is_resident($_) foreach $extremes, $distinct, $texts;
	is($_, $expected, '... and groups are right') foreach our_answer($groups), $other->query_safe($groups);
}

@found = kept();
is($found[0], $kept[0], 'results are kept once');
cmp_ok($found[2], '>', $kept[2], '... and have the new values');

# ---- equal keys that look different, in cached rows and in rows that come as batches: the first row's look is that of its group ----
$node->safe_psql('postgres', <<SQL);
CREATE TABLE y AS SELECT i AS id, 'value ' || i AS s, 1.0 AS num, 0::float8 AS f FROM generate_series(1, 70000) i;
VACUUM FREEZE ANALYZE y;
SELECT gpuagg_cache_prewarm('y');
SQL
is_resident(all_groups('s, num', 'gpu_sum(id)', 'y'));
$node->safe_psql('postgres', "INSERT INTO y SELECT i, 'value ' || i, 1.00, '-0' FROM generate_series(1, 10) i");
is_core_answer(all_groups("s, $_", 'gpu_sum(id)', 'y')) for qw(num f);

# ---- values out of line are not cached on the device ----
$node->safe_psql('postgres', <<SQL);
CREATE TABLE o (k int, s text);
ALTER TABLE o ALTER s SET STORAGE EXTERNAL;
INSERT INTO o SELECT i % 5, CASE WHEN i = 777 THEN repeat('x', 9000) ELSE md5(i::text) END FROM generate_series(1, 5000) i;
VACUUM FREEZE ANALYZE o;
SELECT gpuagg_cache_prewarm('o');
SQL
is_core_answer(all_groups('s', 'gpu_sum(k)', 'o')) for 1 .. 2;

# ---- entries of a range that need several messages: few blocks with 36 MB of values, which sessions do not copy ----
$node->safe_psql('postgres', <<SQL);
CREATE TABLE p (k int, s text);
ALTER TABLE p ALTER s SET STORAGE MAIN;
INSERT INTO p SELECT i % 5, i || repeat('abcdefgh', 500) FROM generate_series(1, 9000) i;
VACUUM FREEZE ANALYZE p;
SELECT gpuagg_cache_prewarm('p');
SQL
is_resident(all_groups('s', 'gpu_sum(k)', 'p'));
is_resident("SELECT k, gpu_sum(length(s)) FROM p GROUP BY k ORDER BY k");
is_resident("SELECT k, gpu_count(*), min(s), max(s) FROM p WHERE s LIKE '%1abc%' GROUP BY k ORDER BY k");

# ---- values of keys are fetched in pieces that the memory has room for ----
my ($peak, $sum) = split /\|/, $node->safe_psql('postgres', <<SQL);
SET work_mem = '1MB';
CREATE FUNCTION pg_temp.largest(out peak bigint, out texts bigint) LANGUAGE plpgsql AS \$\$
DECLARE r record;
BEGIN
	peak := 0;
	texts := 0;
	FOR r IN SELECT s FROM p GROUP BY s HAVING gpu_count(*) > 0 LOOP
		texts := texts + length(r.s);
		CONTINUE WHEN texts % 10 > 0;
		peak := greatest(peak, (SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'GPU groups'));
	END LOOP;
END \$\$;
SELECT * FROM pg_temp.largest();
SQL
is($sum, $node->safe_psql('postgres', 'SET gpuagg.enabled = off; SELECT sum(length(s)) FROM p'), 'all values come');
cmp_ok($peak, '<', 12 << 20, '... and the memory of 36 MB of them is bounded');
cmp_ok($peak, '>', 1 << 20, '... and is measured');

# ---- little memory on the device ----
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.device_cache_memory = '2MB'; SELECT pg_reload_conf()");
is_core_answer($_) for $groups, $two, $groups;
$node->safe_psql('postgres', "ALTER SYSTEM RESET gpuagg.device_cache_memory; SELECT pg_reload_conf()");

# ---- the server is lost ----
my $killed = $node->kill_server;
is($other->query_safe("SET gpuagg.engine = 'auto'; $groups"), core_answer($groups), 'the server is lost: the answer is right');
ok($node->wait_for_another_server($killed), 'another server starts');
is($other->query_safe($groups), core_answer($groups), '... and the answer is right') for 1 .. 2;
$other->quit;
done_testing();
