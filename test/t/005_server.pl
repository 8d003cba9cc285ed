# The GPU server over the stub of the CUDA run time: the choice of the engine, shared queries of parallel plans, faults of the server
# and of devices at every stage of a query, garbage on the socket, many sessions, and settings. The answers of all queries are known.
use strict;
use warnings;
use IO::Socket::UNIX;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

$ENV{GPUAGG_STUB_IDLE} = 10;
my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
max_connections = 100
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.cache = off
CONF
$node->safe_psql('postgres', <<SQL);
CREATE TABLE rows AS SELECT i, i % 1000 AS k, (i % 37)::text AS t, i::float8 AS x FROM generate_series(1, 1000000) i;
CREATE TABLE odd (k int, n numeric(12, 2));
INSERT INTO odd SELECT k, CASE WHEN i % 250000 < 2 THEN 'NaN'::numeric ELSE i END FROM rows;
CREATE TABLE few AS SELECT * FROM rows WHERE i <= 1000;
CREATE TABLE scales AS SELECT k, round(i * 0.01, 2 + (i % 7 = 0)::int) AS n FROM rows WHERE i <= 100000;
ANALYZE rows, odd, few, scales;
SQL
my $socket = $node->socket_path;
my $version = $node->protocol_version;
my $query = 'SELECT sum(c), sum(s), count(*) FROM (SELECT k, t, gpu_count(*) c, gpu_sum(i) s FROM rows GROUP BY k, t) g';
my $answer = '1000000|500000500000|37000';
my $parallel = parallel_settings();
my $engine = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k, gpu_sum(x) FROM rows GROUP BY k";

# Sums of numerics, compared with core's. The CPU fallback takes the batches with NaN, which the GPU cannot represent.
my $odd = 'SELECT count(*) FROM (SELECT k, gpu_sum(n) s FROM odd GROUP BY k) a JOIN (SELECT k, sum(n) s FROM odd GROUP BY k) b USING (k, s)';

ok($node->wait_until_ready, 'the server starts with the cluster');
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
is((stat $socket)[2] & 0777, 0600, 'only the owner can access the socket');
is($node->safe_psql('postgres', 'SELECT count(*), min(name) FROM gpuagg_devices()'), '2|stub', 'both devices are listed');
like($node->safe_psql('postgres', $engine), qr/Engine: cuda.*Strategy: direct/s, 'queries run at the server');
is($node->safe_psql('postgres', $query), $answer, '... and give the right answer');
is($node->safe_psql('postgres', "$parallel $query"), $answer, '... also in a parallel plan');
like($node->safe_psql('postgres', $engine =~ s/k, gpu_sum/k, k, gpu_sum/r =~ s/BY k/BY 1, 2/r), qr/Engine: cuda(?!.*Rows on CPU)/s, 'one column can be two keys');

# ---- the planner's choice of the engine ----

like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $engine"), qr/Engine: cuda/, 'a query over many rows uses the GPU');
like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; " . $engine =~ s/rows/few/r), qr/Engine: cpu \(too few rows for the GPU\)/,
	'... and a query over few rows does not');
