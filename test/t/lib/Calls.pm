# Calls of every aggregate of the extension. They are made from the catalog, so that new aggregates are included.
package Calls;

use strict;
use warnings;
use Exporter 'import';

our @EXPORT = qw(create_rows aggregate_calls);

# An argument of each type, over the columns of create_rows.
my %argument = (
	smallint => 'small', integer => 'i', bigint => 'i::bigint', real => 'x::real', 'double precision' => 'x', numeric => 'n',
	money => 'i::int::money', interval => 'iv', boolean => 'b', text => 's', character => 's::bpchar', date => 'ts::date',
	'time without time zone' => 'ts::time', 'time with time zone' => 'ts::time::timetz', 'timestamp without time zone' => 'ts',
	'timestamp with time zone' => 'ts::timestamptz', inet => "'10.0.0.0'::inet + i", oid => 'i::oid', xid8 => 'i::text::xid8',
	bytea => "convert_to(s, 'UTF8')", pg_lsn => "'0/0'::pg_lsn + i", tid => "format('(%s,1)', i)::tid", anyenum => "(ARRAY['a', 'b'])[1 + i % 2]::letter",
	anyarray => 'ARRAY[i, small]', anyelement => 'n', anycompatible => 'i', '"any"' => 's', 'bigint[]' => 'ARRAY[i, 1]::bigint[]',
	'numeric[]' => 'ARRAY[i, 1]::numeric[]', 'double precision[]' => 'ARRAY[0.25, 0.5]::float8[]', gpuagg_state => undef);

# states of one value, 1
my $distinct_state = '\x0106000000010015a401';
my $percentile_state = '\x0107000000013fe0' . '0' x 84 . '3ff00000000000003ff000000000000000000001bff00000000000000000000000000001';

# Argument lists of functions for which the arguments above are invalid. The key is the function's name and number of arguments.
my %arguments = (
	gpu_histogram5 => 'x, 0, 100000, 10, x', gpu_histogram4 => 'x, 0, 100000, 10', gpu_histogram2 => 'x, ARRAY[1, 10, 100]::float8[]',
	gpu_histogram2d8 => 'x, 0, 100000, 10, i, 0, 100000, 3', gpu_histogram2d9 => 'x, 0, 100000, 10, i, 0, 100000, 3, x',
	gpu_histogram_log4 => 'x, 1, 1e6, 10', gpu_approx_percentile2 => 'x, ', gpu_matrix_product1 => 'ARRAY[[1, 0], [x / 1e9, 1]]',
	gpu_compose_linear2 => '0.5, x', gpu_product1 => '1::', gpu_max_n2 => 'n, 3', gpu_min_n2 => 's, 3', gpu_argmax_n3 => 'n, i, 3',
	gpu_argmin_n3 => 's, i, 3', gpu_value_counts2 => 's, 3', gpu_top_k2 => 's, 3',
	gpu_histogram_auto2 => 'x, 20', gpu_histogram_equidepth2 => 'x, 20', gpu_exp_histogram2 => 'x, 5', gpu_exp_histogram_merge1 => "gpu_exp_histogram_of(3, 1, i % 50, '{1}')",
	gpu_approx_count_distinct_merge1 => "'$distinct_state'::gpuagg_state", gpu_approx_percentile_merge1 => "'$percentile_state'::gpuagg_state");

# Creates table $name with $n rows.
sub create_rows
{
	my ($node, $name, $n) = @_;

	$node->safe_psql('postgres', <<SQL);
DO 'BEGIN CREATE TYPE letter AS ENUM (''a'', ''b''); EXCEPTION WHEN duplicate_object THEN END';
CREATE TABLE $name AS SELECT i, (i * 7919::bigint % 1000003)::int AS k, (i % 100)::smallint AS small, i::float8 AS x, i::numeric AS n,
	md5(i::text) AS s, i % 2 = 0 AS b, make_interval(secs => i) AS iv, timestamp '2020-01-01' + make_interval(secs => i) AS ts
FROM generate_series(1, $n) i;
VACUUM ANALYZE $name;
SQL
	return;
}

# Returns [name with types, call] for each aggregate. The call has an ORDER BY if the result depends on the order of rows.
sub aggregate_calls
{
	my ($node) = @_;
	my @calls;

	foreach my $line (split /\n/, $node->safe_psql('postgres', <<'SQL'))
SELECT p.proname, a.aggkind, a.aggnumdirectargs, array_to_string(ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY u(t, n) ORDER BY n), '|')
FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid WHERE p.proname LIKE 'gpu\_%' ORDER BY 1, 4
SQL
	{
		# psql separates columns by "|", and the last column contains "|" too
		my ($name, $kind, $ndirect, $types) = split /\|/, $line, 4;
		my @types = split /\|/, $types // '';
		my @values = map { exists $argument{$_} ? $argument{$_} : die "no argument of type $_ for $name" } @types;
		my $key = $name . @types;
		my $direct = join(', ', map { $types[$_] eq 'double precision' ? '0.5' : $values[$_] } 0 .. $ndirect - 1);
		my $call;

		if ($kind eq 'n')
		{
			my $list = $arguments{$key} // join(', ', @values);

			$list .= $types[1] eq 'double precision' ? '0.5' : $values[1] if $name eq 'gpu_approx_percentile';
			$list .= $types[0] if $name eq 'gpu_product';
			$list = '*' if !@types;
			$list .= ' ORDER BY k' if $name =~ /run$|subarray|matrix|linear/;
			$call = "$name($list)";
		}
		else
		{
			$call = "$name($direct) WITHIN GROUP (ORDER BY $values[$ndirect])";
		}
		push @calls, [ "$name(" . join(', ', @types) . ')', $call ];
	}
	return @calls;
}

1;
