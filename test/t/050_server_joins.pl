# Joins of rows that are cached on the GPU server's devices with lookups: forms of keys, types of joins, columns of the inner rows as
# keys, arguments and in conditions. The reference is core's answer.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Resident;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1, conf => <<CONF);
timezone = 'UTC'
extra_float_digits = -3
gpuagg.replace_builtin = on
enable_mergejoin = off
enable_nestloop = off
CONF

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE f (id int, k int, k2 smallint, k8 bigint, sparse int, d int, v int, n numeric(12,2), x float8, txt text);
INSERT INTO f SELECT i, i * 7919 % 1200 - 100, i % 90, i % 700 + 5000000000, i % 400 * 100, 19980101 + i % 365, i % 1000, (i % 5000 - 2500) / 100.0,
	i % 977 / 8.0, 't' || i % 10
FROM generate_series(1, 60000) i;
UPDATE f SET k = NULL, k2 = NULL WHERE id % 17 = 0;
-- 0 to 999, with gaps
CREATE TABLE dim (k int PRIMARY KEY, name text, region text, weight int, price numeric(8,2), day date, flag bool, ratio float8);
INSERT INTO dim SELECT i, 'name ' || i % 50, (ARRAY['east', 'west', NULL])[i % 3 + 1], i % 40 - 20, (i % 300) / 4.0, date '2020-01-01' + i % 30, i % 4 = 0,
	i / 16.0
FROM generate_series(0, 999) i WHERE i % 11 <> 5;
UPDATE dim SET weight = NULL, price = NULL, flag = NULL WHERE k % 13 = 0;
CREATE TABLE small (k smallint PRIMARY KEY, label text, r int);
INSERT INTO small SELECT i, 'label ' || i % 5, i % 8 FROM generate_series(0, 70) i;
CREATE TABLE big (k8 bigint PRIMARY KEY, c int);
INSERT INTO big SELECT i + 5000000000, i % 12 FROM generate_series(0, 600) i;
CREATE TABLE thin (sparse int PRIMARY KEY, c text);
INSERT INTO thin SELECT i * 200, 'c' || i % 6 FROM generate_series(0, 200) i;
CREATE TABLE region (r int PRIMARY KEY, rname text);
INSERT INTO region SELECT i, 'r' || i % 3 FROM generate_series(0, 6) i;
CREATE TABLE nodim (k int PRIMARY KEY, name text);
CREATE TABLE dup (k int, w int, label text);
INSERT INTO dup SELECT i % 450, nullif(i % 9, 0), 'd' || i % 7 FROM generate_series(1, 1000) i;
CREATE TABLE pairs (k int, k2 int, w int, label text);
INSERT INTO pairs SELECT i * 7919 % 1200 - 100, i % 90, nullif(i % 5, 0), 'p' || i % 4 FROM (SELECT * FROM generate_series(1, 3000) UNION ALL SELECT * FROM generate_series(1, 1000)) s (i);
CREATE TABLE often AS SELECT k, 'o' || k % 3 AS name FROM generate_series(1, 100) k UNION ALL SELECT 7, 'o7' FROM generate_series(1, 50);
CREATE TABLE gaps (k int PRIMARY KEY, w int);
INSERT INTO gaps SELECT i, nullif(i % 4, 0) FROM generate_series(0, 999) i;
CREATE TABLE wide (k int PRIMARY KEY, c int);
INSERT INTO wide SELECT i * 600, i % 3 FROM generate_series(-20000, 20000) i;
CREATE TABLE far (k int PRIMARY KEY, c int);
INSERT INTO far VALUES (-2000000000, 1), (5, 2), (2000000000, 3);
-- keys of several columns; the least and the greatest are those of the types
CREATE TABLE two (k int, k2 smallint, w int, label text, PRIMARY KEY (k, k2));
INSERT INTO two SELECT i, j, nullif((i + j) % 12, 0), 'l' || (i * j) % 5 FROM generate_series(-100, 999, 7) i, generate_series(0, 89, 3) j;
INSERT INTO two VALUES (2147483647, 32767, 1, 'high'), (-2147483648, -32768, 2, 'low');
CREATE TABLE three (k8 bigint, k2 int, v int, w int, label text, PRIMARY KEY (k8, k2, v));
INSERT INTO three SELECT i % 700 + 5000000000, i % 90, i % 1000, i % 77, 'l' || i % 3 FROM generate_series(1, 60000, 2) i WHERE i % 17 > 0;
CREATE TABLE apart (k8 bigint, k2 int, c int, PRIMARY KEY (k8, k2));
INSERT INTO apart VALUES (-9223372036854775808, 1, 1), (9223372036854775807, 2, 2), (5000000001, 1, 3);
-- keys step apart, some of them two or three times
CREATE TABLE spread (step int, k bigint, w int, amount bigint, ratio float8, label text);
INSERT INTO spread SELECT step, i::bigint * step, nullif(i % 7, 0) * 100000000, i::bigint * 10000000000, i / 16.0, nullif('s' || i % 5, 's3')
FROM unnest(ARRAY[100, 800, 1000, 50000, 100000]) step, generate_series(-5, 999, 3) i, generate_series(1, CASE i % 10 WHEN 0 THEN 3 WHEN 1 THEN 2 ELSE 1 END);
CREATE TABLE days (day date PRIMARY KEY, month int);
INSERT INTO days SELECT date '2020-01-01' + i, i / 7 FROM generate_series(0, 25) i;
INSERT INTO f VALUES (0, 2147483647, 32767, 5000000800, 2147483647, 2, 32767, 0, 0, ''), (-1, -2147483648, -32768, -5000000000, -2147483648, 1, -1, 0, 0, ''),
	(-2, NULL, 3, NULL, 5, NULL, NULL, NULL, NULL, NULL), (-3, 7, NULL, 5000000003, NULL, NULL, 2, NULL, NULL, NULL);
