# The heap feed with fewer buffers than the tables have pages: pages come and go,
# and the buffer after the last one holds some other table's page.
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

sub same
{
	my ($name) = @_;

	for my $table ('a', 'b', 'small', 'b', 'a')
	{
		my $query = "SELECT k, COUNT(*), $columns{$table} FROM $table GROUP BY k ORDER BY k";
		my $ours = $query =~ s/\b(COUNT|SUM|MIN)\(/gpu_\L$1(/gr;

		is($node->safe_psql('postgres', "$sets $ours"), $node->safe_psql('postgres', $query), "$table $name");
	}
}

# The table's pages, and those that EXPLAIN says were found in buffers or read.
sub pages
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

same('filled');
my ($relpages, $seen) = pages('SELECT gpu_sum(v) FROM a');
is($seen, $relpages, 'every page is counted once');
for my $change (
	'DELETE FROM a WHERE id % 10 = 3',
	"UPDATE b SET t = 'y' || t WHERE id % 4 = 0",
	'VACUUM a, b',
	'CREATE TABLE other AS SELECT * FROM a',
	'VACUUM FULL b')
{
	$node->safe_psql('postgres', $change);
	same("after $change");
}
my $log = slurp_file($node->logfile);
unlike($log, qr/leak|PANIC|TRAP/, 'no pin is left behind');
$node->stop;
done_testing();
