# The library's file is replaced while the server runs, as "make install" and packages do it. Processes that have loaded the older
# file keep it. They must not share plans or memory with processes that load the newer one.
#
# The cluster runs from a copy of PostgreSQL, whose library the test replaces. Other builds are copies of the library with another
# build id, or without a function.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use GpuaggNode;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $copy = PostgreSQL::Test::Utils::tempdir;
my ($bindir, $pkglibdir, $sharedir) = map { my $path = `pg_config --$_`; chomp $path; $path } qw(bindir pkglibdir sharedir);
my $library = "$copy$pkglibdir/gpuagg.so";

# Programs find the other files by their own path, which must not be a symbolic link.
make_path("$copy$bindir", "$copy$pkglibdir", dirname("$copy$sharedir"));
system_or_bail('cp', '-R', "$bindir/.", "$copy$bindir");
system_or_bail('cp', '-Rs', "$pkglibdir/.", "$copy$pkglibdir");
symlink($sharedir, "$copy$sharedir") or die "symlink: $!";

# ---- the builds ----
my $current = slurp_file("$pkglibdir/gpuagg.so");
my $note = qr/\x04\0{3}([\x08-\x14])\0{3}\x03\0{3}GNU\0/;
ok($current =~ $note, 'the linker has put a build id into the library');
my $another = $current =~ s/($note)(.{8})/$1 . ($3 ^ ("\xff" x 8))/ser;
# gpuagg_status is new in version 1.1 of the extension
my $older = $another =~ s/gpuagg_status\0/gpuagg_stotus\0/gr;
isnt($older, $another, 'another build has no function of version 1.1');

# Replaces the library by a new file.
sub install
{
	my ($content) = @_;
	open(my $file, '>:raw', "$library.new") or die "open: $!";
	print $file $content;
	close($file) or die "close: $!";
	rename("$library.new", $library) or die "rename: $!";
	return;
}

my $node = PostgreSQL::Test::Cluster->new('main', install_path => dirname("$copy$bindir"));
install($current);
$node->init;
$node->append_conf('postgresql.conf', "fsync = off\njit = off\nsession_preload_libraries = 'gpuagg'\n");
$node->start;
$node->safe_psql('postgres', <<SQL);
CREATE EXTENSION gpuagg VERSION '1.0';
CREATE TABLE t AS SELECT i % 7 AS k, i AS v FROM generate_series(1, 100000) i;
ANALYZE t;
SQL

my $query = 'SELECT sum(s) FROM (SELECT k, gpu_sum(v) AS s FROM t GROUP BY k) q';
my $right = '5000050000';

# A session in which plans are parallel, and have the custom scan.
sub session
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query(parallel_settings() . " SET gpuagg.require = 'require'");
	return $session;
}

# The output of a query in a session, followed by its error.
sub in_session
{
	my ($session, $sql) = @_;
	$session->{stderr} = '';
	my $out = $session->query($sql);
	return $out . $session->{stderr} =~ s/^psql:.*?: //mgr;
}

# Whether the process of the session has loaded a file that no longer exists.
sub has_deleted_library
{
	my ($session) = @_;
	return slurp_file('/proc/' . $session->query('SELECT pg_backend_pid()') . '/maps') =~ /gpuagg\.so \(deleted\)/ ? 1 : 0;
}

# ---- loaded by sessions ----
my $session = session();
like(in_session($session, "EXPLAIN (COSTS OFF) $query"), qr/Gather.*Custom Scan \(GpuAgg\)/s, 'a session has a parallel plan');
is(in_session($session, "PREPARE q AS $query; EXECUTE q"), $right, '... with the right answer');
install($another);
my $error = qr/^ERROR:  parallel worker has loaded another build of library "gpuagg"
DETAIL:  The library's file was replaced after this session had loaded it.
HINT:  Reconnect, so that the session loads the new library.$/m;
like(in_session($session, $query), $error, 'after the library was replaced, a parallel plan fails');
like(in_session($session, 'EXECUTE q'), $error, '... also a prepared one');
is(in_session($session, "SET max_parallel_workers_per_gather = 0; $query"), $right, '... another plan works in the session');
is(in_session($session, 'SET gpuagg.enabled = off; SET gpuagg.require = allow; SET max_parallel_workers_per_gather = 2; ' . $query), $right,
	'... and parallel plans without the custom scan do');
is(in_session(session(), $query), $right, 'a new session has the right answer');

# ---- shared memory ----
$node->safe_psql('postgres', 'ALTER EXTENSION gpuagg UPDATE');
my $taken = "SELECT (SELECT sum(calls) FROM gpuagg_stats WHERE event = 'taken')";
SKIP:
{
	skip 'before release 17, the library must be preloaded for shared memory', 3 if $node->pg_version < 17;
	is(in_session($session, "$taken > 1"), 't', 'the session has its own counters');
	is(in_session(session(), $taken), '1', '... and sessions with the new library have others');
	is(in_session($session, 'SELECT count(*) FROM gpuagg_progress'), '0', '... and gpuagg_progress works in the session');
}
$session->quit;

# ---- new functions, and the older library again ----
install($older);
$session = session();
is(in_session($session, $query), $right, 'an older library works with the objects of the newer version');
my $missing = qr/^ERROR:  could not find function "gpuagg_status" in file ".*gpuagg\.so"$/m;
like(in_session($session, 'SELECT * FROM gpuagg_status()'), $missing, '... except for functions that it does not have');
$node->safe_psql('postgres', "DROP EXTENSION gpuagg; CREATE EXTENSION gpuagg VERSION '1.0'");
install($current);
like(in_session($session, 'ALTER EXTENSION gpuagg UPDATE'), $missing, 'a session with the older library cannot update the objects');
is(in_session($session, "SET max_parallel_workers_per_gather = 0; SELECT gpuagg_version(); $query"), "1.0\n$right", '... and they stay as they are');
is($node->safe_psql('postgres', 'ALTER EXTENSION gpuagg UPDATE; SELECT count(*) FROM gpuagg_status()'), '1', 'a new session can');
like(in_session($session, 'SELECT * FROM gpuagg_status()'), $missing, '... and in the older session the new function fails');
is(in_session($session, $query), $right, '... but aggregates do not');
$session->quit;

# ---- loaded by the postmaster ----
$node->safe_psql('postgres', "DROP EXTENSION gpuagg; CREATE EXTENSION gpuagg VERSION '1.0'");
install($older);
$node->append_conf('postgresql.conf', "session_preload_libraries = ''\nshared_preload_libraries = 'gpuagg'\n");
$node->restart;
$session = session();
is(in_session($session, $query), $right, 'with shared_preload_libraries, a session has the right answer');
install($current);
my $newer = session();
foreach ([ 'an old', $session ], [ 'a new', $newer ])
{
	my ($age, $which) = @$_;
	is(has_deleted_library($which), 1, "after the library was replaced, $age session has the older one");
	is(in_session($which, $query), $right, '... and parallel plans have the right answer');
}
like(in_session($newer, 'ALTER EXTENSION gpuagg UPDATE'), $missing, '... the objects cannot be updated');
is(in_session($newer, 'SELECT gpuagg_version()'), '1.0', '... and stay as they are');
$_->quit for $session, $newer;
$node->restart;
$session = session();
is(has_deleted_library($session), 0, 'after a restart, sessions have the new library');
is(in_session($session, "ALTER EXTENSION gpuagg UPDATE; SELECT gpuagg_version(); $query"), "1.1\n$right", '... and the objects can be updated');
$session->quit;

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal|TRAP/, 'no process crashed');
done_testing();
