# Two clusters share a device. Their limits adapt to its memory: memory that one gives back is available to the other. A fault of one
# server does not affect the other. The answer of the query is known.
use strict;
use warnings;
use File::Temp;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{GPUAGG_STUB_IDLE} = 1;
$ENV{GPUAGG_STUB_DEVICES} = 1;
# so little memory that the part which a server keeps in its pool, a sixty-fourth, is smaller than its copies
my $memory = 96 << 20;
$ENV{GPUAGG_STUB_MEMORY} = $memory;
$ENV{GPUAGG_STUB_SHARED} = File::Temp::tempdir(CLEANUP => 1) . '/device';
chmod 0777, $ENV{GPUAGG_STUB_SHARED} =~ s{/device}{}r;

my @nodes = map { GpuaggNode->start_new($_, cached => 1, conf => 'gpuagg.server_timeout = 3000') } 'one', 'two';
my ($one, $two) = @nodes;
my $rows = 400000;
my $query = 'SELECT count(*), sum(c), sum(s) FROM (SELECT k, gpu_count(*) AS c, gpu_sum(a + b) AS s FROM rows GROUP BY k) g';
my $answer = join '|', 1000, $rows, $rows * ($rows + 1);

foreach my $node (@nodes)
{
	$node->safe_psql('postgres', "CREATE TABLE rows AS SELECT i % 1000 AS k, i::int8 AS a, i::int8 AS b FROM generate_series(1, $rows) i");
	$node->safe_psql('postgres', 'VACUUM FREEZE ANALYZE rows');
	ok($node->wait_until_ready, $node->name . ': the server starts');
}

sub used { return $_[0]->devices('sum(memory_used)') }

# Reads a server's numbers of the first device from the shared file (StubSharer in test/unit/cuda/cuda_stub.h): the size of its memory
# pool, the used part of it, and its limit, all in bytes.
my $slots = 16;
sub shared_numbers
{
	my ($node) = @_;
	my $pid = $node->safe_psql('postgres', 'SELECT server_pid FROM gpuagg_status');
	my $bytes = slurp_file($ENV{GPUAGG_STUB_SHARED});
	my $size = length($bytes) / $slots;
	my $devices = ($size - 8) / 24;
	foreach my $slot (0 .. $slots - 1)
	{
		my ($owner, @numbers) = unpack 'lx4Q*', substr $bytes, $slot * $size, $size;
		return @numbers[0, $devices, 2 * $devices] if $owner == $pid;
	}
	die $node->name . ' has no slot';
}

# Waits until a condition over these three numbers holds.
sub wait_for
{
	my ($node, $condition, $name) = @_;
	my @numbers;

	ok(wait_until(sub { @numbers = shared_numbers($node); $condition->(@numbers) }), $node->name . ": $name") or
		diag("pool, used, limit: @numbers");
}

# Tests the answer, and if $resident is defined, whether rows come from the device.
sub check_answer
{
	my ($node, $name, $resident) = @_;
	is($node->safe_psql('postgres', $query), $answer, $node->name . ": the answer is right, $name");
	return if !defined $resident;
	my $plan = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS off, TIMING off) $query");
	$resident ? like($plan, qr/Resident Rows: $rows/, '... from the device') : unlike($plan, qr/Resident Rows: $rows/, '... not from the device');
}

check_answer($_, 'at first', undef) foreach @nodes;
check_answer($_, 'both servers have copies', 1) foreach @nodes;

# memory of one server reduces the other's limit
foreach my $node (@nodes)
{
	my $other = $node == $one ? $two : $one;
	wait_for($other, sub { $_[1] > 4 << 20 }, 'the server has copies');
	# reads the pool's size each time, because it shrinks when the server is idle
	wait_for($node, sub { abs($_[2] - ($memory - (shared_numbers($other))[0]) / 5 * 4) < 10 }, 'the limit is four fifths of the memory that the other leaves');
}

# ---- a third process takes all free memory: both servers free copies, and no query fails ----

# Writes the memory of a third process to the shared file; 0 frees it.
sub allocate_in_third_process
{
	my ($bytes) = @_;
	open my $file, '+<:raw', $ENV{GPUAGG_STUB_SHARED} or die $!;
	seek $file, 5 * (-s $ENV{GPUAGG_STUB_SHARED}) / $slots, 0;
	print $file pack 'lx4Q', $bytes ? ($$, $bytes) : (0, 0);
	close $file;
}
allocate_in_third_process($memory);
wait_for($_, sub { $_[0] < 9 << 20 && $_[1] < 8 << 20 }, 'the server frees copies when a third process needs the memory') foreach @nodes;
check_answer($_, 'without device memory', 0) foreach @nodes;
allocate_in_third_process(0);
wait_for($_, sub { $_[2] > $memory / 2 }, 'the limit grows again') foreach @nodes;
check_answer($_, 'after the third process', undef) foreach @nodes;
check_answer($_, 'and again', 1) foreach @nodes;

# ---- queries of both clusters alternate ----
{
	my @sessions = map { $_->background_psql('postgres') } @nodes;
	my $wrong = 0;
	for my $i (1 .. 10)
	{
		$_->query_safe("SELECT 1") foreach @sessions;
		$wrong += $_->query($query) ne $answer foreach @sessions;
	}
	is($wrong, 0, 'all answers are right when queries of both clusters alternate');
	$_->quit foreach @sessions;
}

# ---- one server is killed or stopped: the other cluster continues with its copies ----
foreach my $node (@nodes)
{
	my $other = $node == $one ? $two : $one;
	my $pid = $node->kill_server;
	check_answer($other, 'after the other server was killed', 1);
	ok($node->wait_for_another_server($pid), $node->name . ': the server starts again');
	check_answer($node, 'from the next server', undef);
}
foreach my $node (@nodes)
{
	my $other = $node == $one ? $two : $one;
	my $pid = $node->safe_psql('postgres', 'SELECT server_pid FROM gpuagg_status');
	kill 'STOP', $pid;
	check_answer($other, 'while the other server is stopped', 1);
	is($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $query"), $answer, $node->name . ': the answer is right with a stopped server');
	ok($node->poll_query_until('postgres', "SELECT server = 'ready' AND server_pid <> $pid FROM gpuagg_status"), '... and another server starts');
	check_answer($node, 'from the next server', undef);
}

$_->stop foreach @nodes;
done_testing();
