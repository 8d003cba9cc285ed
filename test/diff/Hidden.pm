# Queries of a role from which rows are hidden. Policies and security_barrier views hide rows, privileges hide a column, and some rows
# are deleted after columns were cached. Functions in the queries report their argument as a NOTICE, or as an INFO, which no setting
# suppresses. The role must not get more messages than from core.
#
# The queries read t, or table h. Queries over the cached columns of h read rows from the device, whose dictionaries contain values of
# hidden and of deleted rows too.
package Hidden;
use strict;
use warnings;
use Types;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; }

my $rows = 6000;

# The name of the role. Roles belong to the cluster, so each seed has its own.
our $role;

# Statements that create h, the functions and the policies. A third of h's rows is visible, and visible and hidden rows have different
# values. @also: more tables of which the role sees some rows, each with their condition.
sub statements
{
	my (@also) = @_;

	return (
		"DO \$\$ BEGIN CREATE ROLE $role; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END \$\$",
		'DROP TABLE IF EXISTS h CASCADE',
		'DROP TYPE IF EXISTS span CASCADE',
		'CREATE TYPE span AS RANGE (subtype = int4)',
		q{CREATE OR REPLACE FUNCTION told(text) RETURNS bool LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RAISE NOTICE ''told %'', $1; RETURN true; END'},
		q{CREATE FUNCTION span_json(span) RETURNS json LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS 'BEGIN RAISE INFO ''cast %'', $1; RETURN ''1''; END'},
		'CREATE CAST (span AS json) WITH FUNCTION span_json(span)',
		'CREATE TABLE h (id int, k int, word text, name text, n int, price numeric(12,2), s span, secret text)',
		q{INSERT INTO h SELECT i, i % 7, 'w' || i % 99, nullif('n' || i % 60, 'n9'), i % 90, (i % 30) * 2.5, span(i % 99, i % 99 + 2), 's' || i % 50 }
		  . "FROM generate_series(1, $rows) i",
		'VACUUM (FREEZE, ANALYZE) h',
		"GRANT SELECT ON ALL TABLES IN SCHEMA public TO $role",
		"REVOKE ALL ON h FROM $role",
		"GRANT SELECT (id, k, word, name, n, price, s) ON h TO $role",
		'CREATE VIEW h_behind WITH (security_barrier) AS SELECT * FROM h WHERE id % 3 = 0',
		"GRANT SELECT ON h_behind TO $role",
		(map { ("ALTER TABLE $_->[0] ENABLE ROW LEVEL SECURITY", "CREATE POLICY some_rows ON $_->[0] TO $role USING ($_->[1])") } [ 't', 'id % 3 = 0' ], [ 'h', 'id % 3 = 0' ], @also));
}

# A query that reads the columns of h with dictionaries.
our $reading = 'SELECT word, gpu_count(name), gpu_count(s) FROM h GROUP BY word';

# Statements that delete all rows with one value, after the columns were cached and uploaded; usually none.
sub changes
{
	return () if !chance(0.1);
	return (
		'SET gpuagg.cache = eager',
		$reading, $reading,
		'DELETE FROM h WHERE id % 99 = ' . int_between(0, 98),
		chance(0.5) ? 'VACUUM h' : ());
}

# Settings with which columns are cached and uploaded.
sub scan_settings
{
	return [ 'gpuagg.cache = eager', 'max_parallel_workers_per_gather = 0' ];
}

# Settings that follow those of the query.
sub role_settings
{
	return [ 'client_min_messages = notice', "ROLE $role" ];
}

# A condition that reports the text of a column: by a function of the user, or by to_tsquery(), which gives a notice with its argument
# if that has no lexemes. The argument consists of blanks and tabs, the bits of a hash of the text.
sub reporting_condition
{
	my ($column) = @_;

	return "told($column\::text)" if chance(0.4);
	return "(to_tsquery('simple', translate(('x' || left(md5($column\::text), 8))::bit(32)::text, '01', E' \\t')) IS NOT NULL)";
}

# A query over t, or over a security_barrier view of it, with a condition that reports a column.
sub over_t
{
	my ($query, @columns) = @_;
	my $column = pick(@columns)->{name};
	my $barrier = chance(0.3);
	my $inner = '(SELECT * FROM ' . ($barrier ? 't_behind' : 't') . ' WHERE ' . reporting_condition($column) . pick('', ' AND id < 40', ' AND id % 2 = 0') . ') t';
	my @setup = $barrier ? ('CREATE VIEW t_behind WITH (security_barrier) AS SELECT * FROM t WHERE id % 3 = 1', "GRANT SELECT ON t_behind TO $role") : ();

	return { %$query, last => role_settings(), setup => \@setup, sql => $query->{sql} =~ s/ FROM t\b/ FROM $inner/r, all_rows => "SELECT agg:count(*) FROM $inner", teardown => $barrier ? ['DROP VIEW t_behind'] : [] };
}

# A query over h that reports a column, in a condition, a key, an argument or a FILTER.
sub over_h
{
	my $from = pick('h', 'h', 'h_behind');
	my $column = $from eq 'h' && chance(0.1) ? 'secret' : pick('word', 'word', 'name', 'n');
	my $key = pick('k', 'word', 'name', 'n % 4', "left(word, 2)");
	my $reports = chance(0.25) ? '(length(to_json(s)::text) > 0)' : reporting_condition($column);
	my @conditions = pick([], [], ['n < 40'], ["word LIKE '%3%'"], ["word = 'w3'"], [ 'price > 20', 'k IN (1, 2)' ]);
	my ($select, $where) = @{ pick([ "$key, agg:count(*), agg:sum(n)", $reports ], [ "$key, agg:count(*)", $reports ], [ "$key, agg:count(*) FILTER (WHERE $reports), agg:max(price)" ],
		[ "$reports, agg:count(*), agg:sum(price)" ], [ "$key, agg:sum(CASE WHEN $reports THEN n END)" ]) };

	@conditions = @{ $conditions[0] };
	@conditions = chance(0.5) ? (@conditions, $where) : ($where, @conditions) if $where;
	return {
		form => 'plain',
		last => role_settings(),
		float => [ (0) x 3 ],
		sql => "SELECT $select FROM $from" . (@conditions ? ' WHERE ' . join(' AND ', @conditions) : '') . ' GROUP BY 1' };
}

1;
