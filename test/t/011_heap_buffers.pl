# The heap feed with fewer buffers than the tables have pages, so that buffers are reused during a scan. The reference is core's
# answer. Also: each page is read once.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', conf => <<CONF);
shared_buffers = '1MB'
synchronize_seqscans = off
gpuagg.engine = 'cpu'
autovacuum = off
max_parallel_workers_per_gather = 2
CONF
$node->safe_psql('postgres', <<SQL);
CREATE TABLE a (id int, k int, v float8);
CREATE TABLE b (id int, k int, t text);
CREATE TABLE small (id int, k int, v float8);
DO \$\$
BEGIN
	FOR part IN 1 .. 20 LOOP
		INSERT INTO a SELECT i, i % 5, i / 3.0 FROM generate_series(1, 700) i;
		INSERT INTO b SELECT i, i % 3, repeat('x', i % 50) FROM generate_series(1, 500) i;
	END LOOP;
END \$\$;
INSERT INTO small SELECT * FROM a LIMIT 1000;
VACUUM ANALYZE;
SQL

my $sets = "SET gpuagg.require = 'require'; SET max_parallel_workers_per_gather = 0;";
my %columns = (a => 'SUM(v), SUM(id)', b => 'MIN(t), SUM(length(t))', small => 'SUM(v), SUM(id)');

# Tests the answers over all tables.
sub check_tables
{
	my ($name) = @_;

	for my $table ('a', 'b', 'small', 'b', 'a')
	{
		my $query = "SELECT k, COUNT(*), $columns{$table} FROM $table GROUP BY k ORDER BY k";
		my $ours = $query =~ s/\b(COUNT|SUM|MIN)\(/gpu_\L$1(/gr;

		is_right_answer($node, $ours, "the answer over table $table is right $name", settings => $sets, reference => $query);
	}
}

# The number of table a's pages, and the number of pages that EXPLAIN reports as hit or read.
sub count_pages
{
	my ($query) = @_;
	my $out = $node->safe_psql('postgres',
		"SET gpuagg.cache = off; $sets SELECT relpages FROM pg_class WHERE relname = 'a';
		EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) $query");
	my ($relpages) = $out =~ /\A(\d+)/;
	my ($buffers) = $out =~ /Buffers: shared (.*)/;
	my $sum = 0;

	$sum += $_ for $buffers =~ /(?:hit|read)=(\d+)/g;
	return ($relpages, $sum);
}

check_tables('at first');
my ($relpages, $seen) = count_pages('SELECT gpu_sum(v) FROM a');
is($seen, $relpages, 'EXPLAIN counts each page once');
for my $change (
	'DELETE FROM a WHERE id % 10 = 3',
	"UPDATE b SET t = 'y' || t WHERE id % 4 = 0",
	'VACUUM a, b',
	'CREATE TABLE other AS SELECT * FROM a',
	'VACUUM FULL b')
{
	$node->safe_psql('postgres', $change);
	check_tables("after $change");
}
my $log = slurp_file($node->logfile);
unlike($log, qr/leak|PANIC|TRAP/, 'the log reports no leaked pin and no crash');
$node->stop;
done_testing();