VACUUM FREEZE ANALYZE;
SQL

$Resident::node = $node;
ok($node->wait_until_ready, 'the server starts');
$node->safe_psql('postgres', 'SELECT gpuagg_cache_prewarm(\'f\')');

# ---- columns of the inner rows as keys and arguments ----
is_resident('SELECT region, count(*), sum(v), avg(n) FROM f JOIN dim USING (k) GROUP BY 1 ORDER BY 1');
is_resident('SELECT name, region, count(*), sum(v), min(x), max(weight) FROM f JOIN dim USING (k) GROUP BY 1, 2 ORDER BY 1, 2');
is_resident('SELECT weight, sum(n), sum(price), count(weight), count(name), count(flag) FROM f JOIN dim USING (k) GROUP BY 1 ORDER BY 1');
is_resident('SELECT day, flag, sum(price * v), sum(ratio * x), max(ratio) FROM f JOIN dim USING (k) GROUP BY 1, 2 ORDER BY 1, 2');
is_resident('SELECT count(*), sum(v), sum(weight), min(day) FROM f JOIN dim USING (k)');
is_resident('SELECT v % 10, sum(weight + v), sum(price - n) FROM f JOIN dim USING (k) GROUP BY 1 ORDER BY 1');
# expressions over one column of the inner rows are computed once for each row or value
is_resident("SELECT upper(left(name, 6)), count(*) FROM f JOIN dim USING (k) GROUP BY 1 ORDER BY 1");
is_resident("SELECT sum(CASE WHEN region = 'east' THEN v ELSE 0 END), sum(length(name)), count(*) FILTER (WHERE name LIKE '%7') FROM f JOIN dim USING (k)");
is_resident("SELECT to_char(day, 'Day'), extract(dow FROM day), count(*) FROM f JOIN dim USING (k) GROUP BY 1, 2 ORDER BY 1, 2");
is_resident("SELECT coalesce(region, 'none'), sum(v) FROM f LEFT JOIN dim USING (k) GROUP BY 1 ORDER BY 1");