# Values that are counted are returned, which does not pay if there are as many as rows.
foreach my $aggregate ('entropy(k)', 'mad(k)', 'value_counts(t, 3)', 'histogram_equidepth(i, 10)', 'approx_percentile(i, 0.5)')
{
	like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT gpu_$aggregate FROM rows"), qr/Engine: cuda/, "$aggregate uses the GPU");
}
foreach my $aggregate ('entropy(i)', 'mad(i)', 'value_counts(i * 2, 3)', 'summary(i)')
{
	like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT gpu_$aggregate FROM rows"), qr/Engine: cpu \(too few rows/, "$aggregate does not");
}
foreach my $explain ('EXPLAIN (COSTS OFF)', 'EXPLAIN (ANALYZE, COSTS OFF)')
{
	like($node->safe_psql('postgres', "$explain SELECT k, gpu_count(*), string_agg(t, ',') FROM rows GROUP BY k"),
		qr/Engine: cpu \(string_agg needs its own transition function, which runs only on the CPU\)/, "$explain: an aggregate of core in the same query needs the CPU");
	like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $explain SELECT k, gpu_count(*), string_agg(t, ',') FROM few GROUP BY k"),
		qr/Engine: cpu \(string_agg needs its own transition function, which runs only on the CPU\)/, '... and this reason has priority over too few rows');
}
# The CPU engine alone sums numerics of several scales, also in a parallel plan.
{
	my $scales = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k, gpu_sum(n), gpu_avg(n) FROM scales GROUP BY k';
	like($node->safe_psql('postgres', $scales), qr/Engine: cpu \(gpu_sum needs/, 'numerics without a declared scale');
	like($node->safe_psql('postgres', "$parallel $scales"), qr/Engine: cpu \(sums of numerics.*Participants: 3/s, '... in a parallel plan');
}
like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; SET gpuagg.gpu_startup_cost = 0; " . $engine =~ s/rows/few/r), qr/Engine: cuda/,
	'few rows use the GPU if it has no startup cost');

# Four int4 keys fill the 16 bytes of a packed key. A byte to mark NULLs, or more keys, make it longer.
{
	my $four = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT gpu_count(*) FROM rows GROUP BY i % 2, i % 3, i % 5, CASE WHEN i > 10 THEN i % 7 END';
	like($node->safe_psql('postgres', $four =~ s/CASE.*END/i % 7/r), qr/Engine: cuda(?!.*Rows on CPU)/s, 'keys of 16 bytes run on the GPU');
	like($node->safe_psql('postgres', $four), qr/Engine: cuda(?!.*Rows on CPU)/s, '... and with a NULL key');
	like($node->safe_psql('postgres', "$parallel $four"), qr/Engine: cuda.*Participants: 3(?!.*Rows on CPU)/s, '... also in a parallel plan');
	like($node->safe_psql('postgres', "SET gpuagg.strategy = hash; $four, i % 11, i::int8 % 13"), qr/Engine: cuda.*Strategy: hash(?!.*Rows on CPU)/s,
		'... and longer keys');
	like($node->safe_psql('postgres', "$four, i % 11, i % 13, i % 17, i % 19, i % 23"), qr/Engine: cpu \(the query has more GROUP BY keys than the GPU supports\)/,
		'but not nine keys');
}

# The engine for distinct values fails. A CPU engine contains it.
like($node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF) SELECT gpu_count(DISTINCT n), gpu_count(*), string_agg(DISTINCT n::text, ',')
		FROM (SELECT i % 5, CASE WHEN i % 7 = 0 THEN 1.0 ELSE 1.00 END::numeric FROM rows WHERE i < 10000) r(k, n) GROUP BY k"),
	qr/Engine: cpu \(cuda failed: equal keys print differently\)/, 'EXPLAIN names the engine that failed');

# ---- parallel plans ----

