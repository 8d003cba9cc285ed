# What sessions of the GPU server hold, how many there may be, and when it is started.
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

# A session that has greeted, and the type of the answer.
sub greeted
{
	my $peer = IO::Socket::UNIX->new(Peer => $socket) or die "no connection: $!";
	my $reply;
	syswrite($peer, message(1, pack('Ll', $version, $$)));
	sysread($peer, $reply, 16);
	return ($peer, (unpack 'L4', $reply)[1]);
}

ok($node->wait_for_devices('count(*) = 2 AND bool_and(state = \'ready\')', 't'), 'the server starts');

# ---- cursors ----

# Cursors that rest hold no session, whatever is left of their groups; and lose none of them.
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
	is($node->devices('max(queries)') - $before, $n, "cursors, groups $name: each is a query on the GPU");
	ok($node->wait_for_devices('sum(sessions), sum(memory_used)', '0|0'), '... and none holds a session or memory of a device');
	$psql->query("FETCH 20000 FROM c$_") foreach 0 .. 4;	# through several chunks
	my $files = $node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()');
	$spills ? cmp_ok($files, '>', 0, '... there are temporary files') : is($files, 0, '... there is no temporary file');
	my @rows = split /\n/, $psql->query("FETCH ALL FROM c39");
	my @expected = split /\n/, $node->safe_psql('postgres', "SET gpuagg.enabled = off; SET gpuagg.require = 'allow'; " . $select =~ s/%s/39/r);
	my %expected = map { $_ => 1 } @expected;
	is(scalar(@rows), @expected - 3, '... the groups that were left come');
	is(scalar(grep { !delete $expected{$_} } @rows), 0, '... each once, with core\'s values');
	$psql->query('COMMIT');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, '... and no temporary file is left');
	$psql->quit;
}

