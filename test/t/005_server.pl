# The GPU server over the stub of the CUDA run time: supervision, faults, the protocol.
use strict;
use warnings;
use IO::Socket::UNIX;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

$ENV{GPUAGG_STUB_IDLE} = 3;
my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
max_connections = 100
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
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
my $parallel = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;';
my $engine = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k, gpu_sum(x) FROM rows GROUP BY k";

# Sums of which some rows, with numerics that the GPU cannot hold, stay with the CPU; against core's.
my $odd = 'SELECT count(*) FROM (SELECT k, gpu_sum(n) s FROM odd GROUP BY k) a JOIN (SELECT k, sum(n) s FROM odd GROUP BY k) b USING (k, s)';

ok($node->wait_until_ready, 'the server starts with the cluster');
my $started = $node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()');
is((stat $socket)[2] & 0777, 0600, 'the socket is for its owner alone');
is($node->safe_psql('postgres', 'SELECT count(*), min(name) FROM gpuagg_devices()'), '2|stub', 'both devices are listed');
like($node->safe_psql('postgres', $engine), qr/Engine: cuda.*Strategy: direct/s, 'queries run there');
is($node->safe_psql('postgres', $query), $answer, 'with the right answer');
is($node->safe_psql('postgres', "$parallel $query"), $answer, 'and by several workers');
like($node->safe_psql('postgres', $engine =~ s/k, gpu_sum/k, k, gpu_sum/r =~ s/BY k/BY 1, 2/r), qr/Engine: cuda(?!.*Rows on CPU)/s, 'one column is two keys');

# The planner's choice of engine, on both sides of the crossover.
like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $engine"), qr/Engine: cuda/, 'a large query goes to the GPU');
like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; " . $engine =~ s/rows/few/r), qr/Engine: cpu \(too few rows for the GPU\)/,
	'... and a small one does not');
foreach my $explain ('EXPLAIN (COSTS OFF)', 'EXPLAIN (ANALYZE, COSTS OFF)')
{
	like($node->safe_psql('postgres', "$explain SELECT k, gpu_count(*), string_agg(t, ',') FROM rows GROUP BY k"),
		qr/Engine: cpu \(an aggregate needs its own transition function, which runs only on the CPU\)/, "$explain: another aggregate beside ours");
	like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $explain SELECT k, gpu_count(*), string_agg(t, ',') FROM few GROUP BY k"),
		qr/Engine: cpu \(an aggregate needs its own transition function, which runs only on the CPU\)/, '... which is the reason however few rows there are');
}
# Numerics of several scales are summed by the CPU engine alone, whoever the participants are.
{
	my $scales = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT k, gpu_sum(n), gpu_avg(n) FROM scales GROUP BY k';
	like($node->safe_psql('postgres', $scales), qr/Engine: cpu \(an aggregate/, 'numerics without a declared scale');
	like($node->safe_psql('postgres', "$parallel $scales"), qr/Engine: cpu \(sums of numerics.*Participants: 3/s, '... in a parallel plan');
}
like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; SET gpuagg.gpu_startup_cost = 0; " . $engine =~ s/rows/few/r), qr/Engine: cuda/,
	'... unless the GPU costs nothing');

# Four int4 keys fill the 16 bytes of a packed key, which leaves no room for NULLs.
{
	my $four = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT gpu_count(*) FROM rows GROUP BY i % 2, i % 3, i % 5, CASE WHEN i > 10 THEN i % 7 END';
	like($node->safe_psql('postgres', $four =~ s/CASE.*END/i % 7/r), qr/Engine: cuda(?!.*Rows on CPU)/s, 'keys of 16 bytes together');
	like($node->safe_psql('postgres', $four), qr/Engine: cuda.*Input Rows: 1000000.*Rows on CPU: [1-9]\d{1,4}\b/s, '... and a batch with NULLs in one of them, which stays with the CPU');
	like($node->safe_psql('postgres', "$parallel $four"), qr/Engine: cuda.*Input Rows: 1000000.*Participants: 3.*Rows on CPU: [1-9]\d{1,4}\b/s, '... of one participant');
}

# The engine of distinct values fails, around which is one of the CPU.
like($node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF) SELECT gpu_count(DISTINCT n), gpu_count(*), string_agg(DISTINCT n::text, ',')
		FROM (SELECT i % 5, CASE WHEN i % 7 = 0 THEN 1.0 ELSE 1.00 END::numeric FROM rows WHERE i < 10000) r(k, n) GROUP BY k"),
	qr/Engine: cpu \(cuda failed: equal keys print differently\)/, 'the engine that failed is named');

