# What the column cache keeps when there is not enough of it: entries for tables and columns, which many small tables use
# up before the memory, and memory, of which a query that scans a table again and again is given no more than another.
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
my $of_wide = join ', ', map { "g AS c$_" } 1 .. 60;
$node->safe_psql('postgres', <<SQL);
DO \$\$ BEGIN
	FOR i IN 1 .. $tables LOOP EXECUTE format('CREATE TABLE small%s AS SELECT g AS a FROM generate_series(1, 500) g', i); END LOOP;
	FOR i IN 1 .. $wide LOOP EXECUTE format('CREATE TABLE wide%s AS SELECT $of_wide FROM generate_series(1, 30) g', i); END LOOP;
END \$\$;
CREATE TABLE rows (a int);
INSERT INTO rows SELECT random() * 1000000000 FROM generate_series(1, 600000);
CREATE TABLE parted (k int) PARTITION BY RANGE (k);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (0) TO (5000);
CREATE TABLE parted2 PARTITION OF parted FOR VALUES FROM (5000) TO (10000);
INSERT INTO parted SELECT generate_series(0, 9999);
-- not by CREATE TABLE AS: with wal_level = minimal that may write pages without WAL, which are not cached
CREATE TABLE few (k int);
INSERT INTO few SELECT random() * 1000000000 FROM generate_series(1, 50000);
SQL
$node->safe_psql('postgres', 'VACUUM');

sub sum_of
{
	my ($table, @columns) = @_;
	return "SELECT " . join(', ', map { "gpu_sum($_)" } @columns) . " FROM $table;\n";
}

# Does the query read the cache alone?
sub is_served
{
	my ($query, $name) = @_;
	my $plan = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS off, TIMING off) $query");
	like($plan, qr/column cache \((\d+) of \1 blocks\).*built=0/s, $name);
}

sub bytes { return $node->safe_psql('postgres', "SELECT coalesce(sum(bytes), 0) FROM gpuagg_cache WHERE relation = '$_[0]'::regclass") }

# Two rounds over more tables than can be cached, and then the last one alone.
$node->safe_psql('postgres', join('', map { sum_of("small$_", 'a') } 1 .. $tables) x 2);
my $cached = $node->safe_psql('postgres', 'SELECT count(DISTINCT relation) FROM gpuagg_cache');
cmp_ok($cached, '<', $tables, 'not all tables are cached');
cmp_ok($cached, '>', $tables / 2, 'but most are');
my $last = sum_of("small$tables", 'a');
$node->safe_psql('postgres', $last) for 1 .. 3;
is_served($last, 'a table that is used is cached, where many others are');
is($node->safe_psql('postgres', $last), 500 * 501 / 2, 'with the right sum');
$node->safe_psql('postgres', "SELECT gpuagg_cache_evict(('small' || i)::regclass) FROM generate_series(1, $tables) i");
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpuagg_cache'), 0, 'all are given back');

# The same with columns.
my @columns = map { "c$_" } 1 .. 60;
$node->safe_psql('postgres', join('', map { sum_of("wide$_", @columns) } 1 .. $wide) x 2);
$cached = $node->safe_psql('postgres', 'SELECT count(*) FROM gpuagg_cache WHERE "column" IS NOT NULL');
cmp_ok($cached, '<', 60 * $wide, 'not all columns are cached');
cmp_ok($cached, '>', 60 * $wide / 2, 'but most are');
$last = sum_of("wide$wide", @columns);
$node->safe_psql('postgres', $last) for 1 .. 3;
is_served($last, 'columns that are used are cached');
$node->safe_psql('postgres', "SELECT gpuagg_cache_evict(('wide' || i)::regclass) FROM generate_series(1, $wide) i");
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpuagg_cache'), 0, 'all are given back, too');

# Whoever reads a table counts its use, be it a worker.
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; '
	. 'SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off; ';
for my $what ([ 'few', 'a table', 'k' ], [ 'parted', 'a partition', 'k' ])
{
	my ($table, $name, $column) = @$what;
	my $query = sum_of($table, $column);
	my $expected = $node->safe_psql('postgres', "SET gpuagg.enabled = off; SELECT sum(k) FROM $table");
	is($node->safe_psql('postgres', "$parallel $query $query $query"), join("\n", ($expected) x 3),
		"$name that only workers read");
	like($node->safe_psql('postgres', "$parallel EXPLAIN (ANALYZE, COSTS off, TIMING off) $query"),
		qr/Workers Launched: [12].*column cache \((\d+) of \1 blocks\).*built=0/s, 'is cached');
}

# Many scans of one query are one use.
$node->append_conf('postgresql.conf', "gpuagg.cache_memory = 1MB");
$node->restart;
$node->safe_psql('postgres', sum_of('rows', 'a')) for 1 .. 3;
my $before = bytes('rows');
cmp_ok($before, '>', 500_000, 'a column fills the memory');
# within more than a second, as a scan that was refused memory does not ask again before that
is($node->safe_psql('postgres', <<SQL), 50000 * 200, 'scans of another one are right');
SELECT sum((SELECT gpu_count(*) FROM few WHERE k > -o.i))
FROM (SELECT i, pg_sleep(0.008) FROM generate_series(1, 200) i) o
SQL
is(bytes('rows'), $before, 'and take nothing from it');
$node->safe_psql('postgres', sum_of('few', 'k')) for 1 .. 3;
cmp_ok(bytes('few'), '>', 0, 'queries do');

# A prewarm takes nothing from the tables of other owners.
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
my %kept = map { $_ => bytes($_) } qw(rows few);
my $prewarm = "SELECT gpuagg_cache_prewarm('large') FROM generate_series(1, 3)";
my ($rc, $out, $err) = $node->psql('postgres', $prewarm, extra_params => [ '-U', 'guest' ]);
like($err, qr/NOTICE: .*no memory in the column cache for all of table "large".*HINT: .*gpuagg_cache_evict\(\)/s, 'a prewarm says that memory is short');
is(bytes($_), $kept{$_}, "... and leaves $_ in the cache") for qw(rows few);
$node->safe_psql('postgres', "SELECT gpuagg_cache_evict('rows'), gpuagg_cache_evict('few')");
$node->safe_psql('postgres', $prewarm, extra_params => [ '-U', 'guest' ]);
cmp_ok(bytes('large'), '>', 500_000, 'a prewarm takes what is free');
$node->safe_psql('postgres', "SELECT gpuagg_cache_prewarm('larger') FROM generate_series(1, 3)", extra_params => [ '-U', 'guest' ]);
cmp_ok(bytes('larger'), '>', 0, "... and memory of its owner's other tables");

$node->stop;
done_testing();
