# Limits of sessions at the GPU server: what cursors hold, how many sessions a process and a server may have, clients that flood the
# server or send nothing, and when the supervisor starts the server.
use strict;
use warnings;
use File::Spec;
use IO::Socket::UNIX;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

$ENV{GPUAGG_STUB_IDLE} = 1;
my $node = GpuaggNode->start_new('main', server => 1, conf => <<CONF);
max_connections = 50
gpuagg.require = 'require'
gpuagg.engine = 'cuda'
gpuagg.device_cache_memory = 0
CONF
$node->safe_psql('postgres', <<SQL);
CREATE TABLE rows AS SELECT i, i % 50000 AS k, (i % 37)::text AS t, i::float8 AS x FROM generate_series(1, 200000) i;
CREATE TABLE few AS SELECT * FROM rows WHERE i <= 1000;
ANALYZE rows, few;
SQL
my $socket = $node->socket_path;
my $version = $node->protocol_version;
my $query = 'SELECT count(*), sum(c), sum(s) FROM (SELECT k, gpu_count(*) c, gpu_sum(i) s FROM rows GROUP BY k) g';
my $answer = '50000|200000|20000100000';

# Connects and sends the greeting. Returns the connection and the type of the server's answer.
sub connect_and_greet
{
	my $peer = IO::Socket::UNIX->new(Peer => $socket) or die "no connection: $!";
	my $reply;
	syswrite($peer, message(1, pack('Ll', $version, $$)));
	sysread($peer, $reply, 16);
	return ($peer, (unpack 'L4', $reply)[1]);
}

ok($node->wait_for_devices('count(*) = 2 AND bool_and(state = \'ready\')', 't'), 'the server starts');

# ---- cursors ----

# Between fetches a cursor holds no session, and its groups are complete.
foreach my $case ([ 'in memory', '64MB', 0 ], [ 'in temporary files', '64kB', 1 ])
{
	my ($name, $work_mem, $spills) = @$case;
	my $psql = $node->background_psql('postgres');
	my $n = 40;
	my $select = 'SELECT k, gpu_count(*) AS c, gpu_sum(i) AS s, gpu_histogram(x, 0, 200000, 4) AS h, gpu_max_subarray_sum(i) AS m FROM rows WHERE k % 40 >= %s GROUP BY k';

	$psql->query("SET work_mem = '$work_mem'; SET hash_mem_multiplier = 1; BEGIN;");
	my $before = $node->devices('max(queries)');
	foreach my $c (0 .. $n - 1)
	{
		$psql->query("DECLARE c$c NO SCROLL CURSOR FOR " . $select =~ s/%s/$c/r);
		$psql->query("FETCH 3 FROM c$c");
	}
	is($node->devices('max(queries)') - $before, $n, "cursors, groups $name: each is one query on the GPU");
	ok($node->wait_for_devices('sum(sessions), sum(memory_used)', '0|0'), '... and none holds a session or device memory');
	$psql->query("FETCH 20000 FROM c$_") foreach 0 .. 4;	# several chunks of groups
	my $files = $node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()');
	$spills ? cmp_ok($files, '>', 0, '... there are temporary files') : is($files, 0, '... there is no temporary file');
	my @rows = split /\n/, $psql->query("FETCH ALL FROM c39");
	my @expected = split /\n/, $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; " . $select =~ s/%s/39/r);
	my %expected = map { $_ => 1 } @expected;
	is(scalar(@rows), @expected - 3, '... the last fetch returns all other groups');
	is(scalar(grep { !delete $expected{$_} } @rows), 0, '... each once, with the right values');
	$psql->query('COMMIT');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, '... and no temporary file is left');
	$psql->quit;
}

