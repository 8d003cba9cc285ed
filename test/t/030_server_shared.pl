# Two clusters that share a device: their limits add up to its memory, what one gives back the other may have, and what
# happens to the server of one does not touch the other.
use strict;
use warnings;
use File::Temp;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

$ENV{GPUAGG_STUB_IDLE} = 1;
$ENV{GPUAGG_STUB_DEVICES} = 1;
# so little that the part that a server keeps in its pool, a sixty-fourth, is less than its copies
my $memory = 96 << 20;
$ENV{GPUAGG_STUB_MEMORY} = $memory;
$ENV{GPUAGG_STUB_SHARED} = File::Temp::tempdir(CLEANUP => 1) . '/device';
chmod 0777, $ENV{GPUAGG_STUB_SHARED} =~ s{/device}{}r;

my $conf = <<CONF;
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = 'eager'
gpuagg.cache_memory = '64MB'
gpuagg.cache_renew = 0
gpuagg.server_timeout = 3000
autovacuum = off
CONF
my @nodes = map { GpuaggNode->start_new($_, server => 1, conf => $conf) } 'one', 'two';
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

# What a server writes to the file (StubSharer in test/unit/cuda/cuda_stub.h), of the first device: the memory of its pool,
# what it uses of that, and its limit.
my $slots = 16;
sub shared
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

	ok(wait_until(sub { @numbers = shared($node); $condition->(@numbers) }), $node->name . ": $name") or
		diag("pool, used, limit: @numbers");
}

# The answer, and whether it came from the device's memory.
sub answers
{
	my ($node, $name, $resident) = @_;
	is($node->safe_psql('postgres', $query), $answer, $node->name . ": $name: the answer");
	return if !defined $resident;
	my $plan = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS off, TIMING off) $query");
	$resident ? like($plan, qr/Resident Rows: $rows/, '... from GPU memory') : unlike($plan, qr/Resident Rows: $rows/, '... not from GPU memory');
}

answers($_, 'first', undef) foreach @nodes;
answers($_, 'both have copies', 1) foreach @nodes;

# what one has the other's limit lacks
foreach my $node (@nodes)
{
	my $other = $node == $one ? $two : $one;
	wait_for($other, sub { $_[1] > 4 << 20 }, 'has copies');
	# the pool may be smaller by now: memory of the last query goes back when the server is idle
	wait_for($node, sub { abs($_[2] - ($memory - (shared($other))[0]) / 5 * 4) < 10 }, 'its limit is four fifths of what the other leaves');
}

# a third process takes all that is free, now and later: both give copies back, and no query fails
sub third_takes
{
	my ($bytes) = @_;
	open my $file, '+<:raw', $ENV{GPUAGG_STUB_SHARED} or die $!;
	seek $file, 5 * (-s $ENV{GPUAGG_STUB_SHARED}) / $slots, 0;
	print $file pack 'lx4Q', $bytes ? ($$, $bytes) : (0, 0);
	close $file;
}
third_takes($memory);
wait_for($_, sub { $_[0] < 9 << 20 && $_[1] < 8 << 20 }, 'copies go where a third process needs the memory') foreach @nodes;
answers($_, 'without memory', 0) foreach @nodes;
third_takes(0);
wait_for($_, sub { $_[2] > $memory / 2 }, 'the limit grows again') foreach @nodes;
answers($_, 'afterwards', undef) foreach @nodes;
answers($_, 'afterwards again', 1) foreach @nodes;

# side by side
{
	my @sessions = map { $_->background_psql('postgres') } @nodes;
	my $wrong = 0;
	for my $i (1 .. 10)
	{
		$_->query_safe("SELECT 1") foreach @sessions;
		$wrong += $_->query($query) ne $answer foreach @sessions;
	}
	is($wrong, 0, 'queries of both by turns');
	$_->quit foreach @sessions;
}

# the server of one killed, then the other's hung: the other cluster goes on from its copies
foreach my $node (@nodes)
{
	my $other = $node == $one ? $two : $one;
	my $pid = $node->kill_server;
	answers($other, $node->name . '\'s server was killed', 1);
	ok($node->wait_for_another_server($pid), $node->name . ': it is started again');
	answers($node, 'after that', undef);
}
foreach my $node (@nodes)
{
	my $other = $node == $one ? $two : $one;
	my $pid = $node->safe_psql('postgres', 'SELECT server_pid FROM gpuagg_status');
	kill 'STOP', $pid;
	answers($other, $node->name . '\'s server hangs', 1);
	is($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $query"), $answer, '... which itself answers without it');
	ok($node->poll_query_until('postgres', "SELECT server = 'ready' AND server_pid <> $pid FROM gpuagg_status"), '... and starts another one');
	answers($node, 'after that', undef);
}

$_->stop foreach @nodes;
done_testing();
