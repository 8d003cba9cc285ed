# Cells of kept lookups that the GPU server keeps by their names: they are sent once, and never used where others are meant. The
# reference is core's answer.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Resident;
use Test::More;

my $node = GpuaggNode->start_new('main', cached => 1, conf => <<CONF);
timezone = 'UTC'
enable_mergejoin = off
enable_nestloop = off
gpuagg.replace_builtin = on
CONF

$node->safe_psql('postgres', <<'SQL');
CREATE TABLE f (id int, k int, k2 int, wide int, v int);
INSERT INTO f SELECT i, i * 7919 % 1200 - 100, i % 90, i % 400 * 2000, i % 1000 FROM generate_series(1, 20000) i;
CREATE TABLE dim (k int PRIMARY KEY, name text, region text, weight int, price numeric(8,2), day date);
INSERT INTO dim SELECT i, 'name ' || i % 50, (ARRAY['east', 'west', NULL])[i % 3 + 1], i % 40 - 20, (i % 300) / 4.0, date '2020-01-01' + i % 30
FROM generate_series(0, 999) i WHERE i % 11 <> 5;
UPDATE dim SET weight = NULL, price = NULL WHERE k % 13 = 0;
CREATE TABLE small (k int PRIMARY KEY, label text);
INSERT INTO small SELECT i, 'label ' || i % 5 FROM generate_series(0, 70) i;
-- three columns of 3 MB each
CREATE TABLE wide (wide int PRIMARY KEY, a int, b int, c int);
INSERT INTO wide SELECT i * 80, i % 3 * 100000000, i % 5 * 100000000, i % 7 * 100000000 FROM generate_series(0, 10000) i;
VACUUM FREEZE ANALYZE;
SQL

$Resident::node = $node;
ok($node->wait_until_ready, 'the server starts');
$node->safe_psql('postgres', 'SELECT gpuagg_cache_prewarm(\'f\')');

# Tests that the query's answer is right and that it reads columns from the device, with the cells of all its lookups 'sent' or 'kept'
# before. is_resident() executes the query twice.
sub is_read
{
	my ($query, $how, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $plan = plan_and_errors($query);
	my $wrong = $how eq 'kept' ? 'sent' : 'kept';

	like($plan, qr/Resident Rows: [1-9]/, "$name: from the device");
	my @lookups = grep { /Lookup: / } split /\n/, $plan;
	ok(@lookups && !grep({ !/GPU cells: \d+ kB $how$/ } @lookups), "$name: cells are $how") || diag($plan);
	return is_core_answer($query, "$name: answer");
}

# Executes a query twice: its cells are sent, and then kept.
sub is_sent_once
{
	my ($query, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	is_read($query, 'sent', $name);
	return is_read($query, 'kept', "$name, again");
}

my $star = 'SELECT region, label, weight, count(*), sum(v), sum(price) FROM f JOIN dim USING (k) JOIN small ON small.k = f.k2 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3';

is_sent_once($star, 'a star');
is_sent_once('SELECT day, count(*), count(price), max(weight) FROM f JOIN dim USING (k) GROUP BY 1 ORDER BY 1', 'columns of all kinds');

# ---- other cells of the same lookup have other names ----
is_read("SELECT count(*), sum($_) FROM f JOIN dim USING (k)", 'sent', $_) foreach 'length(name)', 'length(name) + 1';
foreach my $expression ('length(name)', 'length(name) + 1', 'length(name) * 1000', 'ascii(right(name, 1))', "CASE name WHEN 'name 7' THEN NULL ELSE 3 END",
	"CASE name WHEN 'name 8' THEN NULL ELSE 3 END")
{
	is_core_answer("SELECT count(*), sum($expression) FROM f JOIN dim USING (k)") for 1 .. 2;
}
is_core_answer("SELECT $_, count(*) FROM f JOIN dim USING (k) GROUP BY 1 ORDER BY 1")
  foreach 'name', 'upper(name)', 'reverse(name)', "replace(name, '1', '2')", 'weight', 'weight + 1', 'weight::text', 'extract(dow FROM day)', 'name';
foreach my $join ('JOIN', 'LEFT JOIN')
{
	is_core_answer("SELECT coalesce(region, 'none'), count(*), count(weight), sum(weight) FROM f $join dim USING (k) GROUP BY 1 ORDER BY 1") for 1 .. 2;
}
is_core_answer('SELECT count(*), sum(v) FROM f WHERE k IN (SELECT k FROM dim)') for 1 .. 2;
is_core_answer('SELECT count(*), sum(v) FROM f WHERE NOT EXISTS (SELECT FROM dim WHERE dim.k = f.k)') for 1 .. 2;

# ---- plans ----
my $json = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, FORMAT JSON) $star");
like($json, qr/"GPU Cells Kept": [1-9]\d*,\s*"GPU Cells Sent": 0,\s*"GPU Cells Write Time": 0\.000/, 'JSON has the cells');
like($node->safe_psql('postgres', "SELECT gpuagg_cache_evict('dim'); EXPLAIN (ANALYZE) $star"), qr/GPU cells: \d+ kB sent, written in \d/,
	'the time of writing is shown');

# ---- a dimension that changes, within a transaction and after it; evicted lookups ----
is_core_answer("BEGIN; UPDATE dim SET region = 'gone' WHERE k < 300; $star; ROLLBACK");
is_core_answer($star);
foreach my $change ("UPDATE dim SET region = 'north', weight = weight + 1 WHERE k % 5 = 0", 'DELETE FROM dim WHERE k BETWEEN 100 AND 200',
	"INSERT INTO dim VALUES (-50, 'new', 'south'), (1099, 'last', 'south')", 'TRUNCATE small', "INSERT INTO small SELECT i, 'other ' || i % 7 FROM generate_series(0, 80) i")
{
	$node->safe_psql('postgres', $change);
	is_core_answer($star, "$change: answer") for 1 .. 2;
}
$node->safe_psql('postgres', 'VACUUM FREEZE ANALYZE dim, small');
is_core_answer($star);
is_read($star, 'kept', 'after changes');
$node->safe_psql('postgres', "SELECT gpuagg_cache_evict('dim'), gpuagg_cache_evict('small')");
is_sent_once($star, 'after evicting the lookups');

# ---- two sessions at once ----
{
	my @sessions = map { $node->background_psql('postgres') } 1 .. 2;
	my $right = core_answer($star);

	$node->safe_psql('postgres', "SELECT gpuagg_cache_evict('dim')");
	for my $round (1 .. 3)
	{
		is($_->query($star), $right, "two sessions, round $round") foreach @sessions;
	}
	$_->quit foreach @sessions;
}

# ---- cells that do not fit into one message ----
my $large = 'SELECT a, b, count(*), sum(c) FROM f JOIN wide USING (wide) GROUP BY 1, 2 ORDER BY 1, 2';
is_read($large, 'kept', 'large tables') if is_read($large, 'sent', 'large tables in several messages');

# ---- restarts of the server, and of the cluster ----
ok($node->wait_for_another_server($node->kill_server), 'the server is back');
is_core_answer($star);
is_read($star, 'kept', 'after a restart of the server');
$node->restart;
ok($node->wait_until_ready, 'the server starts again');
$node->safe_psql('postgres', 'SELECT gpuagg_cache_prewarm(\'f\')');
is_core_answer($star);
is_read($star, 'kept', 'after a restart of the cluster');

# ---- little memory ----
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.device_cache_memory = '1MB'");
$node->restart;
ok($node->wait_until_ready, 'the server starts with little memory');
is_core_answer($_) foreach ($star, $large) x 2;

$node->stop;
done_testing();
