# Constants of every type, including those that no vector can represent, and lists for IN.
#
# While a query is generated, its constants are placeholders: constant() returns a marker. Later render() replaces each marker by a
# literal, a parameter, a variable or a subquery, as the form of the query requires.
package Values;
use strict;
use warnings;
use Types;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; }

my $long = 'repeat(\'x\', 10000)';

# The usual and the odd values of each type, without quotes; a reference points to an expression. Sums of floats and of their squares do
# not overflow, because an overflow before or after an infinity depends on the order of rows.
my %values = (
	int2 => [ [ 0, 1, 7, -3, 42 ], [ -32768, 32767 ] ],
	int4 => [ [ 0, 1, 5, 7, -3, 42, 100, 500 ], [ -2147483648, 2147483647 ] ],
	int8 => [ [ 0, 1, 7, -3, 42 ], [ '-9223372036854775808', '9223372036854775807' ] ],
	float4 => [ [ 0, 0.5, -1.5, 7 ], [ 'NaN', 'Infinity', '-Infinity', '-0', '1e30', '1e-45' ] ],
	float8 => [ [ 0, 0.5, -1.5, 7 ], [ 'NaN', 'Infinity', '-Infinity', '-0', '1e150', '5e-324' ] ],
	numeric => [ [ 0, '1.50', '-3', '0.25' ], [ 'NaN', 'Infinity', '-Infinity', '1e200', '1e-200', '-1e2000', '0.0000' ] ],
	'numeric(10,2)' => [ [ 0, '1.50', '-3' ], [ 'NaN', 'NaN', '99999999.99' ] ],
	'numeric(40,2)' => [ [ 0, '1.50' ], [ '123456789012345678901234567890.12', '-999999999999999999999999999999.99', 'NaN' ] ],
	bool => [ [ 't', 'f' ], [ 't', 'f' ] ],
	date => [ [ '2001-02-27', '2000-01-01' ], [ 'infinity', '-infinity', '0001-01-01 BC', '4713-01-01 BC', '5874897-12-31' ] ],
	time => [ [ '10:20:30', '00:00' ], [ '24:00:00' ] ],
	timetz => [ [ '10:20:30+01' ], [ '24:00:00+15:59' ] ],
	timestamp => [
		[ '2001-02-27 10:00', '2000-01-01' ],
		[ 'infinity', '-infinity', '0001-12-31 23:59:59.999999 BC', '4714-11-24 BC', '294276-12-31 23:59:59.999999' ]
	],
	timestamptz => [ [ '2001-02-27 10:00+00', '2000-01-01+00' ], [ 'infinity', '-infinity', '0001-01-01 00:00+00 BC', '0001-01-01 00:00+00' ] ],
	interval => [ [ '1 day', '0', '-2 hours' ], [ '178000000 years', '24:00:00', '30 days', '-1 mon' ] ],
	money => [ [ 0, 1.5 ], [ '-92233720368547758.08' ] ],
	oid => [ [ 0, 1, 5 ], [ 4294967295, 2147483648 ] ],
	text => [ [ 'a', 'JFK', 'x', 'k7' ], [ '', \$long, "o''hare", ' ', 'NULL' ] ],
	varchar => [ [ 'a', 'x' ], [ '', \$long ] ],
	bpchar => [ [ 'a', 'ab' ], [ '', 'a   ' ] ],
	'char(4)' => [ [ 'a', 'abcd' ], [''] ],
	'"char"' => [ ['a'], [''] ],
	name => [ ['pg'], [''] ],
	uuid => [ ['00000000-0000-4000-8000-000000000001'], ['ffffffff-ffff-ffff-ffff-ffffffffffff'] ],
	bytea => [ ['\x0001'], [ '', \"decode(repeat('ab', 10000), 'hex')" ] ],
	inet => [ ['10.0.0.1'], ['::/0'] ],
	jsonb => [ ['{"a": 1}'], [ 'null', '{"a": 1.00}', \"to_jsonb(repeat('x', 10000))" ] ],
	'int4[]' => [ ['{1}'], [ '{}', '{NULL}', '[5:6]={1,2}' ] ],
	'numeric[]' => [ ['{1.0}'], ['{NaN,1.00}'] ],
	mood => [ ['ok'], ['happy'] ],
	int4range => [ ['[1,5)'], ['empty'] ],
	numrange => [ ['[1.0,5)'], ['empty'] ],
	varbit => [ ['101'], [''] ]);

# Returns the type without COLLATE, or undef if it has no values here.
sub bare_type
{
	my ($type) = @_;

	$type =~ s/ COLLATE .*//;
	return $values{$type} ? $type : undef;
}

