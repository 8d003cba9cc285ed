# A plan that is rescanned for each row of another takes the same memory for many
# rescans as for few, and time in proportion to them, with subplans in its quals,
# arguments and constants.
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

# Runs a query in a session of its own; its answer, its processor time, and the kB that its process has grown to.
sub run
{
	my ($query) = @_;
	my $session = $node->background_psql('postgres');
	my $backend = $session->query('SELECT pg_backend_pid()');
	my $began = computed($backend);
	my $answer = $session->query($query);
	my $computed = computed($backend) - $began;
	my $peak = slurp_file("/proc/$backend/status") =~ /^VmHWM:\s+(\d+)/m ? $1 : die 'no VmHWM';

	$session->quit;
	return ($answer, $computed, $peak);
}

# Core's answer.
sub core
{
	my ($query) = @_;

	$query =~ s/gpu_//g;
	return $node->safe_psql('postgres', "SET gpuagg.require = 'forbid'; $query");
}

my $hashed = 'NOT IN (SELECT i FROM ids WHERE i > 10)';
my @cases = (
	[ 'hashed subplan in a qual', "SELECT gpu_sum(s.x + o.i) FROM small s WHERE s.k $hashed" ],
	[ 'and a constant argument', "SELECT gpu_regr_avgx(o.i, s.x) FROM small s WHERE s.k $hashed" ],
	[ 'and a correlated subplan in an argument',
		"SELECT gpu_regr_avgx(o.i, (SELECT max(i) FROM ids WHERE i < s.x)) FROM small s WHERE s.k $hashed AND s.x > 90" ],
	[ 'in a CASE, of partitions', "SELECT gpu_regr_avgx(o.i, CASE WHEN p.x $hashed THEN p.x ELSE 0 END) FROM parts p WHERE p.k $hashed" ]);

foreach my $case (@cases)
{
	my ($name, $query) = @$case;
	my $outer = "SELECT sum(v * i) FROM (SELECT i, ($query) AS v FROM generate_series(1, %d) AS o(i) OFFSET 0) s";
	my ($few, $computed_few, $peak_few) = run(sprintf($outer, 500));
	my ($many, $computed_many, $peak_many) = run(sprintf($outer, 4000));

	like($node->safe_psql('postgres', 'EXPLAIN ' . sprintf($outer, 500)), qr/Feed: .*heap pages/, "$name: feed");
	is($few, core(sprintf($outer, 500)), "$name: 500 rescans");
	is($many, core(sprintf($outer, 4000)), "$name: 4,000 rescans");
	cmp_ok($peak_many - $peak_few, '<', 4096, "$name: kB more for 4,000 rescans");
	# eight times as many; 64 times the time if each cost as much as all before
	cmp_ok($computed_many, '<', 24 * $computed_few + 1000, "$name: time for 4,000 rescans");
}
$node->stop;
done_testing();