# The participants of a parallel scan share one query at the server. If keys are sent as dictionary codes of the process, each
# participant has its own query.
{
	my $before = $node->device('queries');
	like($node->safe_psql('postgres', "$parallel $engine"), qr/Workers Launched: 2.*Engine: cuda.*Participants: 3/s, 'a parallel scan has three participants');
	is($node->device('queries') - $before, 1, '... which share one query at the server');
	is($node->safe_psql('postgres', "$parallel SELECT count(*), sum(c), sum(s) FROM (SELECT k, gpu_count(*) c, gpu_sum(i) s FROM rows GROUP BY k) g"),
		'1000|1000000|500000500000', '... with the groups of all participants');
	is($node->safe_psql('postgres', "$parallel SELECT gpu_count(*), gpu_sum(i) FROM rows WHERE i < 0"), '0|', '... also without rows');
	is($node->safe_psql('postgres', "$parallel SELECT count(c) FROM (SELECT k, gpu_count(*) AS c FROM rows WHERE i < 0 GROUP BY k) g"), '0', '... and without groups');
	{
		my $err;
		$node->psql('postgres', "$parallel SELECT k, gpu_sum(CASE WHEN i > 900000 THEN 1e308 ELSE 0 END::float8) FROM rows GROUP BY k", stderr => \$err);
		like($err, qr/ERROR: +value out of range: overflow/, '... and an overflow is an error');
	}
	is($node->safe_psql('postgres', "$parallel SELECT gpu_count(*), gpu_sum(i) FROM rows"), '1000000|500000500000', '... and without keys');
	is($node->safe_psql('postgres', "$parallel $odd"), '1000', '... also if the CPU fallback takes some rows');
	like($node->safe_psql('postgres', "$parallel EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $odd"),
		qr/Engine: cuda.*Input Rows: 1000000.*Participants: 3.*Rows on CPU: [1-9]\d{3,5}\b/s, '... which are few');
	ok($node->wait_for_device('memory_used', 0), '... and no device memory is left');
	$node->set_fault('lane 2');
	my ($out, $err);
	$node->psql('postgres', "SET client_min_messages = 'debug1'; SET gpuagg.batch_rows = 1024;
		$parallel SELECT count(*), sum(c), sum(s) FROM (SELECT k, gpu_count(*) c, gpu_sum(i) s FROM rows GROUP BY k) g", stdout => \$out, stderr => \$err);
	$node->clear_fault;
	is($out, '1000|1000000|500000500000', 'participants without device memory share the query with those that have it');
	like($err, qr/engine "cuda" failed: out of memory/, '... and a message gives the reason');
	# the CPU engine would store the states of these aggregates in another form
	foreach my $wide ('gpu_histogram(x, 0, 1000000, 6000)', 'gpu_approx_count_distinct(i)')
	{
		my $rows = "SELECT md5(string_agg(h::text, ',' ORDER BY k)) FROM (SELECT k, $wide AS h, gpu_count(*) FROM rows WHERE k < 10 GROUP BY k) g";
		my $plain = $node->safe_psql('postgres', "SET gpuagg.require = 'forbid'; $rows");

		foreach my $lane (1 .. 3)
		{
			$node->set_fault("lane $lane");
			is($node->safe_psql('postgres', "$parallel $rows"), $plain, "... $wide gives the right answer, without memory from lane $lane on");
			$node->clear_fault;
		}
	}
	$before = $node->device('queries');
	$node->safe_psql('postgres', "$parallel $engine, t" =~ s/k, gpu_sum/k, t, gpu_sum/r);
	is($node->device('queries') - $before, 3, 'each participant has its own query if keys are dictionary codes');
}

# Text keys exceed the memory for dictionaries, so that the CPU fallback spills their rows. Their sums overflow.
{
	my ($out, $err);
	$node->psql('postgres', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
		SELECT count(s) FROM (SELECT (i / 2)::text, gpu_sum(CASE WHEN i > 900000 THEN 1e308 ELSE 0 END::float8) AS s FROM rows GROUP BY 1) g",
		stdout => \$out, stderr => \$err);
	like($err, qr/value out of range: overflow/, 'an overflow of spilled rows is an error');
}

# ---- the server ends: idle, at a batch, when groups are fetched ----

foreach my $signal ('KILL', 'SEGV', 'ABRT')
{
	my $pid = $node->server_pid;
	kill $signal, $pid;
	wait_until(sub { !kill(0, $pid) });
	ok($node->wait_for_another_server($pid), "SIG$signal while idle: the server starts again");
	isnt($node->server_pid, $pid, '... as another process');
	is($node->safe_psql('postgres', $query), $answer, '... and queries run');
}
is($node->device('restarts'), 3, 'restarts are counted');
foreach my $what ('segv', 'abort', 'fault')
{
	foreach my $batch (1, 3)
	{
		my $pid = $node->server_pid;
		$node->set_fault("$what $batch");
		my ($out, $err);
		$node->psql('postgres', "SET client_min_messages = 'debug1';\n$query;", stdout => \$out, stderr => \$err);
		$node->clear_fault;
		is($out, $answer, "$what at batch $batch of a query: the CPU engine gives the answer");
		like($err, qr/engine "cuda" failed/, '... and a message gives the reason');
		ok($node->wait_for_another_server($pid), '... the server starts again');
		like($node->device('last_error'), qr/terminated by signal|exited with status|the GPU server ended|illegal memory access/, '... and gpuagg_devices() shows the error');
	}
}
{
	my ($out, $err);
	my $pid = $node->server_pid;
	$node->set_fault('abort');
	$node->psql('postgres', "\\set VERBOSITY verbose\nCREATE TEMP SEQUENCE s; SELECT gpu_max(v) FROM (SELECT nextval('s') AS v FROM rows OFFSET 0) q", stdout => \$out, stderr => \$err);
	$node->clear_fault;
	like($err, qr/ERROR: +38000: engine "cuda" failed: the GPU server ended\n.*DETAIL: .*[Vv]olatile/s, 'the server ends, and the input cannot be read again: an error');
	$node->wait_for_another_server($pid);
	my $supervisor = $node->supervisor_pid;
	my $old = $node->server_pid;
	kill 'TERM', $supervisor;
	wait_until(sub { !kill(0, $old) });
	ok($node->wait_for_another_server($old), 'after SIGTERM the supervisor and its server start again');
}
my $pid = $node->server_pid;
$node->set_fault('abort 3');
like($node->safe_psql('postgres', $engine =~ s/BY k/BY k, t/r), qr/Engine: cpu \(cuda failed: the GPU server ended\)/, 'EXPLAIN shows that the server was lost');
$node->clear_fault;
$node->wait_for_another_server($pid);

# The server ends while groups are fetched. Until the first group was returned, the CPU engine can start over.
foreach my $from ('', ' 2')
{
	my ($out, $err);
	my $pid = $node->server_pid;
	$node->set_fault("fetch$from");
	$node->psql('postgres', "\\set VERBOSITY verbose\nSET client_min_messages = 'debug1';\n$query;", stdout => \$out, stderr => \$err);
	$node->clear_fault;
	if ($from eq '')
	{
		is($out, $answer, 'lost before the first group is returned: the CPU engine gives the answer');
		like($err, qr/engine "cuda" failed: the GPU server ended/, '... and a message gives the reason');
	}
	else
	{
		like($err, qr/ERROR: +38000: engine "cuda" failed: the GPU server ended\n.*DETAIL: .*returned already.*HINT: .*"gpuagg.engine"/s,
			'lost between groups: an error with a hint');
	}
	$node->wait_for_another_server($pid);
}
{
	my $pid = $node->server_pid;
	$node->set_fault('fetch');
	my ($out, $err);
	$node->psql('postgres', "SET client_min_messages = 'debug1';\n$odd;", stdout => \$out, stderr => \$err);
	is($out, '1000', 'lost while groups are combined with those of the CPU fallback: the CPU engine gives the answer');
	like($err, qr/engine "cuda" failed: the GPU server ended/, '... and a message gives the reason');
	$node->wait_for_another_server($pid);
	$pid = $node->server_pid;
	$node->psql('postgres', "$parallel\n$engine;", stderr => \$err);
	$node->clear_fault;
	like($err, qr/engine "cuda" failed: the GPU server ended\n.*cannot be read again/s, '... but in a parallel plan it is an error');
	$node->wait_for_another_server($pid);
}

{
	my ($out, $err);
	$node->set_fault('keys');
	$node->psql('postgres', "SET client_min_messages = 'debug1';\n$query;", stdout => \$out, stderr => \$err);
	$node->clear_fault;
	is($out, $answer, 'the server returns invalid keys: the CPU engine gives the answer');
	like($err, qr/engine "cuda" failed/, '... and a message gives the reason');
}

# A parallel scan cannot be read again. If the server ends before the first batch, the CPU engine takes the query; after it, the query
# fails. If each participant has its own query, the fault is at the first batch, before which no participant can finish. If they
# share a query, its second batch comes before the last participant leaves, however they divide the rows.
{
	my ($out, $err);
	my $pid = $node->server_pid;
	$node->set_fault('abort');
	$node->psql('postgres', "\\set VERBOSITY verbose\n$parallel\n$query;", stdout => \$out, stderr => \$err);
	$node->clear_fault;
	like($err, qr/ERROR: +38000: engine "cuda" failed: the GPU server ended\n.*DETAIL: .*cannot be read again.*HINT: .*"gpuagg.engine"/s,
		'the server ends in a parallel plan: an error with a hint');
	$node->wait_for_another_server($pid);
	is($node->safe_psql('postgres', "$parallel $query"), $answer, '... and the next query runs');
	$pid = $node->server_pid;
	$node->set_fault('abort 2');
	$node->psql('postgres', "\\set VERBOSITY verbose\n$parallel\n$engine;", stdout => \$out, stderr => \$err);
	$node->clear_fault;
	like($err, qr/ERROR: +38000: engine "cuda" failed: the GPU server ended/, '... also if the participants share the query');
	$node->wait_for_another_server($pid);

	# a stopped supervisor does not notice that the server is dead
	my $supervisor = $node->supervisor_pid;
	kill 'STOP', $supervisor;
	$pid = $node->server_pid;
	kill 'KILL', $pid;
	wait_until(sub { $node->server_pid == 0 });
	foreach my $plan ('', $parallel)
	{
		$node->psql('postgres', "SET client_min_messages = 'debug1';\n$plan\n$query;", stdout => \$out, stderr => \$err);
		is($out, $answer, 'the server ended before the first batch: the CPU engine gives the answer' . ($plan ? ', in a parallel plan' : ''));
		like($err, qr/engine "cuda" failed: could not connect to the GPU server/, '... and a message gives the reason');
	}
	kill 'CONT', $supervisor;
	ok($node->wait_for_another_server($pid), '... and the server starts again');
}

{
	# the first batch takes a minute, so the kill comes before groups are fetched
	$node->set_fault('hang');
	my $psql = $node->background_psql('postgres');
	my $pid = $node->server_pid;
	$psql->query_until(qr/started/, "\\echo started\n$query;\n");
	$node->poll_query_until('postgres', 'SELECT sum(sessions) > 0 FROM gpuagg_devices()');
	usleep(300_000);
	kill 'KILL', $pid;
	$node->clear_fault;
	is($psql->query('SELECT 1'), "$answer\n1", 'SIGKILL in the middle of a query: the CPU engine gives the answer, and the session continues');
	$psql->quit;
	$node->wait_for_another_server($pid);
}

# ---- a device that hangs, device memory, cancelled backends ----

{
	my ($out, $err);
	$node->set_fault('hang');
	$node->psql('postgres', "SET statement_timeout = 500;\n$query;", stdout => \$out, stderr => \$err);
	$node->clear_fault;
	like($err, qr/canceling statement due to statement timeout/, 'a query at a server that hangs can be cancelled');
	is($node->safe_psql('postgres', $query), $answer, '... and another query runs while the device hangs');
	$node->wait_for_another_server($node->kill_server);
}

$node->set_fault('memory 2');
is($node->device('out_of_memory'), 0, 'no query has run out of device memory');
like($node->safe_psql('postgres', $engine =~ s/BY k/BY k, t/r), qr/Engine: cuda.*Rows on CPU: [1-9]/s,
	'device memory is exhausted: EXPLAIN shows how many rows the CPU took');
$node->clear_fault;
is($node->device('out_of_memory'), 1, '... and gpuagg_devices() counts it');
like($node->device('last_error'), qr/out of memory/, '... and shows the error');
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.device_memory_limit = '1MB'");
$node->reload;
ok(wait_until(sub { $node->safe_psql('postgres', $engine =~ s/k, gpu/i, gpu/r =~ s/BY k/BY i/r) =~ /Engine: cuda.*Rows on CPU: [1-9]/s }),
	'gpuagg.device_memory_limit takes effect with a reload');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuagg.device_memory_limit');
$node->reload;
ok($node->wait_for_device('memory_used', 0), 'no device memory stays allocated');

# A backend is cancelled, and killed, in the middle of a query.
my %message = (pg_cancel_backend => 'canceling statement due to user request',
	pg_terminate_backend => 'terminating connection due to administrator command');
foreach my $how ('pg_cancel_backend', 'pg_terminate_backend')
{
	my $offset = -s $node->logfile;

	$node->set_fault('slower');
	my $psql = $node->background_psql('postgres', on_error_stop => 0);
	my $backend = $psql->query('SELECT pg_backend_pid()');
	$psql->query_until(qr/started/, "\\echo started\n$query;\n");
	$node->poll_query_until('postgres', 'SELECT sum(sessions) > 0 FROM gpuagg_devices()');
	$node->safe_psql('postgres', "SELECT $how($backend)");
	ok( $node->poll_query_until('postgres', 'SELECT sum(sessions) = 0 AND sum(memory_used) = 0 FROM gpuagg_devices()'),
		"$how: the server frees the session");
	ok(wait_until(sub { slurp_file($node->logfile, $offset) =~ /$message{$how}/ }), '... of a query that had not ended');
	$node->clear_fault;
	eval { $psql->quit; };
}

# ---- garbage on the socket ----

# Sends bytes to the server, and returns its answer.
sub send_bytes
{
	my ($bytes) = @_;
	my $peer = IO::Socket::UNIX->new(Peer => $socket) or return 'no connection';
	my $reply;

	local $SIG{PIPE} = 'IGNORE';
	$peer->autoflush(1);
	print $peer $bytes;
	shutdown($peer, 1);
	sysread($peer, $reply, 65536);
	return $reply // '';
}

srand(20);
send_bytes(join '', map { chr int rand 256 } 1 .. int rand 4000) foreach 1 .. 50;
send_bytes(message(int rand 12, join '', map { chr int rand 256 } 1 .. int rand 4000)) foreach 1 .. 50;
send_bytes(message(1, pack('Ll', $version, $$)) . message(2, "\0" x (4 * rand 1000))) foreach 1 .. 20;
send_bytes(pack('L4', 0x47504741, 2, 0xffffffff, 0));
send_bytes(substr(message(1, pack('Ll', $version, $$)), 0, 20));
like(send_bytes('x' x 64), qr/garbage on the socket/, 'the server answers garbage with a failure');
like(send_bytes(message(3, '')), qr/message without a query/, '... and a message that is not expected');
is($node->safe_psql('postgres', $query), $answer, '... and still executes queries');

# ---- many sessions ----

{
	my @children;
	my $before = $node->device('queries');
	foreach my $i (1 .. 64)
	{
		my ($in, $out, $err) = ('', '', '');
		push @children, {
			run => IPC::Run::start(
				[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'SELECT gpu_count(*), gpu_sum(i) FROM rows WHERE k < 100' ],
				'<', \$in, '>', \$out, '2>', \$err),
			out => \$out };
	}
	$_->{run}->finish foreach @children;
	is(scalar(grep { ${ $_->{out} } =~ /^100000\|/ } @children), 64, '64 concurrent sessions get the right answer');
	is($node->device('queries') - $before, 64, '... from the server');
	ok($node->wait_for_device('memory_used', 0), '... and leave no device memory');
}

# The server keeps arenas for the next sessions, because creating and pinning an arena takes milliseconds.
{
	my $pid = $node->server_pid;
	my $arenas = sub { scalar grep { (readlink($_) // '') =~ /memfd:gpuagg/ } glob "/proc/$pid/fd/*" };
	my @sessions = map { IO::Socket::UNIX->new(Peer => $socket) or die "no connection: $!" } 1 .. 20;
	foreach my $session (@sessions)
	{
		my $reply;
		syswrite($session, message(1, pack('Ll', $version, $$)));
		sysread($session, $reply, 16);
	}
	cmp_ok($arenas->(), '>=', 20, 'each of 20 sessions has an arena') or diag "process $pid";
	close $_ foreach @sessions;
	usleep(300_000);
	cmp_ok($arenas->(), '>=', 20, 'the server keeps the arenas after the sessions end');
	wait_until(sub { $arenas->() <= 4 });
	is($arenas->(), 4, '... and frees most of them when it stays idle');
}

# ---- settings ----

$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.server = off");
$node->reload;
my ($out, $err);
wait_until(sub { $node->psql('postgres', $query, stdout => \$out, stderr => \$err) != 0 });
like($err, qr/engine "cuda" is not available.*gpuagg.server is off/s, 'engine = cuda without a server is an error');
is($node->safe_psql('postgres', "SET gpuagg.engine = auto; $query"), $answer, '... and engine = auto uses the CPU');
$node->safe_psql('postgres', "ALTER SYSTEM RESET gpuagg.server; ");
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.server_program = '/nonexistent/server'");
$node->reload;
# the supervisor retries, so the server is sometimes in state "starting"
wait_until(sub { ($out = $node->safe_psql('postgres', "SET gpuagg.engine = auto; $engine")) =~ /no GPU/ });
like($out, qr/Engine: cpu \(no GPU: could not execute/, 'without the server\'s program the CPU engine runs the query');
unlike($node->safe_psql('postgres', "SET gpuagg.engine = auto; $engine; SELECT * FROM gpuagg_status(); SELECT * FROM gpuagg_devices()"),
	qr/nonexistent/, '... and the views do not show the program\'s path');
like(slurp_file($node->logfile), qr/gpuagg runs without a GPU: could not execute.*No such file.*\n.*The program is "\/nonexistent\/server"/, '... but the log does');
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.server_program = '/nonexistent/other'");
$node->reload;
wait_until(sub { slurp_file($node->logfile) =~ /nonexistent\/other"\./ });
like(slurp_file($node->logfile), qr/The program is "\/nonexistent\/other"/, '... also the path of the next program');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuagg.server_program');
$node->reload;
ok($node->wait_until_ready, 'a reload with the right program starts the server');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'the cluster never restarted');

# ---- the postmaster is killed ----
{
	my $pid = $node->server_pid;
	$node->kill9;
	ok(wait_until(sub { !kill(0, $pid) }), 'the server ends with the postmaster');
}

# ---- no device ----
$ENV{GPUAGG_STUB_DEVICES} = 0;
my $none = GpuaggNode->start_new('none', server => 1);
$none->safe_psql('postgres', 'CREATE TABLE rows AS SELECT i % 5 AS k, i::float8 AS x FROM generate_series(1, 1000) i');
wait_until(sub { $none->safe_psql('postgres', $engine) !~ /is starting/ });
like($none->safe_psql('postgres', "SET gpuagg.require = 'require'; $engine"), qr/Engine: cpu \(no GPU: no CUDA device found\)/,
	'without a device the cluster starts, and the CPU engine runs queries');
is($none->safe_psql('postgres', 'SELECT count(*) FROM gpuagg_devices()'), 0, '... and no device is listed');
$none->stop;

done_testing();