# ---- types of joins ----
is_resident('SELECT region, count(*), count(dim.k), sum(weight), sum(v) FROM f LEFT JOIN dim USING (k) GROUP BY 1 ORDER BY 1');
is_resident('SELECT weight, flag, count(*) FROM f LEFT JOIN dim USING (k) GROUP BY 1, 2 ORDER BY 1, 2');
is_resident('SELECT v % 5, count(*) FROM f WHERE k IN (SELECT k FROM dim WHERE weight > 3) GROUP BY 1 ORDER BY 1');
is_resident('SELECT v % 5, count(*), sum(v) FROM f WHERE NOT EXISTS (SELECT FROM dim WHERE dim.k = f.k AND weight > 3) GROUP BY 1 ORDER BY 1');
is_resident('SELECT v % 5, count(*), sum(n) FROM f WHERE EXISTS (SELECT FROM dup WHERE dup.k = f.k) GROUP BY 1 ORDER BY 1');
is_resident('SELECT count(*), count(name) FROM f LEFT JOIN nodim USING (k)');
is_resident('SELECT count(*) FROM f WHERE NOT EXISTS (SELECT FROM nodim WHERE nodim.k = f.k)');
is_core_answer('SELECT count(*), sum(v) FROM f JOIN nodim USING (k)');
is_core_answer('SELECT v % 3, count(*), sum(v) FROM f JOIN nodim USING (k) GROUP BY 1');

# ---- several joins, snowflakes ----
is_resident('SELECT region, label, count(*), sum(v) FROM f JOIN dim USING (k) JOIN small ON small.k = f.k2 GROUP BY 1, 2 ORDER BY 1, 2') for 1 .. 2;
is_resident('SELECT rname, day, count(*) FROM f JOIN dim USING (k) JOIN (SELECT small.k AS sk, rname FROM small JOIN region USING (r) OFFSET 0) s ON f.k2 = s.sk GROUP BY 1, 2 ORDER BY 1, 2');
is_resident('SELECT c, region, sum(v) FROM f JOIN big USING (k8) LEFT JOIN dim USING (k) WHERE k2 > 20 GROUP BY 1, 2 ORDER BY 1, 2');
is_resident('SELECT c, count(*), sum(x) FROM f JOIN thin USING (sparse) GROUP BY 1 ORDER BY 1');
is_resident('SELECT c, count(*) FROM f JOIN dim USING (k) JOIN thin USING (sparse) WHERE NOT EXISTS (SELECT FROM small WHERE small.k = f.k2 AND r = 3) GROUP BY 1 ORDER BY 1');

# ---- keys that are expressions, and of other types ----
is_resident('SELECT region, count(*) FROM f JOIN dim ON dim.k = f.v + 1 GROUP BY 1 ORDER BY 1');
is_resident('SELECT region, count(*) FROM f JOIN dim ON dim.k = f.k2 GROUP BY 1 ORDER BY 1');
is_resident('SELECT label, count(*) FROM f JOIN small ON small.k = f.k GROUP BY 1 ORDER BY 1');
is_resident('SELECT label, count(*) FROM f JOIN small ON small.k = f.k8 - 5000000000 GROUP BY 1 ORDER BY 1');

# ---- several keys, and keys that are not dense ----
foreach my $keys ('two USING (k, k2)', 'three USING (k8, k2, v)')
{
	is_resident("SELECT label, count(*), sum(w), sum(f.v), min(f.n) FROM f JOIN $keys GROUP BY 1 ORDER BY 1") for 1 .. 2;
	is_resident("SELECT label, w, count(*), sum(x) FROM f LEFT JOIN $keys GROUP BY 1, 2 ORDER BY 1, 2");
}
is_resident('SELECT v % 5, count(*) FROM f WHERE EXISTS (SELECT FROM two WHERE two.k = f.k AND two.k2 = f.k2 AND w > 3) GROUP BY 1 ORDER BY 1');
is_resident('SELECT v % 5, count(*) FROM f WHERE NOT EXISTS (SELECT FROM three t WHERE t.k8 = f.k8 AND t.k2 = f.k2 AND t.v = f.v) GROUP BY 1 ORDER BY 1');
is_resident('SELECT region, count(*), sum(w) FROM f JOIN two ON two.k = f.k AND two.k2 = f.k2 JOIN dim ON dim.k = two.w GROUP BY 1 ORDER BY 1');
is_resident('SELECT c, count(*), sum(v) FROM f JOIN far USING (k) GROUP BY 1 ORDER BY 1');
is_resident('SELECT c, count(*), sum(v) FROM f LEFT JOIN far ON far.k = f.sparse GROUP BY 1 ORDER BY 1');
is_resident('SELECT month, count(*), sum(v) FROM f JOIN days ON days.day = date \'2020-01-01\' + f.k2 GROUP BY 1 ORDER BY 1');
is_resident('SELECT sum(c) FROM f JOIN apart USING (k8, k2)', 'the keys of a join have too many combinations');