# The participants of a parallel scan share one query; where keys travel as a process's own codes, each has one.
{
	my $before = $node->device('queries');
	like($node->safe_psql('postgres', "$parallel $engine"), qr/Workers Launched: 2.*Engine: cuda.*Participants: 3/s, 'a parallel scan has several participants');
	is($node->device('queries') - $before, 1, '... and one query at the server');
	is($node->safe_psql('postgres', "$parallel SELECT count(*), sum(c), sum(s) FROM (SELECT k, gpu_count(*) c, gpu_sum(i) s FROM rows GROUP BY k) g"),
		'1000|1000000|500000500000', '... with the groups of all');
	is($node->safe_psql('postgres', "$parallel SELECT gpu_count(*), gpu_sum(i) FROM rows WHERE i < 0"), '0|', '... and the one of no rows');
	is($node->safe_psql('postgres', "$parallel SELECT count(c) FROM (SELECT k, gpu_count(*) AS c FROM rows WHERE i < 0 GROUP BY k) g"), '0', '... and no group');
	{
		my $err;
		$node->psql('postgres', "$parallel SELECT k, gpu_sum(CASE WHEN i > 900000 THEN 1e308 ELSE 0 END::float8) FROM rows GROUP BY k", stderr => \$err);
		like($err, qr/ERROR: +value out of range: overflow/, '... and the errors of all');
	}
	is($node->safe_psql('postgres', "$parallel SELECT gpu_count(*), gpu_sum(i) FROM rows"), '1000000|500000500000', '... or of all rows');
	is($node->safe_psql('postgres', "$parallel $odd"), '1000', '... also where some rows stay with the CPU');
	like($node->safe_psql('postgres', "$parallel EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $odd"),
		qr/Engine: cuda.*Input Rows: 1000000.*Participants: 3.*Rows on CPU: [1-9]\d{3,5}\b/s, '... of a query on the GPU, which are few');
	ok($node->wait_for_device('memory_used', 0), '... and nothing is left behind');
	$node->provoke('lane 2');
	my ($out, $err);
	$node->psql('postgres', "SET client_min_messages = 'debug1'; SET gpuagg.batch_rows = 1024;
		$parallel SELECT count(*), sum(c), sum(s) FROM (SELECT k, gpu_count(*) c, gpu_sum(i) s FROM rows GROUP BY k) g", stdout => \$out, stderr => \$err);
	$node->provoke(undef);
	is($out, '1000|1000000|500000500000', 'participants without room on the device: with those that have it');
	like($err, qr/engine "cuda" failed: out of memory/, '... and say so');
	# whose groups have states that the CPU engine would keep in another form
	foreach my $wide ('gpu_histogram(x, 0, 1000000, 6000)', 'gpu_approx_count_distinct(i)')
	{
		my $rows = "SELECT md5(string_agg(h::text, ',' ORDER BY k)) FROM (SELECT k, $wide AS h, gpu_count(*) FROM rows WHERE k < 10 GROUP BY k) g";
		my $plain = $node->safe_psql('postgres', "SET gpuagg.require = 'forbid'; $rows");

		foreach my $lane (1 .. 3)
		{
			$node->provoke("lane $lane");
			is($node->safe_psql('postgres', "$parallel $rows"), $plain, "... $wide, from lane $lane on");
			$node->provoke(undef);
		}
	}
	$before = $node->device('queries');
	$node->safe_psql('postgres', "$parallel $engine, t" =~ s/k, gpu_sum/k, t, gpu_sum/r);
	is($node->device('queries') - $before, 3, 'a query each where keys are codes of a process');
}

# Keys beyond the memory of dictionaries, whose sums pass the range of floats where the CPU spilled them.
{
	my ($out, $err);
	$node->psql('postgres', "SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
		SELECT count(s) FROM (SELECT (i / 2)::text, gpu_sum(CASE WHEN i > 900000 THEN 1e308 ELSE 0 END::float8) AS s FROM rows GROUP BY 1) g",
		stdout => \$out, stderr => \$err);
	like($err, qr/value out of range: overflow/, 'errors of rows that were spilled are raised');
}

# The server is killed, idle and in the middle of a query.
foreach my $signal ('KILL', 'SEGV', 'ABRT')
{
	my $pid = $node->server_pid;
	kill $signal, $pid;
	wait_until(sub { !kill(0, $pid) });
	ok($node->wait_for_another_server($pid), "SIG$signal while idle: the server is back");
	isnt($node->server_pid, $pid, '... as another process');
	is($node->safe_psql('postgres', $query), $answer, '... and queries run');
}
is($node->device('restarts'), 3, 'the starts are counted');
foreach my $what ('segv', 'abort', 'fault')
{
	foreach my $batch (1, 3)
	{
		my $pid = $node->server_pid;
		$node->provoke("$what $batch");
		my ($out, $err);
		$node->psql('postgres', "SET client_min_messages = 'debug1';\n$query;", stdout => \$out, stderr => \$err);
		$node->provoke(undef);
		is($out, $answer, "$what at batch $batch of a query: answered by the CPU engine");
		like($err, qr/engine "cuda" failed/, '... and said so');
		ok($node->wait_for_another_server($pid), '... the server is back');
		like($node->device('last_error'), qr/terminated by signal|exited with status|the GPU server ended|illegal memory access/, '... the error is told');
	}
}
{
	my ($out, $err);
	my $pid = $node->server_pid;
	$node->provoke('abort');
	$node->psql('postgres', "\\set VERBOSITY verbose\nCREATE TEMP SEQUENCE s; SELECT gpu_max(v) FROM (SELECT nextval('s') AS v FROM rows OFFSET 0) q", stdout => \$out, stderr => \$err);
	$node->provoke(undef);
	like($err, qr/ERROR: +38000: engine "cuda" failed: the GPU server ended\n.*DETAIL: .*[Vv]olatile/s, 'an input that cannot be read again: an error');
	$node->wait_for_another_server($pid);
	my $supervisor = $node->supervisor_pid;
	my $old = $node->server_pid;
	kill 'TERM', $supervisor;
	wait_until(sub { !kill(0, $old) });
	ok($node->wait_for_another_server($old), 'a supervisor that is told to end comes back, with its server');
}
my $pid = $node->server_pid;
$node->provoke('abort 3');
like($node->safe_psql('postgres', $engine =~ s/BY k/BY k, t/r), qr/Engine: cpu \(cuda failed: the GPU server ended\)/, 'EXPLAIN says that the server was lost');
$node->provoke(undef);
$node->wait_for_another_server($pid);

# ... or where groups are returned: while none was, the rows can be read again.
foreach my $from ('', ' 2')
{
	my ($out, $err);
	my $pid = $node->server_pid;
	$node->provoke("fetch$from");
	$node->psql('postgres', "\\set VERBOSITY verbose\nSET client_min_messages = 'debug1';\n$query;", stdout => \$out, stderr => \$err);
	$node->provoke(undef);
	if ($from eq '')
	{
		is($out, $answer, 'lost before the first group came back: answered by the CPU engine');
		like($err, qr/engine "cuda" failed: the GPU server ended/, '... and said so');
	}
	else
	{
		like($err, qr/ERROR: +38000: engine "cuda" failed: the GPU server ended\n.*DETAIL: .*returned already.*HINT: .*"gpuagg.engine"/s,
			'lost between groups: an error that says what to do');
	}
	$node->wait_for_another_server($pid);
}
{
	my $pid = $node->server_pid;
	$node->provoke('fetch');
	my ($out, $err);
	$node->psql('postgres', "SET client_min_messages = 'debug1';\n$odd;", stdout => \$out, stderr => \$err);
	is($out, '1000', 'lost while groups meet those of odd rows: answered by the CPU engine');
	like($err, qr/engine "cuda" failed: the GPU server ended/, '... and said so');
	$node->wait_for_another_server($pid);
	$pid = $node->server_pid;
	$node->psql('postgres', "$parallel\n$engine;", stderr => \$err);
	$node->provoke(undef);
	like($err, qr/engine "cuda" failed: the GPU server ended\n.*cannot be read again/s, '... or, in a parallel plan, an error');
	$node->wait_for_another_server($pid);
}

$node->provoke('keys');
is($node->safe_psql('postgres', $query), $answer, 'keys that the server made up: answered by the CPU engine');
$node->provoke(undef);

# A parallel scan cannot be read again: a clear error once rows were sent, and the CPU engine before that.
# Participants with a query each: at the first batch, so that none is past it. One query: its second batch
# comes before the last participant leaves, however they share the rows.
{
	my ($out, $err);
	my $pid = $node->server_pid;
	$node->provoke('abort');
	$node->psql('postgres', "\\set VERBOSITY verbose\n$parallel\n$query;", stdout => \$out, stderr => \$err);
	$node->provoke(undef);
	like($err, qr/ERROR: +38000: engine "cuda" failed: the GPU server ended\n.*DETAIL: .*cannot be read again.*HINT: .*"gpuagg.engine"/s,
		'a server lost by a parallel query is an error that says what to do');
	$node->wait_for_another_server($pid);
	is($node->safe_psql('postgres', "$parallel $query"), $answer, '... and the next query runs');
	$pid = $node->server_pid;
	$node->provoke('abort 2');
	$node->psql('postgres', "\\set VERBOSITY verbose\n$parallel\n$engine;", stdout => \$out, stderr => \$err);
	$node->provoke(undef);
	like($err, qr/ERROR: +38000: engine "cuda" failed: the GPU server ended/, 'so is one that is shared');
	$node->wait_for_another_server($pid);

	# a supervisor that stands still believes in a server that is dead
	my $supervisor = $node->supervisor_pid;
	kill 'STOP', $supervisor;
	$pid = $node->server_pid;
	kill 'KILL', $pid;
	usleep(100_000);
	foreach my $plan ('', $parallel)
	{
		$node->psql('postgres', "SET client_min_messages = 'debug1';\n$plan\n$query;", stdout => \$out, stderr => \$err);
		is($out, $answer, 'a server gone before the first batch: the CPU engine takes it' . ($plan ? ', in a parallel plan as well' : ''));
		like($err, qr/engine "cuda" failed: could not connect to the GPU server/, '... and says so');
	}
	kill 'CONT', $supervisor;
	ok($node->wait_for_another_server($pid), '... and the server is back');
}

{
	# its first batch takes a minute: it cannot be past the middle, where groups come back
	$node->provoke('hang');
	my $psql = $node->background_psql('postgres');
	my $pid = $node->server_pid;
	$psql->query_until(qr/started/, "\\echo started\n$query;\n");
	$node->poll_query_until('postgres', 'SELECT sum(sessions) > 0 FROM gpuagg_devices()');
	usleep(300_000);
	kill 'KILL', $pid;
	$node->provoke(undef);
	is($psql->query('SELECT 1'), "$answer\n1", 'SIGKILL in the middle of a query: the session goes on');
	$psql->quit;
	$node->wait_for_another_server($pid);
}

# A server that does not answer can be left.
{
	my ($out, $err);
	$node->provoke('hang');
	$node->psql('postgres', "SET statement_timeout = 500;\n$query;", stdout => \$out, stderr => \$err);
	$node->provoke(undef);
	like($err, qr/canceling statement due to statement timeout/, 'a query at a server that hangs can be cancelled');
	is($node->safe_psql('postgres', $query), $answer, '... and another runs beside it');
	$node->wait_for_another_server($node->kill_server);
}

# Device memory is exhausted.
$node->provoke('memory 2');
is($node->device('out_of_memory'), 0, 'no query has run out of device memory');
like($node->safe_psql('postgres', $engine =~ s/BY k/BY k, t/r), qr/Engine: cuda.*Rows on CPU: [1-9]/s,
	'exhausted device memory: EXPLAIN says how many rows the CPU took');
$node->provoke(undef);
is($node->device('out_of_memory'), 1, '... and it is counted');
like($node->device('last_error'), qr/out of memory/, '... and told');
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.device_memory_limit = '1MB'");
$node->reload;
ok(wait_until(sub { $node->safe_psql('postgres', $engine =~ s/k, gpu/i, gpu/r =~ s/BY k/BY i/r) =~ /Engine: cuda.*Rows on CPU: [1-9]/s }),
	'a limit set by a reload holds');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuagg.device_memory_limit');
$node->reload;
ok($node->wait_for_device('memory_used', 0), 'no device memory is left over');

# A backend is cancelled, and killed, in the middle of a query.
foreach my $how ('pg_cancel_backend', 'pg_terminate_backend')
{
	$node->provoke('slower');
	my $psql = $node->background_psql('postgres', on_error_stop => 0);
	my $backend = $psql->query('SELECT pg_backend_pid()');
	$psql->query_until(qr/started/, "\\echo started\n$query;\n");
	$node->poll_query_until('postgres', 'SELECT sum(sessions) > 0 FROM gpuagg_devices()');
	$node->safe_psql('postgres', "SELECT $how($backend)");
	ok( $node->poll_query_until('postgres', 'SELECT sum(sessions) = 0 AND sum(memory_used) = 0 FROM gpuagg_devices()'),
		"$how: the server frees the session");
	$node->provoke(undef);
	eval { $psql->quit; };
}

# Garbage.
sub talk
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
talk(join '', map { chr int rand 256 } 1 .. int rand 4000) foreach 1 .. 50;
talk(message(int rand 12, join '', map { chr int rand 256 } 1 .. int rand 4000)) foreach 1 .. 50;
talk(message(1, pack('Ll', $version, $$)) . message(2, "\0" x (4 * rand 1000))) foreach 1 .. 20;
talk(pack('L4', 0x47504741, 2, 0xffffffff, 0));
talk(substr(message(1, pack('Ll', $version, $$)), 0, 20));
like(talk('x' x 64), qr/garbage on the socket/, 'garbage is answered by a failure');
like(talk(message(3, '')), qr/message without a query/, 'so is a message out of turn');
is($node->safe_psql('postgres', $query), $answer, 'and the server lives on');

# Many sessions at once.
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
	is(scalar(grep { ${ $_->{out} } =~ /^100000\|/ } @children), 64, '64 sessions at once');
	is($node->device('queries') - $before, 64, '... all at the server');
	ok($node->wait_for_device('memory_used', 0), '... leave no memory behind');
}

