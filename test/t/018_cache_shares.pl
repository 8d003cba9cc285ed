# What the column cache evicts when entries or memory are short. Many small tables use up the entries before the memory. A query that
# scans a table many times counts as one use. A prewarm evicts no columns of other owners' tables. Participants of a parallel plan do not
# wait for a lookup that turns out too large for the cache.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('node', conf => <<CONF);
gpuagg.engine = 'cpu'
gpuagg.require = 'require'
gpuagg.cache = 'eager'
gpuagg.cache_memory = 16MB
autovacuum = off
max_parallel_workers = 4
CONF

my $tables = 150;
my $wide = 12;
my $wide_columns = join ', ', map { "g AS c$_" } 1 .. 60;
$node->safe_psql('postgres', <<SQL);
DO \$\$ BEGIN
	FOR i IN 1 .. $tables LOOP EXECUTE format('CREATE TABLE small%s AS SELECT g AS a FROM generate_series(1, 500) g', i); END LOOP;
	FOR i IN 1 .. $wide LOOP EXECUTE format('CREATE TABLE wide%s AS SELECT $wide_columns FROM generate_series(1, 30) g', i); END LOOP;
END \$\$;
CREATE TABLE rows (a int);
INSERT INTO rows SELECT random() * 1000000000 FROM generate_series(1, 600000);
CREATE TABLE parted (k int) PARTITION BY RANGE (k);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (0) TO (5000);
CREATE TABLE parted2 PARTITION OF parted FOR VALUES FROM (5000) TO (10000);
INSERT INTO parted SELECT generate_series(0, 9999);
-- not CREATE TABLE AS: with wal_level = minimal it may write pages without WAL, which are not cached
CREATE TABLE few (k int);
INSERT INTO few SELECT random() * 1000000000 FROM generate_series(1, 50000);
SQL
$node->safe_psql('postgres', 'VACUUM');

sub sum_of
{
	my ($table, @columns) = @_;
	return "SELECT " . join(', ', map { "gpu_sum($_)" } @columns) . " FROM $table;\n";
}

# Tests that the query reads all blocks from the cache.
sub is_read_from_cache
{
	my ($query, $name) = @_;
	my $plan = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS off, TIMING off) $query");
	like($plan, qr/column cache \((\d+) of \1 blocks\).*built=0/s, $name);
}

sub cached_bytes { return $node->safe_psql('postgres', "SELECT coalesce(sum(bytes), 0) FROM gpuagg_cache WHERE relation = '$_[0]'::regclass") }

# ---- lookups ----

# The condition is estimated to be true for few rows, so that the lookup seems to fit.
my $sum = 'count(*), sum(r.a::bigint) FROM fact f LEFT JOIN rows r ON f.k = r.a AND abs(r.a) = r.a';
my $settings = join '', map { "SET $_;\n" } 'client_min_messages = debug1', "work_mem = '64MB'", 'gpuagg.replace_builtin = on', 'enable_nestloop = off', 'enable_mergejoin = off',
  'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'max_parallel_workers_per_gather = 2';
$node->safe_psql('postgres', 'CREATE TABLE fact (k int) WITH (parallel_workers = 2); ALTER TABLE rows SET (parallel_workers = 0)');
$node->safe_psql('postgres', 'INSERT INTO fact SELECT a FROM rows LIMIT 50000');
$node->safe_psql('postgres', 'VACUUM ANALYZE fact, rows');
my $expected = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; SELECT $sum");
my ($rc, $out, $err) = $node->psql('postgres', "${settings}EXPLAIN (ANALYZE, COSTS off, TIMING off) SELECT $sum");
like($out, qr/Workers Launched: 2.*Lookup: left join, \(f.k = r.a\), .* of 600000 rows/s, 'a lookup larger than what can be kept');
is(scalar(() = $err =~ /too large to be kept for other participants/g), 1, '... for which the others do not wait');
is($node->safe_psql('postgres', "${settings}SELECT $sum"), $expected, '... gives the right answer');

$node->safe_psql('postgres', "SELECT gpuagg_cache_evict('fact'), gpuagg_cache_evict('rows')");
$node->safe_psql('postgres', 'DROP TABLE fact; ALTER TABLE rows RESET (parallel_workers)');

# ---- entries ----

# Two rounds of queries over more tables than can be cached, and then queries of the last table.
$node->safe_psql('postgres', join('', map { sum_of("small$_", 'a') } 1 .. $tables) x 2);
my $cached = $node->safe_psql('postgres', 'SELECT count(DISTINCT relation) FROM gpuagg_cache');
cmp_ok($cached, '<', $tables, 'not all tables are cached');
cmp_ok($cached, '>', $tables / 2, '... but most are');
my $last = sum_of("small$tables", 'a');
$node->safe_psql('postgres', $last) for 1 .. 3;
is_read_from_cache($last, 'a table that is used replaces others in a full cache');
is($node->safe_psql('postgres', $last), 500 * 501 / 2, '... and its sum is right');
$node->safe_psql('postgres', "SELECT gpuagg_cache_evict(('small' || i)::regclass) FROM generate_series(1, $tables) i");
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpuagg_cache'), 0, 'gpuagg_cache_evict() frees all entries of tables');