# ---- keys that are not dense, in ranges of any length: found by number, or by a hash table ----
foreach my $case ([ 100, 0, 0 ], [ 800, 0, 0 ], [ 1000, 1, 0 ], [ 50000, 1, 0 ], [ 100000, 1, 1 ])
{
	my ($step, $hashed, $hashed_existence) = @$case;
	my $of = "(SELECT * FROM spread WHERE step = $step) s ON s.k = f.v::bigint * $step";
	my $exists = "EXISTS (SELECT FROM spread s WHERE step = $step AND s.k = f.v::bigint * $step)";
	my $is_hashed = sub {
		my ($plan, $expected) = @_;
		ok(($plan =~ /GPU hash table/) == $expected, "... the hash table is " . ($expected ? 'used' : 'not used')) || diag($plan);
	};

	foreach my $join ('JOIN', 'LEFT JOIN')
	{
		$is_hashed->(is_resident("SELECT label, w, count(*), sum(f.v), sum(amount), sum(ratio), count(w) FROM f $join $of GROUP BY 1, 2 ORDER BY 1, 2"), $hashed)
		  for 1 .. 2;
		is_resident("SELECT count(*), sum(f.v), sum(s.amount + f.v), max(ratio), count(label) FROM f $join $of");
	}
	is_resident("SELECT region, label, count(*), sum(amount) FROM f LEFT JOIN $of JOIN dim ON dim.k = f.k GROUP BY 1, 2 ORDER BY 1, 2");
	$is_hashed->(is_resident("SELECT k2 % 7, count(*), sum(f.v) FROM f WHERE $_ $exists GROUP BY 1 ORDER BY 1"), $hashed_existence) foreach '', 'NOT';
	is_resident("SELECT count(*), sum(f.v) FROM f $_ JOIN $of") foreach '', 'LEFT';
}
# of a lookup that is not kept, all tables must fit into one message
like(is_resident('SELECT w, amount, ratio, count(*) FROM f JOIN (SELECT * FROM spread WHERE step = 800 OFFSET 0) s ON s.k = f.v::bigint * 800 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3'),
	qr/GPU hash table/, '... with a hash table') for 1 .. 2;

# ---- several matches: rows are read once for each ----
foreach my $of ('dup USING (k)', 'pairs USING (k, k2)')
{
	like(is_resident("SELECT label, count(*), sum(v), sum(w), avg(w), min(v), max(n), count(w) FROM f JOIN $of GROUP BY 1 ORDER BY 1"), qr/Resident Passes: [23]\n/, '... in passes') for 1 .. 2;
	is_resident("SELECT label, w, count(*), sum(v), count(DISTINCT w) FROM f LEFT JOIN $of GROUP BY 1, 2 ORDER BY 1, 2");
	is_resident("SELECT count(*), sum(v) FROM f JOIN $of");
	is_resident("SELECT count(*), sum(v) FROM f LEFT JOIN $of WHERE w IS NULL");
	is_resident("SELECT region, dim.weight, count(*), sum(w) FROM f JOIN dim USING (k) LEFT JOIN $of GROUP BY 1, 2 ORDER BY 1, 2");
}
is_resident('SELECT dup.label, pairs.label, count(*), sum(dup.w + pairs.w) FROM f JOIN dup USING (k) LEFT JOIN pairs ON pairs.k = f.k AND pairs.k2 = f.k2 GROUP BY 1, 2 ORDER BY 1, 2');
is_resident('SELECT txt, label, count(*), min(v) FROM f LEFT JOIN dup USING (k) GROUP BY 1, 2 ORDER BY 1, 2');
is_resident('SELECT label, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM f JOIN dup USING (k) GROUP BY 1 ORDER BY 1');
is_resident('SELECT label, max(txt) FROM f JOIN dup USING (k) GROUP BY 1 ORDER BY 1', 'the least or greatest text is found among rows of one table, each once');