# Shared memory that 20 sessions had is there for the next 20, to whom making and pinning it would cost milliseconds.
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
	cmp_ok($arenas->(), '>=', 20, '20 sessions have an arena each') or diag "process $pid";
	close $_ foreach @sessions;
	usleep(300_000);
	cmp_ok($arenas->(), '>=', 20, 'arenas are kept for the next sessions');
	wait_until(sub { $arenas->() <= 4 });
	is($arenas->(), 4, '... and given back when nobody needs them');
}

# Settings.
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.server = off");
$node->reload;
my ($out, $err);
wait_until(sub { $node->psql('postgres', $query, stdout => \$out, stderr => \$err) != 0 });
like($err, qr/engine "cuda" is not available.*gpuagg.server is off/s, 'engine = cuda without a server is an error');
is($node->safe_psql('postgres', "SET gpuagg.engine = auto; $query"), $answer, 'engine = auto goes on');
$node->safe_psql('postgres', "ALTER SYSTEM RESET gpuagg.server; ");
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.server_program = '/nonexistent/server'");
$node->reload;
# it is tried again, and is starting now and then
wait_until(sub { ($out = $node->safe_psql('postgres', "SET gpuagg.engine = auto; $engine")) =~ /no GPU/ });
like($out, qr/Engine: cpu \(no GPU: could not execute/, 'a missing program means the CPU engine');
unlike($node->safe_psql('postgres', "SET gpuagg.engine = auto; $engine; SELECT * FROM gpuagg_status(); SELECT * FROM gpuagg_devices()"),
	qr/nonexistent/, '... whose path is not for all to read');
like(slurp_file($node->logfile), qr/gpuagg runs without a GPU: could not execute.*No such file.*\n.*The program is "\/nonexistent\/server"/, '... but in the log');
$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.server_program = '/nonexistent/other'");
$node->reload;
wait_until(sub { slurp_file($node->logfile) =~ /nonexistent\/other"\./ });
like(slurp_file($node->logfile), qr/The program is "\/nonexistent\/other"/, '... and so is the next one');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuagg.server_program');
$node->reload;
ok($node->wait_until_ready, 'and a reload brings the server back');
is($node->safe_psql('postgres', 'SELECT pg_postmaster_start_time()'), $started, 'the cluster never restarted');

# The postmaster is killed.
{
	my $pid = $node->server_pid;
	$node->kill9;
	ok(wait_until(sub { !kill(0, $pid) }), 'the server ends with the postmaster');
}

# No device.
$ENV{GPUAGG_STUB_DEVICES} = 0;
my $none = GpuaggNode->start_new('none', server => 1);
$none->safe_psql('postgres', 'CREATE TABLE rows AS SELECT i % 5 AS k, i::float8 AS x FROM generate_series(1, 1000) i');
wait_until(sub { $none->safe_psql('postgres', $engine) !~ /is starting/ });
like($none->safe_psql('postgres', "SET gpuagg.require = 'require'; $engine"), qr/Engine: cpu \(no GPU: no CUDA device found\)/,
	'without a device the cluster starts and answers');
is($none->safe_psql('postgres', 'SELECT count(*) FROM gpuagg_devices()'), 0, 'and no device is listed');
$none->stop;

done_testing();
