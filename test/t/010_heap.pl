# The heap feed: on a hot standby, whose snapshots must not trust newer all-visible marks; gpuagg_progress of a running scan; and no
# pinned buffer after a cancelled, failed or abandoned scan. The reference is core's answer.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use IPC::Run;
use Test::More;

my $primary = GpuaggNode->start_new('primary', init => [ allows_streaming => 1 ], conf => <<CONF);
gpuagg.engine = 'cpu'
autovacuum = off
CONF
$primary->safe_psql('postgres', <<SQL);
CREATE TABLE rows (id int, k int, v numeric(10,2), t text);
INSERT INTO rows SELECT i, i % 7, i / 100.0, 't' || i % 3 FROM generate_series(1, 50000) i;
VACUUM ANALYZE rows;
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = 30s\n");
$standby->start;

my $ours = "SET gpuagg.require = 'require'; SELECT k, gpu_count(*), gpu_sum(v), gpu_max(t) FROM rows GROUP BY k ORDER BY k";
my $core = 'SELECT k, count(*), sum(v), max(t) FROM rows GROUP BY k ORDER BY k';


like($standby->safe_psql('postgres', "SET gpuagg.require = 'require'; EXPLAIN SELECT gpu_count(*) FROM rows"),
	qr/Feed: .*heap pages of rows/, 'the standby uses the heap feed');
my @changes = (
	'DELETE FROM rows WHERE id % 10 = 3',
	'UPDATE rows SET v = v + 1 WHERE id % 4 = 0',
	'VACUUM rows',
	"INSERT INTO rows SELECT i, 9, 1, 'new' FROM generate_series(1, 2000) i",
	'VACUUM FREEZE rows',
	'BEGIN; DELETE FROM rows WHERE k = 1; ROLLBACK',
	'ALTER TABLE rows ADD extra int DEFAULT 3',
	'TRUNCATE rows');
for my $change (@changes)
{
	$primary->safe_psql('postgres', $change);
	$primary->wait_for_catchup($standby);
	is_right_answer($standby, $ours, "the standby's answer is right after $change", reference => $core);
}

# A snapshot on the standby must not trust all-visible marks that were set after it.
$primary->safe_psql('postgres', "INSERT INTO rows SELECT i, i % 7, 1, 'x' FROM generate_series(1, 10000) i");
$primary->wait_for_catchup($standby);
my $session = $standby->background_psql('postgres') if $standby->can('background_psql');
SKIP:
{
	skip 'no interactive sessions in this version', 1 unless $session && $session->can('query_safe');
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $before = $session->query_safe($ours);
	$primary->safe_psql('postgres', "INSERT INTO rows SELECT i, 1, 1, 'y' FROM generate_series(1, 3000) i; VACUUM rows");
	$primary->wait_for_catchup($standby);
	is($session->query_safe($ours), $before, 'an old snapshot on the standby sees the old rows');
	$session->quit;
}

$standby->stop;

# ---- gpuagg_progress ----

$primary->safe_psql('postgres', <<SQL);
CREATE FUNCTION slow(int) RETURNS int STRICT IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.001); RETURN \$1; END';
SQL
my ($in, $out, $err) = ('', '', '');
my $scan = IPC::Run::start(
	[ 'psql', '-XqAt', '-d', $primary->connstr('postgres') ], '<', \$in, '>', \$out, '2>', \$err);
$in .= "SET gpuagg.require = 'require'; SET gpuagg.batch_rows = 64; SELECT k, gpu_sum(slow(id)) FROM rows GROUP BY k;\n";
$scan->pump_nb;
ok($primary->poll_query_until('postgres',
		"SELECT relation = 'rows'::regclass AND blocks_total > 0 AND blocks_done > 0 AND rows > 0 AND groups > 0 FROM gpuagg_progress"),
	'gpuagg_progress shows a running scan');
$primary->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM gpuagg_progress");
ok($primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM gpuagg_progress'), '... and not after its end');
$in .= "\\q\n";
$scan->finish;

# ---- pins ----

# Cancelled, failed and abandoned scans leave no pinned buffer, although their session, and sometimes their transaction, continues.
$primary->safe_psql('postgres', "INSERT INTO rows SELECT i, i % 7, 1, 'x' FROM generate_series(1, 300000) i; ANALYZE rows");
$primary->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache');
$session = $primary->background_psql('postgres', on_error_stop => 0);
my $long = "SELECT t, gpu_count(*), gpu_sum(v) FROM rows WHERE md5(md5(repeat(id::text, 50))) > '0' GROUP BY t";
my $failing = 'SELECT k, gpu_sum(1 / (id - 200000)) FROM rows GROUP BY k';
my $pins = "SELECT coalesce(sum(pinning_backends), 0) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('rows')";

# [what, statements, SQLSTATE of the last error]
for my $case (
	[ 'cancelled', "SET statement_timeout = '20ms'; $long; SET statement_timeout = 0", '57014' ],
	[ 'failed', $failing, '22012' ],
	[ 'failed in a subtransaction', "BEGIN; SAVEPOINT s; $failing; ROLLBACK TO s", '22012' ],
	[ 'failed after that', "$failing; ROLLBACK", '22012' ],
	[ 'caught', "DO \$\$ BEGIN PERFORM gpu_sum(1 / (id - 200000)) FROM rows; EXCEPTION WHEN division_by_zero THEN RAISE SQLSTATE '01234'; END \$\$", '01234' ],
	[ 'cursor', 'BEGIN; DECLARE c CURSOR FOR SELECT k, gpu_count(*) FROM rows GROUP BY k; FETCH 1 FROM c; CLOSE c; SELECT 1 / 0; ROLLBACK', '22012' ],
	[ 'cursor in a subtransaction', "BEGIN; SAVEPOINT s; DECLARE c CURSOR FOR $failing; FETCH 1 FROM c; ROLLBACK TO s", '22012' ],
	[ 'row locks and a change', 'ROLLBACK; BEGIN; UPDATE rows SET v = 2 WHERE id < 100; SAVEPOINT s; ' . $failing . '; ROLLBACK', '22012' ])
{
	my ($what, $statements, $state) = @$case;

	# psql sends each line as its own message
	$session->query("SET gpuagg.require = 'require';\nSET gpuagg.feed = 'heap';\n" . ($statements =~ s/;(?![^\$]*\$\$)\s*/;\n/gr) . ';');
	is($session->query('\echo :LAST_ERROR_SQLSTATE'), $state, "$what: the error is the expected one");
	is($primary->safe_psql('postgres', $pins), '0', "$what: no pin is left");
}
like($primary->safe_psql('postgres', "SET gpuagg.feed = 'heap'; EXPLAIN $long"), qr/Feed: .*heap pages of rows/, 'these scans use the heap feed');
$primary->safe_psql('postgres', "SET lock_timeout = '60s'; SET statement_timeout = '300s'; DELETE FROM rows; VACUUM FREEZE rows");
is($primary->safe_psql('postgres', "SELECT pg_relation_size('rows')"), '0', 'VACUUM can truncate the table');
unlike(slurp_file($primary->logfile), qr/refcount leak|still referenced/, 'the log reports no leaked pin');
$session->quit;

$primary->stop;
done_testing();