# Returns the types with all their values as literals.
sub all_values
{
	return map { my $type = $_; ($type => [ map { ref $_ ? "($$_)::$type" : "'$_'::$type" } map { @$_ } @{ $values{$type} } ]) } sort keys %values;
}

# Returns a literal of a type. $odd: an odd value; undef: sometimes.
sub literal
{
	my ($type, $odd) = @_;
	my $value;

	$odd //= chance(0.25);
	return "NULL::$type" if $odd && chance(0.1);
	$value = pick(@{ $values{$type}[ $odd ? 1 : 0 ] });
	return ref $value ? "($$value)::$type" : "'$value'::$type";
}

my ($BEGIN, $MIDDLE, $END) = ("\x01", "\x02", "\x03");

# Returns a placeholder for a constant of a type, with the given literal or a random one.
sub constant
{
	my ($type, $literal) = @_;

	$literal //= literal($type, chance(0.3));
	return "$BEGIN$type$MIDDLE$literal$END";
}

# Returns whether a literal is one of the odd values of its type, or NULL.
sub is_odd
{
	my ($type, $literal) = @_;

	return 0 if !$values{$type};
	return 1 if $literal =~ /^NULL/;
	return scalar grep { $literal eq (ref $_ ? "($$_)::$type" : "'$_'::$type") } @{ $values{$type}[1] };
}

sub int_constant
{
	my ($low, $high) = @_;

	return constant('int4', int_between($low, $high));
}

# Replaces all placeholders by $how->(type, literal). Equal placeholders get the same text.
sub render
{
	my ($sql, $how) = @_;
	my %made;

	$sql =~ s/$BEGIN([^$MIDDLE]*)$MIDDLE([^$END]*)$END/$made{"$1$MIDDLE$2"} \/\/= $how->("$1", "$2")/ge;
	return $sql;
}

# Replaces all placeholders by their literals. Negative numbers are in parentheses, because an operator may precede them.
sub literals
{
	my ($sql) = @_;

	return render($sql, sub { $_[1] =~ /^-/ ? "($_[1])" : $_[1] });
}

sub subquery
{
	my ($type, $literal) = @_;

	# after ANY a plain subquery would return elements, not an array
	return "((SELECT $literal)::$type)" if $type =~ /\[\]$/;
	return pick("(SELECT $literal)", "(SELECT $literal OFFSET 0)", "(SELECT $literal FROM d ORDER BY id LIMIT 1)",
		"(SELECT max($literal) FROM d WHERE id < 0)")
	  if $type !~ /^(?:bool|uuid|bytea|jsonb|"char"|name|.*range|varbit)$/;
	return pick("(SELECT $literal)", "(SELECT $literal OFFSET 0)");
}

# Elements of lists, from their numbers.
my %element = (
	int => sub { $_[0] - 5 },
	oid => sub { "'" . ($_[0] % 3 ? $_[0] : 4294967295 - $_[0]) . "'" },
	text => sub { "'" . ($_[0] % 2 ? "k$_[0]" : substr('aJFKxyz', $_[0] % 7, 1) . ($_[0] > 20 ? $_[0] : '')) . "'" },
	stamp => sub { sprintf("'2001-%02d-%02d %02d:%02d:00'", 1 + $_[0] % 12, 1 + $_[0] % 28, $_[0] % 24, $_[0] % 60) },
	num => sub { $_[0] % 5 ? sprintf('%.2f', $_[0] / 4) : $_[0] . '.000' },
	float => sub { $_[0] / 8 });
my %array_type = (int => 'int4', oid => 'oid', text => 'text', stamp => 'timestamp', num => 'numeric', float => 'float8');

# A condition that compares an expression with a list of 1 to 10,000 elements.
sub in_list
{
	my ($kind, $sql) = @_;
	my $n = pick(1, 2, 3, 8, 9, 10, 33, 100, 300, 1000, chance(0.3) ? 10000 : 20);
	my $first = int_between(0, 30);
	my @list = map { $element{$kind}->($_) } $first .. $first + $n - 1;
	my $type = $array_type{$kind};

	@list = reverse @list if chance(0.3);
	splice(@list, int_between(0, $#list), 1, 'NULL') if chance(0.2);
	# an array may become a parameter or a variable
	if (chance(0.3))
	{
		my $array = constant("$type\[]", 'ARRAY[' . join(', ', @list) . "]::$type\[]");

		return pick("($sql = ANY ($array))", "($sql <> ALL ($array))");
	}
	return "($sql " . pick('IN', 'IN', 'IN', 'NOT IN') . ' (' . join(', ', @list) . '))';
}

1;
