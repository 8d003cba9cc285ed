# Columns that are cached on the device as dictionary codes, of type text and others: keys, conditions and expressions. The reference
# is core's answer. Also: dictionaries that grow, and that are lost with the server.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Resident;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1, conf => <<CONF);
extra_float_digits = -3
CONF
my $rows = 60000;

$node->safe_psql('postgres', <<SQL);
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE t (k int, v int, txt text, vc varchar(20), ch char(5), nm name, u uuid, by bytea, j jsonb, free numeric, fixed numeric(10,2), f8 float8,
	d date, i8 bigint, num text, long text, cb text COLLATE blind, many text, wide1 bigint, wide2 bigint, n1 numeric(15,2), n2 numeric(15,2));
INSERT INTO t SELECT i % 100, i, CASE WHEN i % 17 = 0 THEN NULL ELSE 't' || i % 10 END, 'value ' || i % 300, chr(65 + i % 26) || CASE i % 3 WHEN 1 THEN 'x' ELSE '' END,
	('name' || i % 7)::name, md5((i % 50)::text)::uuid, decode(md5((i % 20)::text), 'hex'), jsonb_build_object('a', i % 5),
	(i % 40) * 0.5, (i % 1000) / 100.0, (i % 64) / 4.0, date '2001-01-01' + i % 400, i % 90, CASE WHEN i % 9 = 0 THEN 'none' ELSE (i % 30)::text END,
	repeat(md5((i % 6)::text), 200), 'c' || i % 9, md5(i::text), i % 3, i % 4, (i % 9999) * 1.01, (i % 11) * 0.01
FROM generate_series(1, $rows) i;
VACUUM FREEZE ANALYZE t;
SQL

$Resident::node = $node;
ok($node->wait_until_ready, 'the server starts');
$node->safe_psql('postgres', 'SELECT gpuagg_cache_prewarm(\'t\')');

# ---- keys ----
foreach my $key (qw(txt vc ch nm u by j free fixed f8 num cb long))
{
	is_resident("SELECT $key, gpu_count(*), gpu_sum(v), gpu_avg(fixed) FROM t GROUP BY $key ORDER BY $key");
}
is_resident("SELECT txt, ch, k % 3, gpu_count(*), gpu_max(v) FROM t GROUP BY 1, 2, 3 ORDER BY 1, 2, 3");
is_resident("SELECT txt, vc, nm, u, gpu_count(*) FROM t WHERE v < 5000 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4");
is_resident("SELECT upper(txt), length(vc), gpu_count(*) FROM t GROUP BY 1, 2 ORDER BY 1, 2");
is_resident("SELECT substr(vc, 1, 7), gpu_sum(v) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT CASE txt WHEN 't1' THEN 'one' WHEN 't2' THEN 'two' END, gpu_sum(v) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT CASE WHEN txt IN ('t1', 't2') THEN k % 4 ELSE -1 END, gpu_sum(v) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT coalesce(txt, 'none'), gpu_count(txt), gpu_count(*) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT j ->> 'a', gpu_sum((j ->> 'a')::int) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT to_char(d, 'YYYY-MM'), gpu_sum(v) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT wide1, wide2, i8, gpu_count(*) FROM t GROUP BY 1, 2, 3 ORDER BY 1, 2, 3");
is_resident("SELECT many, gpu_count(*) FROM t GROUP BY many ORDER BY many LIMIT 10");
is_resident("SELECT many || '', gpu_count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT 10", 'no memory is left for the dictionary of the keys');
is_resident("SELECT many::varchar(3), gpu_count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT 10");
is_resident("SELECT txt || k, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1", 'a key is computed from several columns');

