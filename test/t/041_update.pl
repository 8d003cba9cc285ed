# Updates of the extension. Every older version of the SQL objects works with this library. Its update creates the same objects as a new
# installation, and keeps the views, indexes, defaults and policies that use them.
use strict;
use warnings;
use GpuaggNode;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = GpuaggNode->start_new('main', conf => "timezone = 'UTC'\n");
my $members = slurp_file("$ENV{TOP}/lib/members.sql");
my $objects = slurp_file("$ENV{TOP}/lib/objects.sql");
my $row_by_row = 'SET gpuagg.enabled = off;';
my $custom_scan = "SET gpuagg.require = 'require';";

# Rows of kept.answers() (lib/objects.sql): the answers of the views whose names are LIKE a pattern.
sub view_answers { my ($db, $settings, $like) = @_; return $node->safe_psql($db, "$settings SELECT * FROM kept.answers('$like')") }

# Tests that two long texts are equal, and shows the first line that differs.
sub is_same_text
{
	my ($got, $expected, $name) = @_;
	my @got = split /\n/, $got;
	my @expected = split /\n/, $expected;
	my ($at) = grep { ($got[$_] // '') ne ($expected[$_] // '') } 0 .. ($#got > $#expected ? $#got : $#expected);

	ok(!defined $at, $name) or diag("line $at: got      $got[$at]\nexpected $expected[$at]");
}

my $newest = $node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = 'gpuagg'");
my $fresh_members = $node->safe_psql('postgres', $members);
cmp_ok(scalar(() = $fresh_members =~ /^aggregate\|/mg), '>', 110, 'a new installation has more than 110 aggregates');
is($node->safe_psql('postgres', "SELECT count(*) FROM (SELECT DISTINCT classid FROM pg_depend WHERE refclassid = 'pg_extension'::regclass
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpuagg') AND deptype = 'e') c
	WHERE classid NOT IN ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_class'::regclass)"), '0', 'all members are of kinds that members.sql compares');
unlike($fresh_members, qr/LANGUAGE internal|pg_catalog\.int8pl/, 'no member is an internal function under another name');
unlike($node->safe_psql('postgres', <<SQL), qr/./, 'no aggregate uses functions of pg_catalog');
SELECT aggfnoid::regprocedure FROM pg_aggregate JOIN pg_depend d ON objid = aggfnoid AND classid = 'pg_proc'::regclass AND deptype = 'e'
	JOIN pg_extension x ON x.oid = refobjid AND extname = 'gpuagg'
WHERE greatest(aggtransfn::oid, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn, aggmtransfn, aggminvtransfn, aggmfinalfn) < 16384
	OR EXISTS (SELECT FROM unnest(ARRAY[aggtransfn::oid, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn,
		aggmtransfn, aggminvtransfn, aggmfinalfn]) f WHERE f BETWEEN 1 AND 16383)
SQL

# ---- updates ----------------------------------------------------------------
foreach my $version (split /\n/, $node->safe_psql('postgres',
		"SELECT version FROM pg_available_extension_versions WHERE name = 'gpuagg' AND version <> '$newest' ORDER BY 1"))
{
	my $db = "from_$version";

	$node->safe_psql('postgres', qq(CREATE DATABASE "$db"));
	$node->safe_psql($db, "CREATE EXTENSION gpuagg VERSION '$version'; $objects");
	my $before = view_answers($db, $row_by_row, '%');
	cmp_ok(scalar(() = $before =~ /^w_gpu_/mg), '>', 100, "$version: the views use more than 100 aggregates");
	is_same_text(view_answers($db, $custom_scan, 'g\_%'), view_answers($db, $row_by_row, 'g\_%'), "$version: before the update the custom scan gives the same answers");
	is_same_text(view_answers($db, "SET gpuagg.require = 'allow';", '%'), $before, "$version: ... and all views do with gpuagg.require = allow");
	my $views = $node->safe_psql($db, "SELECT oid, pg_get_viewdef(oid) FROM pg_class WHERE relnamespace = 'kept'::regnamespace AND relkind = 'v' ORDER BY relname");

	# a session that has a plan with the older functions
	my $session = $node->background_psql($db);
	$session->query_safe("SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT gpu_sum(c_int8), gpu_avg(c_interval) FROM kept.everything");
	my $planned = $session->query_safe('EXECUTE q');

	# core runs the queries of the update script, although settings require a GPU that does not exist
	$node->safe_psql($db, "SET gpuagg.engine = 'cuda'; SET gpuagg.require = 'require'; SET gpuagg.replace_builtin = on;
		ALTER EXTENSION gpuagg UPDATE");
	is($node->safe_psql($db, 'SELECT gpuagg_version()'), $newest, "$version: the update leads to version $newest");
	is($session->query_safe('EXECUTE q'), $planned, "$version: a plan of a session from before the update gives the same answer");
	$session->quit;
	is_same_text($node->safe_psql($db, $members), $fresh_members, "$version: after the update every object is that of a new installation");
	is_same_text(view_answers($db, $row_by_row, '%'), $before, "$version: after the update the views give the same answers without the custom scan");
	is_same_text(view_answers($db, $custom_scan, 'g\_%'), view_answers($db, $row_by_row, 'g\_%'), "$version: ... and by the custom scan");
	is($node->safe_psql($db, "SELECT oid, pg_get_viewdef(oid) FROM pg_class WHERE relnamespace = 'kept'::regnamespace AND relkind = 'v' ORDER BY relname"),
		$views, "$version: the views' definitions are the same");
	is($node->safe_psql($db, 'SET ROLE reader; SELECT count(*) FROM kept.everything'), '120', "$version: the policy is in effect");
	like($node->safe_psql($db, 'SET enable_seqscan = off; EXPLAIN SELECT * FROM kept.with_product; EXPLAIN SELECT * FROM kept.with_total'),
		qr/by_product.*by_total/s, "$version: the indexes are used");
	is($node->safe_psql($db, 'INSERT INTO kept.defaults (id) VALUES (3) RETURNING total, mean'), '6|03:00:00', "$version: a default and a generated column have the right values");
	is($node->safe_psql($db, 'REINDEX TABLE kept.everything; REFRESH MATERIALIZED VIEW kept.stored; DROP SCHEMA kept CASCADE; DROP EXTENSION gpuagg;
		SELECT count(*) FROM pg_proc WHERE proname LIKE $$gpu%$$'), '0', "$version: the extension can be dropped");
}

$node->stop;
done_testing();