# Cursors of plpgsql, cursors that are rewound, and cursors that end in the middle of their groups.
my $sums = 'SELECT k, gpu_sum(i) AS s FROM rows GROUP BY k';
is($node->safe_psql('postgres', "CREATE FUNCTION total() RETURNS text LANGUAGE plpgsql AS \$\$
	DECLARE r record; n bigint := 0; t bigint := 0; most bigint := 0;
	BEGIN
		FOR r IN $sums LOOP
			n := n + 1; t := t + r.s;
			IF n % 10000 = 1 THEN most := greatest(most, (SELECT sum(sessions) FROM gpuagg_devices())); END IF;
		END LOOP;
		RETURN n || ' ' || t || ' ' || most;
	END \$\$; SELECT total()"), '50000 20000100000 0', 'a loop in plpgsql over groups holds no session');
{
	my $psql = $node->background_psql('postgres');

	$psql->query("BEGIN; DECLARE s SCROLL CURSOR FOR SELECT * FROM ($sums) g; DECLARE o NO SCROLL CURSOR FOR SELECT o.i, (SELECT gpu_sum(r.i) FROM few r WHERE r.k < o.i) FROM few o WHERE o.i <= 5 ORDER BY o.i;");
	my $first = $psql->query('FETCH 2 FROM s');
	ok($node->wait_for_devices('sum(sessions)', 0), 'a cursor that can be read backwards holds no session');
	$psql->query('FETCH 30000 FROM s');
	$psql->query('MOVE BACKWARD ALL FROM s');
	is($psql->query('FETCH 2 FROM s'), $first, '... and returns its groups again after it is rewound');
	is($psql->query('FETCH 2 FROM o') . "\n" . $psql->query('FETCH ALL FROM o'), "1|\n2|1\n3|3\n4|6\n5|10", 'rescans between two fetches give the right answer');
	ok($node->wait_for_devices('sum(sessions)', 0), '... and hold no session');
	$psql->query('ROLLBACK');
	$psql->query("BEGIN; DECLARE l NO SCROLL CURSOR FOR $sums LIMIT 3; DECLARE e CURSOR FOR SELECT EXISTS ($sums);");
	is($psql->query('FETCH ALL FROM l') . "\n" . $psql->query('FETCH ALL FROM e'), "0|500000\n1|300004\n2|300008\nt", 'cursors whose queries do not read all groups give the right answer');
	ok($node->wait_for_devices('sum(sessions)', 0), '... and hold no session at their end');
	$psql->query('COMMIT');
	$psql->query("BEGIN; DECLARE h CURSOR WITH HOLD FOR $sums; FETCH 1 FROM h; COMMIT");
	is(scalar(my @rest = split /\n/, $psql->query('FETCH ALL FROM h')), 49999, 'a cursor WITH HOLD returns its groups after the transaction');
	$psql->query('CLOSE h');
	$psql->quit;
}

# Many cursors in one transaction are left in the middle or rescanned. They leave no memory, files or sessions.
{
	my $psql = $node->background_psql('postgres');
	my $backend = $psql->query('SELECT pg_backend_pid()');
	my $files = sub { scalar(my @files = glob "/proc/$backend/fd/*") };
	my $memory = 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts';
	my $loop = 'CREATE FUNCTION leave_early(times int) RETURNS int LANGUAGE plpgsql AS $$
		DECLARE r record; n int := 0;
		BEGIN
			FOR t IN 1 .. times LOOP
				FOR r IN SELECT i, gpu_sum(x) FROM few GROUP BY i LOOP n := n + 1; EXIT; END LOOP;
				FOR r IN SELECT o.i, l.s FROM few o, LATERAL (SELECT k, gpu_sum(i) AS s FROM few WHERE i < 100 * o.i GROUP BY k) l WHERE o.i <= 5 LOOP n := n + 1; END LOOP;
			END LOOP;
			RETURN n;
		END $$';

	$psql->query($loop);
	$psql->query("SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SELECT leave_early(20)");
	my ($open, $bytes) = ($files->(), $psql->query($memory));
	is($psql->query('SELECT leave_early(300)'), 300 * (1 + 99 + 199 + 299 + 399 + 499), 'cursors left in the middle give the right answer');
	# files of catalogs may be opened at any time
	cmp_ok($files->() - $open, '<', 20, '... and leave no open file');
	cmp_ok($psql->query($memory) - $bytes, '<', 65536, '... no memory');
	ok($node->wait_for_devices('sum(sessions), sum(memory_used)', '0|0'), '... and no session');
	$psql->quit;
}

# The server is lost between two fetches. The cursor has all its groups, and does not need the server.
{
	my $psql = $node->background_psql('postgres');
	$psql->query("BEGIN; DECLARE c CURSOR FOR $sums; FETCH 1 FROM c");
	my $killed = $node->kill_server;
	is(scalar(my @rest = split /\n/, $psql->query('FETCH ALL FROM c')), 49999, 'a cursor continues after the server was lost');
	$psql->quit;
	$node->wait_for_another_server($killed);
}

# A large query frees its device memory when its groups were fetched, while the plan still processes them.
{
	# returns the device memory in use, after waiting until it is 0
	$node->safe_psql('postgres', q{CREATE FUNCTION memory_after(groups bigint) RETURNS numeric LANGUAGE plpgsql AS 'DECLARE used numeric;
		BEGIN
			FOR i IN 1 .. 6000 LOOP
				SELECT sum(memory_used) INTO used FROM gpuagg_devices();
				EXIT WHEN used = 0;
				PERFORM pg_sleep(0.05);
			END LOOP;
			RETURN used;
		END'});
	my $held = 'SELECT n, memory_after(n) FROM (SELECT count(h) AS n FROM (SELECT i, gpu_sum(k), gpu_histogram(x, 0, 200000, 16) AS h FROM rows GROUP BY i) g) a';
	my $before = $node->devices('max(queries)');

	is($node->safe_psql('postgres', $held), '200000|0', 'a large query holds no device memory after its groups were fetched');
	is($node->devices('max(queries)') - $before, 1, '... and ran on the GPU');
}

# ---- how many sessions ----

# A process has at most 16 sessions. Scans that have ended free theirs. Scans beyond 16 use the CPU engine.
{
	my $done = join ' UNION ALL ', ('SELECT gpu_sum(i) AS s FROM rows') x 60;
	my $before = $node->devices('max(queries)');
	is($node->safe_psql('postgres', "SELECT count(*), sum(s) FROM ($done) u"), '60|1200006000000', 'a plan of 60 scans that end gives the right answer');
	is($node->devices('max(queries)') - $before, 60, '... all on the GPU');

	my $open = join ', ', ('(SELECT s FROM (SELECT k, gpu_sum(i) AS s FROM rows GROUP BY k) g LIMIT 1)') x 40;
	my ($out, $err);
	$before = $node->devices('max(queries)');
	$node->psql('postgres', "SET client_min_messages = 'debug1'; SELECT $open", stdout => \$out, stderr => \$err);
	is(scalar(my @values = split /\|/, $out), 40, 'a plan of 40 scans that do not end gives an answer');
	like($err, qr/engine "cuda" failed: this process has too many sessions at the GPU server/, '... some scans use the CPU engine');
	is($node->devices('max(queries)') - $before, 16, '... and 16 the GPU');
	unlike($node->devices('max(last_error)'), qr/too many sessions/, '... the server reports no error');
	ok($node->wait_for_devices('sum(sessions), sum(memory_used)', '0|0'), '... and no session is left');
}

# gpuagg.pinned_memory_limit limits the arenas of sessions.
{
	my $explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $sums";
	my $arenas = sub { my $pid = $node->server_pid; scalar grep { (readlink($_) // '') =~ /memfd:gpuagg/ } glob "/proc/$pid/fd/*" };

	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.pinned_memory_limit = '60MB'");
	$node->reload;
	wait_until(sub { $arenas->() == 2 });
	is($arenas->(), 2, 'with a limit of 60 MB the server keeps 2 arenas');
	my @sessions = map { [ connect_and_greet() ] } 1 .. 2;
	is(join(' ', map { $_->[1] } @sessions), '64 64', '... two sessions can connect');
	like($node->safe_psql('postgres', $explain), qr/Engine: cpu \(cuda failed: gpuagg.pinned_memory_limit reached\)/, '... the third uses the CPU engine');
	is($node->safe_psql('postgres', "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; $query"),
		$answer, '... also in a parallel plan');
	close $_->[0] foreach @sessions;
	$node->wait_for_devices('sum(sessions)', 0);
	like($node->safe_psql('postgres', $explain), qr/Engine: cuda/, '... and the next session uses the GPU when the others have ended');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuagg.pinned_memory_limit');
	$node->reload;
}

# ---- other clients of the socket ----

# More connections than the server accepts: the CPU engine gives the answer.
{
	my @idle = map { IO::Socket::UNIX->new(Peer => $socket) } 1 .. 512;
	my ($out, $err);
	my $since = time;
	SKIP:
	{
		skip 'too few file descriptors', 3 if grep { !$_ } @idle;
		$node->psql('postgres', "SET client_min_messages = 'debug1'; $query", stdout => \$out, stderr => \$err);
		is($out, $answer, 'too many connections: the CPU engine gives the answer');
		like($err, qr/engine "cuda" failed: too many sessions at the GPU server/, '... and a message gives the reason');
		ok(wait_until(sub { !grep { my $in = ''; vec($in, fileno($_), 1) = 1; !select($in, undef, undef, 0) } @idle }), '... and the server closes connections that send no greeting');
	}
	close $_ foreach grep { $_ } @idle;
	usleep(200_000);
	is($node->safe_psql('postgres', $query), $answer, '... and queries run again');
}

# One client sends many messages and reads no answer, another sends half a message. Other sessions are not affected.
{
	my ($flood) = connect_and_greet();
	my ($half) = connect_and_greet();
	my $pid = $node->server_pid;
	my $status = message(7, '') x 1000;
	my $since = time;

	syswrite($half, substr(message(2, 'x' x 3000), 0, 1000));
	$flood->blocking(0);
	while (time - $since < 2)
	{
		last if !defined syswrite($flood, $status) && !$!{EAGAIN};
		usleep(1000);
	}
	my $before = $node->devices('max(queries)');
	is($node->safe_psql('postgres', $query), $answer, 'a query runs while one client floods the server and another sends half a message');
	is($node->devices('max(queries)') - $before, 1, '... on the GPU');
	is($node->server_pid, $pid, '... in the same server');
}

# ---- when the supervisor starts the server ----

my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
# Makes a script the server's program. Returns how often the supervisor started it in $seconds; waits longer if that is less than
# $least times.
sub count_starts
{
	my ($script, $seconds, $least) = @_;
	my $count = "$dir/starts";

	unlink "$count", "$dir/program";
	append_to_file("$dir/program", "#!/bin/bash\necho >>$count\n$script\n");
	chmod 0755, "$dir/program";
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.server_program = '$dir/program'");
	$node->reload;
	usleep($seconds * 1e6);
	wait_until(sub { -e $count && length slurp_file($count) >= $least });
	return -e $count ? length slurp_file($count) : 0;
}

# The program's last argument is the file descriptor of the pipe to the supervisor.
my $fd = 'fd=${@: -1}';
my $times = count_starts('exit 1', 4, 2);
cmp_ok($times, '>=', 2, 'a server that ends immediately is started again');
cmp_ok($times, '<=', 6, '... with growing pauses');
like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; EXPLAIN (COSTS OFF) $sums"), qr/Engine: cpu \(the GPU server is (restarting|starting)/, '... and the CPU engine runs queries');
my $text = 'no GPU that this build knows';
$times = count_starts("$fd\nprintf 'AGPG\\x81\\0\\0\\0\\x" . sprintf('%02x', length $text) . "\\0\\0\\0\\0\\0\\0\\0$text' >&\$fd\nexit 0", 3, 1);
is($times, 1, 'a server that finds no device is started only once');
like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; EXPLAIN (COSTS OFF) $sums"), qr/Engine: cpu \(no GPU: $text\)/, '... and EXPLAIN shows its reason');
$times = count_starts("$fd\nprintf 'nonsense that is no message' >&\$fd\nsleep 60", 2, 1);
cmp_ok($times, '<=', 5, 'a server that sends nonsense on the pipe is restarted with pauses');
is($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $query"), $answer, '... and the CPU engine gives the answer');

# After a crash of the cluster the previous server may still be ending, and hold device memory. The next one waits for its end.
{
	my $before;

	mkdir "$dir/old";
	system('cp', '/bin/sleep', "$dir/old/gpuagg-server");
	$before = fork();
	if ($before == 0)
	{
		chdir $node->data_dir or die;
		exec("$dir/old/gpuagg-server", '5') or die;
	}
	append_to_file("$socket.pid.new", "$before\n");
	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.server = off; ");
	$node->reload;
	usleep(300_000);
	rename("$socket.pid.new", "$socket.pid");
	$node->safe_psql('postgres', "ALTER SYSTEM RESET gpuagg.server_program");
	$node->safe_psql('postgres', "ALTER SYSTEM RESET gpuagg.server");
	$node->reload;
	ok($node->wait_for_devices('bool_and(state = \'ready\')', 't'), 'a server starts');
	like(slurp_file("/proc/$before/stat"), qr/\) Z /, '... after the previous one has ended, although that is still a zombie');
	waitpid($before, 0);
	is($node->safe_psql('postgres', $query), $answer, '... and executes queries');
}
$node->stop;
done_testing();