# ---- keys that are choices: the column's codes and constants, or codes of the query's own dictionary ----
foreach my $key ("CASE WHEN k = 1 THEN vc ELSE '' END", "CASE WHEN k = 1 THEN vc WHEN k < 50 THEN 'value 3' END", "CASE WHEN k < 50 THEN many ELSE 'x' END", "CASE WHEN k < 50 THEN txt ELSE num END",
	'coalesce(txt, num)', "coalesce(CASE WHEN k > 10 THEN txt END, 'none')", "CASE WHEN txt = 't1' THEN vc WHEN num = 'none' THEN upper(txt) ELSE 'VALUE' END", "CASE WHEN k < 9 THEN u ELSE md5('3')::uuid END",
	"CASE k WHEN 1 THEN txt WHEN 2 THEN 't3' ELSE NULL END", "CASE WHEN k < 3 THEN '1' WHEN k < 4 THEN '2' WHEN k < 5 THEN '3' WHEN k < 6 THEN '4' WHEN k < 7 THEN '5' WHEN k < 8 THEN '6' WHEN k < 9 THEN '7' WHEN k < 10 THEN '8' WHEN k < 11 THEN '9' ELSE num END",
	"CASE WHEN v % 3 = 0 THEN coalesce(txt, 't9') ELSE coalesce(NULL, txt) END")
{
	is_resident("SELECT $key, gpu_count(*), gpu_sum(v) FROM t GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 40");
	is_resident("SELECT k % 3, gpu_count(*), gpu_count(DISTINCT $key) FROM t GROUP BY 1 ORDER BY 1");
}
is_resident("SELECT CASE WHEN k % 3 = 0 THEN txt ELSE 'a' END, CASE WHEN k % 7 < 3 THEN many ELSE 'b' END, gpu_count(*) FROM t GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 9");
is_resident("SELECT CASE WHEN k = 1 THEN ch ELSE 'A' END, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1", 'equal keys print differently');
is_resident("SELECT CASE WHEN k = 1 THEN cb ELSE 'C3' END, gpu_count(*) FROM t GROUP BY 1 ORDER BY 1", '.*');

# ---- sketches of texts and other values by their hashes ----
foreach my $value ('txt', 'many', 'u', 'ch', 'nm', 'lower(vc)', 'cb', 'by', 'j')
{
	my $query = "SELECT k % 3, gpu_approx_count_distinct($value), gpu_approx_count_distinct($value) FILTER (WHERE v % 7 > 2) FROM t GROUP BY 1 ORDER BY 1";

	is(our_answer($query), our_answer("SET gpuagg.engine = 'cpu'; $query"), $query);
	like(plan_and_errors($query), qr/Resident Rows: [1-9]/, '... from the device');
}

# ---- conditions and arguments ----
foreach my $condition ("txt = 't3'", "txt <> 't3'", "txt IN ('t1', 't2', 'x')", "txt NOT IN ('t1', NULL)", "txt LIKE 't%'", "vc LIKE '%9'", "txt IS NULL", "txt IS NOT NULL",
	"txt < 't5' COLLATE \"C\"", "txt > 't5'", "ch = 'A'", "ch = 'Bx   '", "u = md5('7')::uuid", "by > '\\x80'", "j \@> '{\"a\": 3}'", "vc ~ '^value 1'", "lower(txt) = 't1'",
	"cb = 'C3'", "txt = 't1' AND v > 100 OR ch = 'C'", "NOT (txt = 't1')", "num ~ '^[0-9]+\$' AND num::int > 10", "position('9' in vc) > 0", "txt BETWEEN 't2' AND 't4'",
	"nm = 'name3'", "long LIKE 'c%'", "txt = ANY (ARRAY['t1', 't9'])", "txt IS DISTINCT FROM 't1'", "free > 3", "fixed::text LIKE '%5'")
{
	is_resident("SELECT k % 10, gpu_count(*), gpu_sum(v) FROM t WHERE $condition GROUP BY 1 ORDER BY 1", $condition =~ /fixed::text|free/ ? '.*' : undef);
}
is_resident("SELECT k % 10, gpu_count(*) FROM t WHERE txt = (SELECT 't4') GROUP BY 1", 'a function is not supported on the GPU');
is_resident("SELECT txt, gpu_sum(v) FILTER (WHERE vc LIKE '%7'), gpu_count(*) FILTER (WHERE ch = 'A') FROM t GROUP BY txt ORDER BY txt");
is_resident("SELECT k % 10, gpu_sum(length(vc)), gpu_max(CASE WHEN ch = 'A' THEN v END), gpu_sum(CASE num WHEN 'none' THEN 0 ELSE num::int END) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT k % 10, gpu_count(txt), gpu_count(long), gpu_count(free), gpu_count(cb) FROM t GROUP BY 1 ORDER BY 1");
is_resident("SELECT k % 10, gpu_bool_and(txt > 't0'), gpu_bool_or(ch = 'Z'), gpu_every(vc <> 'x') FROM t GROUP BY 1 ORDER BY 1");