# The same with columns.
my @columns = map { "c$_" } 1 .. 60;
$node->safe_psql('postgres', join('', map { sum_of("wide$_", @columns) } 1 .. $wide) x 2);
$cached = $node->safe_psql('postgres', 'SELECT count(*) FROM gpuagg_cache WHERE "column" IS NOT NULL');
cmp_ok($cached, '<', 60 * $wide, 'not all columns are cached');
cmp_ok($cached, '>', 60 * $wide / 2, '... but most are');
$last = sum_of("wide$wide", @columns);
$node->safe_psql('postgres', $last) for 1 .. 3;
is_read_from_cache($last, 'columns that are used replace others in a full cache');
$node->safe_psql('postgres', "SELECT gpuagg_cache_evict(('wide' || i)::regclass) FROM generate_series(1, $wide) i");
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpuagg_cache'), 0, 'gpuagg_cache_evict() frees all entries of columns');

# ---- uses ----

# A scan by a parallel worker is a use of the table.
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; '
	. 'SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off; ';
for my $what ([ 'few', 'a table', 'k' ], [ 'parted', 'a partition', 'k' ])
{
	my ($table, $name, $column) = @$what;
	my $query = sum_of($table, $column);
	my $expected = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SELECT sum(k) FROM $table");
	is($node->safe_psql('postgres', "$parallel $query $query $query"), join("\n", ($expected) x 3),
		"$name that only workers read: the answers are right");
	like($node->safe_psql('postgres', "$parallel EXPLAIN (ANALYZE, COSTS off, TIMING off) $query"),
		qr/Workers Launched: [12].*column cache \((\d+) of \1 blocks\).*built=0/s, '... and the cache is used');
}

# All scans of one query are one use.
$node->append_conf('postgresql.conf', "gpuagg.cache_memory = 1MB");
$node->restart;
$node->safe_psql('postgres', sum_of('rows', 'a')) for 1 .. 3;
my $before = cached_bytes('rows');
cmp_ok($before, '>', 500_000, 'a column fills the cache');
# the query takes more than a second, because a scan that was denied memory does not ask again within a second
is($node->safe_psql('postgres', <<SQL), 50000 * 200, 'many scans of another column by one query give the right answer');
SELECT sum((SELECT gpu_count(*) FROM few WHERE k > -o.i))
FROM (SELECT i, pg_sleep(0.008) FROM generate_series(1, 200) i) o
SQL
is(cached_bytes('rows'), $before, '... and evict nothing');
$node->safe_psql('postgres', sum_of('few', 'k')) for 1 .. 3;
cmp_ok(cached_bytes('few'), '>', 0, 'three queries of that column evict the other one');

# ---- prewarm ----

$node->safe_psql('postgres', <<SQL);
CREATE ROLE guest LOGIN;
GRANT CREATE ON SCHEMA public TO guest;
SET ROLE guest;
CREATE TABLE large (a int);
INSERT INTO large SELECT random() * 1000000000 FROM generate_series(1, 600000);
CREATE TABLE larger (a int);
INSERT INTO larger SELECT random() * 1000000000 FROM generate_series(1, 600000);
SQL
$node->safe_psql('postgres', 'VACUUM large, larger');
my %kept = map { $_ => cached_bytes($_) } qw(rows few);
my $prewarm = "SELECT gpuagg_cache_prewarm('large') FROM generate_series(1, 3)";
($rc, $out, $err) = $node->psql('postgres', $prewarm, extra_params => [ '-U', 'guest' ]);
like($err, qr/NOTICE: .*no memory in the column cache for all of table "large".*HINT: .*gpuagg_cache_evict\(\)/s, 'a prewarm reports that memory is short');
is(cached_bytes($_), $kept{$_}, "... and does not evict table $_ of another owner") for qw(rows few);
$node->safe_psql('postgres', "SELECT gpuagg_cache_evict('rows'), gpuagg_cache_evict('few')");
$node->safe_psql('postgres', $prewarm, extra_params => [ '-U', 'guest' ]);
cmp_ok(cached_bytes('large'), '>', 500_000, 'a prewarm uses free memory');
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('larger') FROM generate_series(1, 3)", extra_params => [ '-U', 'guest' ]);
cmp_ok(cached_bytes('larger'), '>', 0, "... and evicts tables of the same owner");

$node->stop;
done_testing();