# ---- orders of joins ----
# without the GPU the outer side is `many`, whose rows need not be put into a lookup then
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE many (k8 bigint PRIMARY KEY, c int);
INSERT INTO many SELECT i + 5000000000, i % 12 FROM generate_series(0, 2500) i;
VACUUM FREEZE ANALYZE many;
SQL
foreach my $case ([ 'f', 'auto' ], [ 'many', 'cpu' ])
{
	my ($fact, $engine) = @$case;

	like($node->safe_psql('postgres', "SET gpuagg.engine = '$engine'; SET gpuagg.gpu_startup_cost = 0; SET max_parallel_workers_per_gather = 0; EXPLAIN (COSTS OFF) "
		. "SELECT region, c, sum(v) FROM f JOIN dim USING (k) JOIN many USING (k8) WHERE weight = 3 AND name = 'name 13' GROUP BY 1, 2"),
		qr/Feed: heap pages of $fact\b/, "$engine: the outer side of all joins is $fact");
}

# ---- conditions ----
is_resident("SELECT region, count(*), sum(v) FROM f JOIN dim USING (k) WHERE weight > 0 AND v < 500 AND txt <> 't3' GROUP BY 1 ORDER BY 1");
is_resident('SELECT region, count(*), sum(v) FROM f JOIN dim USING (k) WHERE v > weight * 20 GROUP BY 1 ORDER BY 1');
is_resident('SELECT region, count(*), sum(v) FROM f LEFT JOIN dim USING (k) WHERE flag IS NOT TRUE GROUP BY 1 ORDER BY 1');
is_resident('SELECT region, count(*) FROM f JOIN dim USING (k) GROUP BY 1 HAVING sum(v) > 1000 ORDER BY 2 DESC LIMIT 2');
is_resident('SELECT count(DISTINCT weight), count(DISTINCT v) FROM f JOIN dim USING (k)');
is_resident('SELECT region, percentile_cont(0.5) WITHIN GROUP (ORDER BY weight::float8), count(DISTINCT day) FROM f JOIN dim USING (k) GROUP BY 1 ORDER BY 1');

# ---- what is not taken ----
is_resident('SELECT name, count(*) FROM f JOIN often USING (k) GROUP BY 1 ORDER BY 1', 'a row may have too many matches in the joins');
is_resident('SELECT r, count(*) FROM f LEFT JOIN small ON small.k = f.k2 AND small.r < f.v GROUP BY 1 ORDER BY 1', 'a condition decides which rows of a join match');
is_resident("SELECT count(*) FROM f JOIN (SELECT DISTINCT name FROM dim) s ON s.name = f.txt", 'the key of a join is not an integer|no row can find its partner');
is_resident('SELECT txt || name, count(*) FROM f JOIN dim USING (k) GROUP BY 1 ORDER BY 1', 'a key is computed from several columns, other than by CASE or COALESCE');

# ---- errors ----
like(our_answer('SELECT sum(v / weight) FROM f JOIN dim USING (k)'), qr/division by zero/, 'a division by zero is an error');
is_resident('SELECT sum(v / weight) FROM f JOIN dim USING (k) WHERE weight > 0');
is_resident('SELECT sum(1000 / weight) FROM f JOIN dim USING (k) WHERE weight <> 0');
is_resident('SELECT sum(100 / dim.k) FROM f JOIN dim USING (k) WHERE f.k > 0');

# the key of an outer join is computed for every row, whether or not the inner row is needed
like(our_answer('SELECT sum(CASE WHEN v > 5000 THEN weight END) FROM f LEFT JOIN dim ON dim.k = 10 / f.v'), qr/division by zero/,
	'a key that cannot be computed is an error');
