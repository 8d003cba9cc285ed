# Participants of a parallel plan divide many groups into partitions, and wait for each other before they merge them. A cancel, an error
# or the end of a participant, whether it waits or others wait for it, ends the query and leaves no process and no file.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', conf => <<CONF);
gpuagg.require = 'require'
gpuagg.engine = 'cpu'
gpuagg.replace_builtin = on
work_mem = '64MB'
jit = off
max_parallel_workers_per_gather = 3
parallel_setup_cost = 0
parallel_tuple_cost = 1
min_parallel_table_scan_size = 0
max_connections = 40
CONF
# The first row has number 0. It delays the participant that reads it, and the others share the remaining rows.
$node->safe_psql('postgres', <<SQL);
CREATE TABLE rows AS SELECT (i * 7919::bigint % 50021)::int AS k, CASE WHEN i > 1 THEN 1 ELSE 0 END AS number
FROM generate_series(1, 400000) i;
ALTER TABLE rows SET (parallel_workers = 3);
VACUUM ANALYZE rows;
CREATE FUNCTION wait(number int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN
	IF number = 0 THEN PERFORM pg_sleep(600); END IF;
	RETURN true;
END';
CREATE FUNCTION fail(number int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN
	IF number = 0 THEN PERFORM pg_sleep(1); RAISE EXCEPTION ''it fails''; END IF;
	RETURN true;
END';
SQL

my $query = 'SELECT count(*) FROM (SELECT k, count(*), sum(number) FROM rows WHERE wait(number) GROUP BY k OFFSET 0) s';
my $others = q{FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE 'SELECT count(*) FROM (SELECT k%'};

# Tests that no process and no temporary file of the query is left.
sub check_nothing_left
{
	my ($name) = @_;

	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 $others AND state = 'active'"), "$name: no process is left");
	my $data = $node->data_dir;
	my @files = grep { !m{/pgsql_tmp$} } glob("$data/base/pgsql_tmp/*");
	is(scalar(@files), 0, "$name: no file is left");
	return;
}

# [name, leader participates, function and its argument for SELECT]
my @cases = (
	[ 'cancel', 'on', "pg_cancel_backend(pid) $others AND backend_type = 'client backend'" ],
	[ 'cancel of a leader that does not participate', 'off', "pg_cancel_backend(pid) $others AND backend_type = 'client backend'" ],
	[ 'end of a worker that waits', 'on', "pg_terminate_backend(pid) FROM (SELECT pid $others AND wait_event_type = 'Extension'
		AND backend_type = 'parallel worker' LIMIT 1) w" ],
	[ 'end of the participant for which the others wait', 'off', "pg_terminate_backend(pid) $others AND wait_event = 'PgSleep'" ]);

foreach my $case (@cases)
{
	my ($name, $leader, $act) = @$case;
	my $err = '';
	my $handle = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "SET parallel_leader_participation = $leader", '-c', $query ],
		'<', \undef, '>', \my $out, '2>', \$err);

	ok($node->poll_query_until('postgres', "SELECT count(*) FILTER (WHERE wait_event_type = 'Extension') > 0
		AND count(*) FILTER (WHERE wait_event = 'PgSleep') = 1
		AND count(*) FILTER (WHERE wait_event_type = 'Extension' AND backend_type = 'parallel worker') > 0 $others"), "$name: participants wait for another one");
	$node->safe_psql('postgres', "SELECT $act");
	IPC::Run::finish($handle);
	like($err, qr/ERROR:|FATAL:/, "$name: the query fails");
	check_nothing_left($name);
}

(my $failing = $query) =~ s/wait/fail/;
my ($rc, $out, $err) = $node->psql('postgres', $failing);
like($err, qr/it fails/, 'error of the participant for which the others wait: the query fails with it');
check_nothing_left('error of the participant for which the others wait');
is($node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT k, count(*) FROM rows GROUP BY k OFFSET 0) s'), '50021', 'a query after these gives the right answer');

# Many sets of distinct values leave early, each of each participant to segments of its own. A server with 40 connections has some 320.
my $sets = join(', ', map { "count(DISTINCT k * 7919::bigint + $_)" } 1 .. 32);
is($node->safe_psql('postgres', "SET work_mem = '2MB'; SELECT $sets FROM rows"), join('|', (50021) x 32),
	'many sets of distinct values leave segments of shared memory for others');
done_testing();
