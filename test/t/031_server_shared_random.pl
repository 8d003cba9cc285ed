# Two clusters share two devices. A third process allocates and frees device memory at random while many sessions run queries. No query
# fails or gives a wrong answer, no server ends, and no session is left. SHARED_SECONDS is the duration.
use strict;
use warnings;
use File::Temp;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $seconds = $ENV{SHARED_SECONDS} // 6;
my $directory = File::Temp::tempdir(CLEANUP => 1);
chmod 0777, $directory;
$ENV{GPUAGG_STUB_IDLE} = 0;		# servers adapt their limits immediately
$ENV{GPUAGG_STUB_DEVICES} = 2;
$ENV{GPUAGG_STUB_RANGES} = 1;
$ENV{GPUAGG_STUB_SHARED} = "$directory/device";

my @nodes = map { GpuaggNode->start_new($_, cached => 1) } 'one', 'two';
my @queries = (
	'SELECT count(*), sum(c), sum(s) FROM (SELECT k, gpu_count(*) AS c, gpu_sum(a + b) AS s FROM rows GROUP BY k) g',
	'SELECT count(*), sum(c), sum(s) FROM (SELECT a, gpu_count(*) AS c, gpu_sum(b) AS s FROM rows GROUP BY a) g',
	'SELECT count(*), sum(c), sum(s) FROM (SELECT t, gpu_count(*) AS c, gpu_sum(b) AS s FROM rows GROUP BY t) g',
	'SELECT gpu_count(*), gpu_sum(a), gpu_min(b), gpu_max(b) FROM rows WHERE a % 3 = 0',
	'SELECT k % 10, gpu_percentile_disc(0.5) WITHIN GROUP (ORDER BY b) FROM rows GROUP BY 1 ORDER BY 1',
	'SELECT k % 10, gpu_count(DISTINCT b) FROM rows GROUP BY 1 ORDER BY 1',
	'SELECT k % 10, gpu_histogram(b::float8, 0, 100000, 50) FROM rows GROUP BY 1 ORDER BY 1');
foreach my $node (@nodes)
{
	$node->safe_psql('postgres', "CREATE TABLE rows AS SELECT i % 1000 AS k, i::int8 AS a, i::int8 AS b, 'text ' || i % 500 AS t FROM generate_series(1, 100000) i");
	$node->safe_psql('postgres', 'VACUUM FREEZE ANALYZE rows');
	ok($node->wait_until_ready, $node->name . ': the server starts');
}

# A script for pgbench. A wrong answer makes a query fail with a division by zero.
my $script = '';
foreach my $query (@queries)
{
	my $rows = "SELECT string_agg(q::text, ';') FROM ($query) q";
	my $answer = $nodes[0]->safe_psql('postgres', "SET gpuagg.engine = 'cpu'; $rows");
	$script .= "SELECT 1 / (($rows) = '$answer')::int;\n";
}
append_to_file("$directory/script", $script);

# The third process. It leaves all, almost none or a little of each device's 1 GB.
my $third = fork;
if ($third == 0)
{
	my $slots = 16;
	open my $file, '+<:raw', $ENV{GPUAGG_STUB_SHARED} or die $!;
	srand 7;
	while (1)
	{
		my @left = map { my $r = rand; $r < 0.3 ? 1 << 30 : $r < 0.6 ? int rand 1 << 20 : int rand 60 << 20 } 0, 1;
		sysseek $file, 5 * (-s $file) / $slots, 0;
		syswrite $file, pack 'lx4Q2', $$, map { (1 << 30) - $_ } @left;
		usleep(rand 30_000);
	}
}
my @running = map {
	IPC::Run::start(['pgbench', '-n', '-f', "$directory/script", '-c', 3, '-T', $seconds, '-h', $_->host, '-p', $_->port, 'postgres'],
		'>&', "$directory/" . $_->name) } @nodes;
foreach my $n (0 .. 1)
{
	my $output = "$directory/" . $nodes[$n]->name;
	ok($running[$n]->finish, $nodes[$n]->name . ': all answers are right') or diag(slurp_file($output));
}
kill 'KILL', $third;
waitpid $third, 0;
foreach my $node (@nodes)
{
	my $name = $node->name;
	is($node->safe_psql('postgres', 'SELECT restarts FROM gpuagg_status'), 0, "$name: the server was not restarted");
	ok($node->wait_for_devices('sum(sessions)', 0), "$name: no session is left");
	cmp_ok($node->safe_psql('postgres', "SELECT sum(calls) FROM gpuagg_stats WHERE event = 'taken' AND engine = 'cuda'"), '>', 5, "$name: queries ran at the server");
	$node->safe_psql('postgres', 'DROP TABLE rows');
}
$_->stop foreach @nodes;
done_testing();