is_resident('SELECT sum(CASE WHEN v > 500 THEN weight END) FROM f LEFT JOIN dim ON dim.k = 100000 / f.v WHERE v > 0');
# an expression is not computed from NULLs as if they were values
is_resident('SELECT 100 / gaps.w, count(*) FROM f LEFT JOIN gaps USING (k) GROUP BY 1 ORDER BY 1');

# ---- limits ----
is_resident('SELECT count(*) FROM f WHERE k IN (SELECT k FROM wide)');
is_resident('SELECT c, count(*) FROM f JOIN wide USING (k) GROUP BY 1 ORDER BY 1');
{
	# one who catches the cancellation of a query is in his own subtransaction
	my ($out, $err);
	$node->psql('postgres', <<'SQL', stdout => \$out, stderr => \$err);
SET statement_timeout = '300ms';
DO $$ BEGIN
	BEGIN
		PERFORM sum(length(repeat(name, weight * 1000000 + 21000000))) FROM f JOIN dim USING (k);
	EXCEPTION WHEN query_canceled THEN
		RAISE NOTICE 'canceled';
	END;
END $$;
SELECT 'transaction has ended: ' || (now() = statement_timestamp());
SQL
	like($err, qr/NOTICE:  canceled/, 'expressions over inner rows are canceled');
	like($out, qr/transaction has ended: true/, '... and leave no subtransaction');
}

# ---- rescans, parameters, cursors ----
is_core_answer('SELECT r, (SELECT sum(v) FROM f JOIN dim USING (k) WHERE weight = r) FROM generate_series(1, 5) r');
is_core_answer('SELECT r, (SELECT sum(v) FROM f LEFT JOIN (SELECT * FROM dim WHERE weight = r) d USING (k) WHERE region IS NULL) FROM generate_series(1, 5) r');
is_core_answer('PREPARE p(int) AS SELECT region, count(*) FROM f JOIN dim USING (k) WHERE weight > $1 GROUP BY 1 ORDER BY 1; SET plan_cache_mode = force_generic_plan; EXECUTE p(1); EXECUTE p(NULL); EXECUTE p(10)');
is_core_answer('BEGIN; DECLARE c CURSOR FOR SELECT name, count(*) FROM f JOIN dim USING (k) GROUP BY 1 ORDER BY 1; FETCH 3 FROM c; SELECT count(*) FROM f JOIN small ON small.k = f.k2; FETCH 3 FROM c; COMMIT');

# ---- changes: of the fact's blocks, which come as batches through the same lookups, and of the inner rows ----
$node->safe_psql('postgres', "UPDATE f SET v = v + 1 WHERE id % 997 = 3; DELETE FROM f WHERE id % 991 = 2; INSERT INTO f SELECT * FROM f WHERE id < 500");
my $star = 'SELECT region, label, weight, count(*), sum(v), sum(n) FROM f JOIN dim USING (k) LEFT JOIN small ON small.k = f.k2 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3';
is_core_answer($star);
$node->safe_psql('postgres', "UPDATE dim SET region = 'north', weight = weight + 1 WHERE k % 5 = 0; DELETE FROM dim WHERE k BETWEEN 100 AND 200; INSERT INTO dim VALUES (-50, 'new', 'south')");
is_core_answer($star);
is_core_answer("BEGIN; UPDATE dim SET region = 'gone' WHERE k < 300; $star; ROLLBACK");
$node->safe_psql('postgres', 'VACUUM f; SELECT gpuagg_cache_prewarm(\'f\')');
is_resident($star);

# ---- partitions ----
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE p (LIKE f) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (20000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (20000) TO (100000);
INSERT INTO p SELECT * FROM f;
VACUUM FREEZE ANALYZE p;
SELECT gpuagg_cache_prewarm('p1'), gpuagg_cache_prewarm('p2');
SQL
$star =~ s/\bf\b/p/g;
is_resident($star);

$node->stop;
done_testing();
