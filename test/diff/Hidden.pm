# Queries by a role that may not see everything: policies and security_barrier views hide rows, privileges hide a column, and some
# rows are deleted after columns were cached.  Conditions send their argument as a NOTICE, or as an INFO, which no setting silences.
# Whoever asks may be told of no more than core tells.
#
# Beside t there is the table h for this: queries like a dashboard's over its cached columns reach the rows in a GPU's memory,
# whose dictionaries have the values of hidden and of deleted rows too.
package Hidden;
use strict;
use warnings;
use Types;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; }

my $rows = 6000;

# The role, which is one of the cluster's, so each seed has its own.
our $role;

# What a set needs beside its tables.  In h a third of the rows is visible, and their values are others than those of hidden rows.
sub statements
{
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
		(map { ("ALTER TABLE $_ ENABLE ROW LEVEL SECURITY", "CREATE POLICY some_rows ON $_ TO $role USING (id % 3 = 0)") } 't', 'h'));
}

# What reads the columns of h that have dictionaries.
our $reading = 'SELECT word, gpu_count(name), gpu_count(s) FROM h GROUP BY word';

# Deletes all rows of a word and a range, mostly none, after they were cached, and then copied to the GPU's memory.
sub changes
{
	return () if !chance(0.1);
	return (
		'SET gpuagg.cache = eager',
		$reading, $reading,
		'DELETE FROM h WHERE id % 99 = ' . int_between(0, 98),
		chance(0.5) ? 'VACUUM h' : ());
}

# Settings under which columns are cached, and go to the GPU's memory.
sub scan_settings
{
	return [ 'gpuagg.cache = eager', 'max_parallel_workers_per_gather = 0' ];
}

# What a query is asked with beside its own settings.
sub asked_as
{
	return [ 'client_min_messages = notice', "ROLE $role" ];
}

# What tells of the text of a column: a function of the user's, or one of core's, which says that a query of blanks and tabs has
# no lexemes.  The blanks and tabs are bits of a hash.
sub telling
{
	my ($column) = @_;

	return "told($column\::text)" if chance(0.4);
	return "(to_tsquery('simple', translate(('x' || left(md5($column\::text), 8))::bit(32)::text, '01', E' \\t')) IS NOT NULL)";
}

# A query over t that tells of a column, before other conditions or after them, of a view with a barrier or not.
sub over_t
{
	my ($query, @columns) = @_;
	my $column = pick(@columns)->{name};
	my $barrier = chance(0.3);
	my $inner = '(SELECT * FROM ' . ($barrier ? 't_behind' : 't') . ' WHERE ' . telling($column) . pick('', ' AND id < 40', ' AND id % 2 = 0') . ') t';
	my @setup = $barrier ? ('CREATE VIEW t_behind WITH (security_barrier) AS SELECT * FROM t WHERE id % 3 = 1', "GRANT SELECT ON t_behind TO $role") : ();

	return { %$query, last => asked_as(), setup => \@setup, sql => $query->{sql} =~ s/ FROM t\b/ FROM $inner/r, all_rows => "SELECT agg:count(*) FROM $inner", teardown => $barrier ? ['DROP VIEW t_behind'] : [] };
}

# A dashboard's query over h.
sub over_h
{
	my $from = pick('h', 'h', 'h_behind');
	my $column = $from eq 'h' && chance(0.1) ? 'secret' : pick('word', 'word', 'name', 'n');
	my $key = pick('k', 'word', 'name', 'n % 4', "left(word, 2)");
	my $tells = chance(0.25) ? '(length(to_json(s)::text) > 0)' : telling($column);
	my @conditions = pick([], [], ['n < 40'], ["word LIKE '%3%'"], ["word = 'w3'"], [ 'price > 20', 'k IN (1, 2)' ]);
	my ($select, $where) = @{ pick([ "$key, agg:count(*), agg:sum(n)", $tells ], [ "$key, agg:count(*)", $tells ], [ "$key, agg:count(*) FILTER (WHERE $tells), agg:max(price)" ],
		[ "$tells, agg:count(*), agg:sum(price)" ], [ "$key, agg:sum(CASE WHEN $tells THEN n END)" ]) };

	@conditions = @{ $conditions[0] };
	@conditions = chance(0.5) ? (@conditions, $where) : ($where, @conditions) if $where;
	return {
		form => 'plain',
		last => asked_as(),
		float => [ (0) x 3 ],
		sql => "SELECT $select FROM $from" . (@conditions ? ' WHERE ' . join(' AND ', @conditions) : '') . ' GROUP BY 1' };
}

1;