# ---- expressions that fail for some values: an error only if a row with such a value passes the conditions ----
like(our_answer("SELECT gpu_sum(num::int) FROM t"), qr/invalid input syntax for type integer: "none"/, 'a value that is no integer is an error');
is_resident("SELECT gpu_sum(num::int) FROM t WHERE num <> 'none'");
is_resident("SELECT k % 10, gpu_sum(1 / length(replace(txt, 't0', ''))) FROM t WHERE txt <> 't0' GROUP BY 1 ORDER BY 1");
like(our_answer("SELECT gpu_sum(1 / length(replace(txt, 't0', ''))) FROM t"), qr/division by zero/, 'a division by zero is an error');

# ---- TPC-H query 1 ----
$node->safe_psql('postgres', <<SQL);
CREATE TABLE lineitem (l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2), l_returnflag char(1), l_linestatus char(1), l_shipdate date);
INSERT INTO lineitem SELECT i % 50 + 1, (i * 7919 % 10494950) / 100.0 + 900, (i % 11) / 100.0, (i % 9) / 100.0, substr('ANR', i % 3 + 1, 1), substr('FO', i % 2 + 1, 1), date '1992-01-02' + i % 2500
FROM generate_series(1, 30000) i;
VACUUM FREEZE ANALYZE lineitem;
SELECT gpuagg_cache_prewarm('lineitem');
SQL
is_resident("SELECT l_returnflag, l_linestatus, gpu_sum(l_quantity), gpu_sum(l_extendedprice), gpu_sum(l_extendedprice * (1 - l_discount)), gpu_sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
	gpu_avg(l_quantity), gpu_avg(l_extendedprice), gpu_avg(l_discount), gpu_count(*) FROM lineitem WHERE l_shipdate <= date '1998-12-01' - interval '90 days' GROUP BY l_returnflag, l_linestatus ORDER BY 1, 2");

# ---- equal keys that print differently ----
$node->safe_psql('postgres', <<SQL);
CREATE TABLE v AS SELECT i AS id, i % 5 AS k, (CASE WHEN i % 2 = 0 THEN '1.0' ELSE '1.00' END)::numeric AS n, (CASE WHEN i % 2 = 0 THEN 'a' ELSE 'A' END) COLLATE blind AS c,
	CASE i % 3 WHEN 0 THEN '-0'::float8 WHEN 1 THEN 0 ELSE 'NaN' END AS f, (CASE i % 2 WHEN 0 THEN 'x' ELSE 'x ' END)::bpchar AS b FROM generate_series(1, 5000) i;
VACUUM FREEZE ANALYZE v;
SELECT gpuagg_cache_prewarm('v');
SQL
is_resident("SELECT $_, gpu_count(*) FROM v GROUP BY 1 ORDER BY 1", 'equal keys print differently') foreach qw(n c f b);
is_resident("SELECT k, $_, gpu_count(*) FROM v GROUP BY 1, 2 ORDER BY 1, 2", 'equal keys print differently') foreach qw(n c f b);

# ---- many values ----
$node->safe_psql('postgres', <<SQL);
CREATE TABLE m AS SELECT i % 10 AS k, md5(i::text) AS txt FROM generate_series(1, 70000) i;
VACUUM FREEZE ANALYZE m;
SELECT gpuagg_cache_prewarm('m');
SQL
for (1 .. 2)
{
	is(our_answer("SELECT txt, gpu_count(*) FROM m GROUP BY txt ORDER BY txt LIMIT 10"), core_answer("SELECT txt, count(*) FROM m GROUP BY txt ORDER BY txt LIMIT 10"), 'a key of many values gives the right answer');
	is(our_answer("SELECT k, gpu_count(*) FROM m WHERE txt < '7' GROUP BY k ORDER BY k"), core_answer("SELECT k, count(*) FROM m WHERE txt < '7' GROUP BY k ORDER BY k"), '... and so does a condition on it');
}

# ---- dictionaries grow, and sessions have copies of older ones ----
my $other = $node->background_psql('postgres');
my $texts = "SELECT txt, gpu_count(*), gpu_sum(v) FROM t WHERE vc <> 'none' GROUP BY txt ORDER BY txt";

$other->query_safe("SET gpuagg.require = 'require'");
foreach my $change ("UPDATE t SET txt = 'new' WHERE v % 1000 = 7", "INSERT INTO t (k, v, txt, vc) SELECT 1, i, 'added' || i % 3, 'more' FROM generate_series(1, 5000) i",
	"DELETE FROM t WHERE txt = 't5'", "UPDATE t SET vc = 'none' WHERE v = 9", "UPDATE t SET txt = txt || ' ' WHERE v BETWEEN 40 AND 50")
{
	$node->safe_psql('postgres', $change);
	is($other->query_safe($texts), core_answer($texts), "a session with older dictionaries gives the right answer after $change");
	$node->safe_psql('postgres', 'VACUUM FREEZE t');
	$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('t')");
	is(our_answer($texts), core_answer($texts), '... a new session does after VACUUM and a prewarm');
	is($other->query_safe($texts), core_answer($texts), '... and the session with older dictionaries does again');
	like(plan_and_errors($texts), qr/Resident Rows: [1-9]/, '... from the device');
}

# ---- results of expressions are kept, and only those of new values are computed; their tables stay on the device ----
$node->safe_psql('postgres', <<SQL);
CREATE TABLE e AS SELECT i AS id, 'entry ' || i % 500 AS txt, CASE WHEN i <= 300 THEN 'big ' || i END AS big FROM generate_series(1, 20000) i;
ALTER TABLE e ALTER big SET STORAGE PLAIN;
VACUUM FREEZE ANALYZE e;
SELECT gpuagg_cache_prewarm('e');
SQL
my @kept = ("SELECT gpu_count(*), gpu_sum(id) FROM e WHERE txt LIKE '%7'", "SELECT regexp_replace(txt, '[0-9]\$', ''), gpu_count(*), gpu_sum(id) FROM e GROUP BY 1 ORDER BY 1",
	"SELECT gpu_count(*), gpu_count(DISTINCT left(txt, -1)), gpu_sum(length(txt)) FROM e");
foreach my $state ('', "INSERT INTO e SELECT i, 'entry ' || i % 700 || 'x' FROM generate_series(1, 3000) i", "DELETE FROM e WHERE id % 3 = 1", "INSERT INTO e SELECT i, NULL FROM generate_series(1, 100) i")
{
	$node->safe_psql('postgres', $_) foreach ($state, 'VACUUM FREEZE e', "SELECT gpuagg_cache_prewarm('e')");
	foreach my $query (@kept)
	{
		is_core_answer($query, "after '$state': $query") for 1 .. 2;
		like(plan_and_errors($query), qr/Resident Rows: [1-9]\d*\n *Tables Kept: [1-9]\d* kB\n(?! *Tables Sent)/, '... with the tables that the device has');
	}
}
# other results of the same values
is_core_answer("SELECT regexp_replace(txt, '$_', ''), gpu_count(*) FROM e GROUP BY 1 ORDER BY 1") foreach '[0-9]\$', '^e', '[0-9]\$';
is_core_answer("SET bytea_output = $_; SELECT right((txt::bytea)::text, 9), gpu_count(*) FROM e GROUP BY 1 ORDER BY 1") foreach qw(hex escape hex);
# two of them in one dictionary, so that their numbers are not the codes
is_resident("SELECT CASE WHEN id % 2 = 0 THEN left(txt, -1) ELSE regexp_replace(txt, '[0-9]\$', '') END, gpu_count(*) FROM e GROUP BY 1 ORDER BY 1") for 1 .. 2;

# ---- a dictionary that is replaced while a session reads its values does not end the session ----
my $session = $node->background_psql('postgres');
my $like = "SELECT gpu_count(*) FROM e WHERE big LIKE '%x'";
$session->query_safe("SET gpuagg.engine = 'cuda'");
$session->query_safe($like) for 1 .. 2;
# values that are copied, and values after those whose results are kept
foreach my $query ('SELECT gpu_count(*), gpu_sum(length(big)) FROM e', $like)
{
	my $n = length $query;

	$node->safe_psql('postgres', $_) foreach ("INSERT INTO e SELECT i, 'none', rpad('$n ' || i, 7000, 'x') FROM generate_series(1, 1500) i", 'VACUUM FREEZE e', "SELECT gpuagg_cache_prewarm('e')");
	$node->set_fault('replaced');
	my $plan = $session->query_safe("EXPLAIN (ANALYZE, VERBOSE) $query");
	like($plan, qr/Resident Rows: [1-9]/, "$query: from the device, although a dictionary was replaced");
	unlike($plan, qr/failed/, '... without a failure');
	ok(!-e $node->fault_file, '... in fact');
	is($session->query_safe($query), core_answer($query), '... and the answer is right');
}
$session->quit;

# ---- the views ----
is($node->safe_psql('postgres', <<SQL), "txt|gpu|1\ntxt|ram|1", 'gpuagg_cache has a row for each column and tier');
SELECT "column", tier, count(*) FROM gpuagg_cache WHERE relation = 't'::regclass AND "column" IN ('txt') AND "rows" > 10000 AND bytes > 10000 GROUP BY 1, 2 ORDER BY 1, 2
SQL
is($node->safe_psql('postgres', "SELECT gpu_cache_used > 0, gpu_cache_used = (SELECT sum(bytes) FROM gpuagg_device_columns()) FROM gpuagg_status"), 't|t', 'gpuagg_status shows the memory of all columns on the device');
is($node->safe_psql('postgres', 'CREATE ROLE reader; SET ROLE reader; SELECT count(*) FROM gpuagg_device_columns()'), '0', 'gpuagg_device_columns() shows only tables that the role may read');

# ---- the dictionaries are lost with the server, and sessions forget their copies ----
my $many = 'SELECT length(many), gpu_count(*) FROM t GROUP BY 1 ORDER BY 1';
my $known = "SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name LIKE 'GPU dictionary%'";
is($other->query_safe($many), core_answer($many), 'a column with many values gives the right answer') for 1 .. 2;
my $bytes = $other->query_safe($known);
cmp_ok($bytes, '>', 1024 * 1024, '... and the session has a copy of the dictionary');
my $killed = $node->kill_server;
is(our_answer("SET gpuagg.engine = 'auto'; $texts"), core_answer($texts), 'the server is lost: the answer is right');
ok($node->wait_for_another_server($killed), 'another server starts');
is($other->query_safe("SET gpuagg.engine = 'auto'; $texts"), core_answer($texts), '... an older session gives the right answer') for 1 .. 2;
is($other->query_safe("SET gpuagg.engine = 'cuda'; $many"), core_answer($many), '... also for a column with many values') for 1 .. 2;
cmp_ok($other->query_safe($known), '<', 1.5 * $bytes, '... and has a copy of only one dictionary of that column');
like(plan_and_errors($texts), qr/Resident Rows: [1-9]/, '... rows come from the device again');
$other->quit;

done_testing();