# ... also those that plpgsql reads, or that are rewound, or end in the middle of a fetched part.
my $sums = 'SELECT k, gpu_sum(i) AS s FROM rows GROUP BY k';
is($node->safe_psql('postgres', "CREATE FUNCTION total() RETURNS text LANGUAGE plpgsql AS \$\$
	DECLARE r record; n bigint := 0; t bigint := 0; most bigint := 0;
	BEGIN
		FOR r IN $sums LOOP
			n := n + 1; t := t + r.s;
			IF n % 10000 = 1 THEN most := greatest(most, (SELECT sum(sessions) FROM gpuagg_devices())); END IF;
		END LOOP;
		RETURN n || ' ' || t || ' ' || most;
	END \$\$; SELECT total()"), '50000 20000100000 0', 'a loop of plpgsql over groups holds no session');
{
	my $psql = $node->background_psql('postgres');

	$psql->query("BEGIN; DECLARE s SCROLL CURSOR FOR SELECT * FROM ($sums) g; DECLARE o NO SCROLL CURSOR FOR SELECT o.i, (SELECT gpu_sum(r.i) FROM few r WHERE r.k < o.i) FROM few o WHERE o.i <= 5 ORDER BY o.i;");
	my $first = $psql->query('FETCH 2 FROM s');
	ok($node->wait_for_devices('sum(sessions)', 0), 'a cursor that can be read backwards holds no session');
	$psql->query('FETCH 30000 FROM s');
	$psql->query('MOVE BACKWARD ALL FROM s');
	is($psql->query('FETCH 2 FROM s'), $first, '... and has its groups when it is rewound');
	is($psql->query('FETCH 2 FROM o') . "\n" . $psql->query('FETCH ALL FROM o'), "1|\n2|1\n3|3\n4|6\n5|10", 'rescans between two fetches');
	ok($node->wait_for_devices('sum(sessions)', 0), '... hold no session');
	$psql->query('ROLLBACK');
	$psql->query("BEGIN; DECLARE l NO SCROLL CURSOR FOR $sums LIMIT 3; DECLARE e CURSOR FOR SELECT EXISTS ($sums);");
	is($psql->query('FETCH ALL FROM l') . "\n" . $psql->query('FETCH ALL FROM e'), "0|500000\n1|300004\n2|300008\nt", 'cursors whose query leaves groups behind');
	ok($node->wait_for_devices('sum(sessions)', 0), '... hold no session at their end');
	$psql->query('COMMIT');
	$psql->query("BEGIN; DECLARE h CURSOR WITH HOLD FOR $sums; FETCH 1 FROM h; COMMIT");
	is(scalar(my @rest = split /\n/, $psql->query('FETCH ALL FROM h')), 49999, 'a cursor that outlives its transaction');
	$psql->query('CLOSE h');
	$psql->quit;
}

# Many of them, left in the middle and rescanned, in one transaction: memory, files and sessions come back.
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
	is($psql->query('SELECT leave_early(300)'), 300 * (1 + 99 + 199 + 299 + 399 + 499), 'cursors left in the middle');
	cmp_ok($files->() - $open, '<=', 2, '... leave no file open');
	cmp_ok($psql->query($memory) - $bytes, '<', 65536, '... nor memory');
	ok($node->wait_for_devices('sum(sessions), sum(memory_used)', '0|0'), '... nor sessions');
	$psql->quit;
}

# The server is lost between two fetches: that is of no interest any more.
{
	my $psql = $node->background_psql('postgres');
	$psql->query("BEGIN; DECLARE c CURSOR FOR $sums; FETCH 1 FROM c");
	my $killed = $node->kill_server;
	is(scalar(my @rest = split /\n/, $psql->query('FETCH ALL FROM c')), 49999, 'a cursor goes on when the server was lost');
	$psql->quit;
	$node->wait_for_another_server($killed);
}

# A large query gives its memory back when its groups were fetched, whatever its plan still does with them.
{
	# which the server does while the plan goes on
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

	is($node->safe_psql('postgres', $held), '200000|0', 'a large query holds no memory once its groups were fetched');
	is($node->devices('max(queries)') - $before, 1, '... on the GPU');
}

# ---- how many sessions ----

# A query has at most 16: sessions of scans that are done make room, others leave the rest to the CPU engine.
{
	my $done = join ' UNION ALL ', ('SELECT gpu_sum(i) AS s FROM rows') x 60;
	my $before = $node->devices('max(queries)');
	is($node->safe_psql('postgres', "SELECT count(*), sum(s) FROM ($done) u"), '60|1200006000000', 'a plan of 60 scans');
	is($node->devices('max(queries)') - $before, 60, '... all on the GPU');

	my $open = join ', ', ('(SELECT s FROM (SELECT k, gpu_sum(i) AS s FROM rows GROUP BY k) g LIMIT 1)') x 40;
	my ($out, $err);
	$before = $node->devices('max(queries)');
	$node->psql('postgres', "SET client_min_messages = 'debug1'; SELECT $open", stdout => \$out, stderr => \$err);
	is(scalar(my @values = split /\|/, $out), 40, 'a plan of 40 scans that do not come to their end');
	like($err, qr/engine "cuda" failed: this process has too many sessions at the GPU server/, '... some of them by the CPU engine');
	is($node->devices('max(queries)') - $before, 16, '... 16 on the GPU');
	unlike($node->devices('max(last_error)'), qr/too many sessions/, '... which is no trouble of the server');
	ok($node->wait_for_devices('sum(sessions), sum(memory_used)', '0|0'), '... and nothing is left over');
}

# Memory for sessions is limited.
{
	my $explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $sums";
	my $arenas = sub { my $pid = $node->server_pid; scalar grep { (readlink($_) // '') =~ /memfd:gpuagg/ } glob "/proc/$pid/fd/*" };

	$node->safe_psql('postgres', "ALTER SYSTEM SET gpuagg.pinned_memory_limit = '60MB'");
	$node->reload;
	wait_until(sub { $arenas->() == 2 });
	is($arenas->(), 2, 'a limit of 60 MB is 2 sessions');
	my @sessions = map { [ greeted() ] } 1 .. 2;
	is(join(' ', map { $_->[1] } @sessions), '64 64', '... which it has');
	like($node->safe_psql('postgres', $explain), qr/Engine: cpu \(cuda failed: gpuagg.pinned_memory_limit reached\)/, '... the third is left to the CPU engine');
	is($node->safe_psql('postgres', "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; $query"),
		$answer, '... in a parallel plan as well');
	close $_->[0] foreach @sessions;
	$node->wait_for_devices('sum(sessions)', 0);
	like($node->safe_psql('postgres', $explain), qr/Engine: cuda/, '... and has the GPU when there is room again');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET gpuagg.pinned_memory_limit');
	$node->reload;
}

# ---- peers ----

# More connections than sessions: the reason is told, and the CPU engine answers.
{
	my @idle = map { IO::Socket::UNIX->new(Peer => $socket) } 1 .. 512;
	my ($out, $err);
	my $since = time;
	SKIP:
	{
		skip 'too few file descriptors', 3 if grep { !$_ } @idle;
		$node->psql('postgres', "SET client_min_messages = 'debug1'; $query", stdout => \$out, stderr => \$err);
		is($out, $answer, 'more connections than sessions: answered by the CPU engine');
		like($err, qr/engine "cuda" failed: too many sessions at the GPU server/, '... and said so');
		# connections that send no greeting are closed
		ok(wait_until(sub { !grep { my $in = ''; vec($in, fileno($_), 1) = 1; !select($in, undef, undef, 0) } @idle }), '... and who does not greet is put out');
	}
	close $_ foreach grep { $_ } @idle;
	usleep(200_000);
	is($node->safe_psql('postgres', $query), $answer, '... and queries run again');
}

# One that floods and never reads, one that sends half: others do not notice.
{
	my ($flood) = greeted();
	my ($half) = greeted();
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
	is($node->safe_psql('postgres', $query), $answer, 'a peer that floods and never reads, and one that sends half: others do not notice');
	is($node->devices('max(queries)') - $before, 1, '... on the GPU');
	is($node->server_pid, $pid, '... and the server lives on');
}

# ---- when it is started ----

# A program that is started and ends: how often, in a while.
my $dir = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
# Starts of a program in so many seconds, and until there is $least.
sub starts
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

# Messages to the supervisor, whose pipe is the last argument.
my $fd = 'fd=${@: -1}';
my $times = starts('exit 1', 4, 2);
cmp_ok($times, '>=', 2, 'a server that ends at once is started again');
cmp_ok($times, '<=', 6, '... with growing pauses');
like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; EXPLAIN (COSTS OFF) $sums"), qr/Engine: cpu \(the GPU server is (restarting|starting)/, '... and the CPU engine answers');
my $text = 'no GPU that this build knows';
$times = starts("$fd\nprintf 'AGPG\\x81\\0\\0\\0\\x" . sprintf('%02x', length $text) . "\\0\\0\\0\\0\\0\\0\\0$text' >&\$fd\nexit 0", 3, 1);
is($times, 1, 'a server that finds no device is started once');
like($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; EXPLAIN (COSTS OFF) $sums"), qr/Engine: cpu \(no GPU: $text\)/, '... and says why');
$times = starts("$fd\nprintf 'nonsense that is no message' >&\$fd\nsleep 60", 2, 1);
cmp_ok($times, '<=', 5, 'nonsense on the pipe is the end of a server, with pauses');
is($node->safe_psql('postgres', "SET gpuagg.engine = 'auto'; $query"), $answer, '... and the CPU engine answers');

# The server before this one, still dying after a crash of the cluster, holds memory of the devices.
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
	like(slurp_file("/proc/$before/stat"), qr/\) Z /, '... when the one before it is gone, though nobody has collected it');
	waitpid($before, 0);
	is($node->safe_psql('postgres', $query), $answer, '... and runs queries');
}
$node->stop;
done_testing();
