# Rescans: 4,000 rescans of a plan need no more memory than 500, and at most proportionally more processor time. The plans have
# subplans in conditions, arguments and constants. The reference is core's answer.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cpu'
CONF
$node->safe_psql('postgres', <<SQL);
CREATE TABLE ids AS SELECT i FROM generate_series(1, 30) i;
CREATE TABLE small AS SELECT i AS x, i AS k FROM generate_series(1, 100) i;
CREATE TABLE parts (x int, k int) PARTITION BY RANGE (k);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (50);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (50) TO (200);
INSERT INTO parts SELECT * FROM small;
ANALYZE;
SQL

# Executes a query in a new session. Returns its answer, its processor time in ms, and the peak memory of its process in kB.
sub measure
{
	my ($query) = @_;
	my $session = $node->background_psql('postgres');
	my $backend = $session->query('SELECT pg_backend_pid()');
	my $began = cpu_milliseconds($backend);
	my $answer = $session->query($query);
	my $computed = cpu_milliseconds($backend) - $began;
	my $peak = slurp_file("/proc/$backend/status") =~ /^VmHWM:\s+(\d+)/m ? $1 : die 'no VmHWM';

	$session->quit;
	return ($answer, $computed, $peak);
}


my $hashed = 'NOT IN (SELECT i FROM ids WHERE i > 10)';
my @cases = (
	[ 'hashed subplan in a qual', "SELECT gpu_sum(s.x + o.i) FROM small s WHERE s.k $hashed" ],
	[ 'hashed subplan in a qual, constant argument', "SELECT gpu_regr_avgx(o.i, s.x) FROM small s WHERE s.k $hashed" ],
	[ 'hashed subplan in a qual, correlated subplan in an argument',
		"SELECT gpu_regr_avgx(o.i, (SELECT max(i) FROM ids WHERE i < s.x)) FROM small s WHERE s.k $hashed AND s.x > 90" ],
	[ 'hashed subplan in a CASE, partitions', "SELECT gpu_regr_avgx(o.i, CASE WHEN p.x $hashed THEN p.x ELSE 0 END) FROM parts p WHERE p.k $hashed" ]);

foreach my $case (@cases)
{
	my ($name, $query) = @$case;
	my $outer = "SELECT sum(v * i) FROM (SELECT i, ($query) AS v FROM generate_series(1, %d) AS o(i) OFFSET 0) s";
	my ($few, $computed_few, $peak_few) = measure(sprintf($outer, 500));
	my ($many, $computed_many, $peak_many) = measure(sprintf($outer, 4000));

	like($node->safe_psql('postgres', 'EXPLAIN ' . sprintf($outer, 500)), qr/Feed: .*heap pages/, "$name: the plan uses the heap feed");
	is($few, $node->safe_psql('postgres', core_query(sprintf($outer, 500))), "$name: the answer of 500 rescans is right");
	is($many, $node->safe_psql('postgres', core_query(sprintf($outer, 4000))), "$name: the answer of 4,000 rescans is right");
	cmp_ok($peak_many - $peak_few, '<', 4096, "$name: 4,000 rescans need little more memory, in kB");
	# eight times as many rescans; the time would be 64 times as long if it were quadratic
	cmp_ok($computed_many, '<', 24 * $computed_few + 1000, "$name: the time is proportional to the number of rescans");
}
$node->stop;
done_testing();
