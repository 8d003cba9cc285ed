# The column types of the differential test: how to generate values, how to print equal values alike, and which aggregates a type has.
package Types;
use strict;
use warnings;

sub pick { return $_[ int(rand(@_)) ]; }
sub chance { return rand() < $_[0]; }

sub int_between
{
	my ($low, $high) = @_;

	return $low + int(rand($high - $low + 1));
}

# Distributions of integers: sub(row number, lowest, highest).
my %int_profile = (
	const => sub { 3 },
	few => sub { int_between(0, 3) },
	small => sub { int_between(-20, 20) },
	skew => sub { chance(0.9) ? 1 : int_between(0, 1000) },
	wide => sub {
		my ($i, $low, $high) = @_;
		my $half = int($high / 2);
		return int_between(-$half, $half) + int_between(0, $half);
	},
	extreme => sub { my ($i, $low, $high) = @_; pick($low, $high, 0, 1, -1) },
	thousand => sub { int_between(0, 999) },
	sequence => sub { $_[0] % 30000 },
	runs => sub { int($_[0] / 17) });

sub int_maker
{
	my ($low, $high) = @_;
	my $profile = $int_profile{ pick(qw(const few few small small skew wide extreme thousand sequence runs)) };

	# the limits of int8 are text, because a double cannot represent them
	return sub { $profile->($_[0], $low, $high) };
}

# Returns a generator of floats. Unless $wild, their sums are exact in any order.
sub float_maker
{
	my ($wild, $single) = @_;
	my $specials = chance(0.4) ? 0.05 : 0;
	my $kind = $wild ? pick(qw(unit huge mixed)) : pick(qw(eighths small positive negative));
	my %kinds = (
		eighths => sub { int_between(-4000, 4000) / 8 },
		small => sub { int_between(-3, 3) },
		positive => sub { int_between(8, 4000) / 8 },
		negative => sub { int_between(-4000, -8) / 8 },
		unit => sub { sprintf('%.9f', rand()) },
		huge => sub { pick('1e308', '-1e308', '1.5e307', '3', '-2') },
		mixed => sub { sprintf('%.12fe%d', rand(2) - 1, int_between(-30, 30)) });
	$kind = 'mixed' if $single && $kind eq 'huge';
	return sub {
		return pick('NaN', 'Infinity', '-Infinity', '-0', '0') if chance($specials);
		return $kinds{$kind}->();
	};
}

# True with --pages: some values are stored out of line.
our $long = 0;

# Returns a generator of numerics that fit numeric(precision, scale), or of any numerics.
sub numeric_maker
{
	my ($precision, $scale) = @_;
	my $specials = chance(0.3) ? 0.05 : 0;
	my $few = chance(0.4);

	return sub {
		my ($digits, $text);

		if (chance($specials))
		{
			return defined $precision ? 'NaN' : pick('NaN', 'Infinity', '-Infinity');
		}
		return pick('1e2000', '-3e1500') if $long && !defined $precision && chance(0.01);
		return pick('0', '1', '1.0', '-2.50', '1e2', '7') if $few && (!defined $precision || $precision >= 5);
		$digits = defined $precision ? $precision - $scale : pick(1, 3, 8, 20, 60);
		$text = $digits > 0 ? join('', map { int(rand(10)) } 1 .. int_between(1, $digits)) : '0';
		my $fraction = defined $precision ? $scale : pick(0, 0, 1, 2, 5, 30);
		$text .= '.' . join('', map { int(rand(10)) } 1 .. $fraction) if $fraction > 0;
		return chance(0.5) ? "-$text" : $text;
	};
}

# A value in the text format of COPY.
sub copy_text
{
	my ($value) = @_;

	return '\N' if !defined $value;
	$value =~ s/\t/\\t/g;
	return $value;
}

my @words = ('', 'a', 'A', 'b', 'B', 'abc', 'ABC', 'Abc', 'zebra', 'Zebra', "\x{e4}", "\x{c4}", 'ab ', ' ab',
	'JFK', 'LAX', 'ORD', 'o\'hare', '100%', 'x_y');

sub text_maker
{
	my $kind = pick(qw(words words few many long steps), $long ? 'far' : ());
	my $step = pick(50, 300, 1000);
	my @far = map { join('', map { sprintf('%08x', int(rand(4294967296))) } 1 .. int_between(300, 1000)) } $long ? (1 .. 3) : ();

	return sub {
		return pick(@words) if $kind eq 'words';
		return pick('x', 'y', 'z') if $kind eq 'few';
		return 'k' . int_between(1, 2000) if $kind eq 'many';
		# the length grows with the row number, so that each batch has longer values than the one before
		return 'd' x (8 + 6 * int($_[0] / $step)) . int_between(1, 9) if $kind eq 'steps';
		return chance(0.05) ? pick(@far) : 'near' if $kind eq 'far';
		return chance(0.1) ? pick('p', 'q') x int_between(1000, 9000) : 'long' . int_between(1, 50);
	};
}

sub timestamp_text
{
	return sprintf('%04d-%02d-%02d %02d:%02d:%02d', int_between(1999, 2003), int_between(1, 12), int_between(1, 28),
		int_between(0, 23), pick(0, 30, int_between(0, 59)), pick(0, 0, int_between(0, 59)));
}

# The types. The name is the type in CREATE TABLE:
# name => {
#	make	sub(wild) that returns a generator: sub(row number) that returns text
#	norm	an expression of %s that prints equal values alike
#	lossy	norm prints some different values alike, too
#	loose	equal values may print differently
#	num		1: the type has sum, avg and stddev; 2: sum and avg; 3: sum only
#	minmax	the type has min and max
#	float	its aggregates round, so they are compared with a tolerance
#	int		it is an integer type
#	bool, text	it is boolean, or text
#	nokey	it cannot be a key
#	freq	the relative frequency
# }
our %types = (
	int2 => { make => sub { int_maker(-32768, 32767) }, num => 1, minmax => 1, int => 1, freq => 3 },
	int4 => { make => sub { int_maker(-2147483648, 2147483647) }, num => 1, minmax => 1, int => 1, freq => 6 },
	int8 => {
		make => sub {
			my $big = chance(0.3);
			my $plain = int_maker(-1000000000000, 1000000000000);
			return sub {
				return pick('9223372036854775807', '-9223372036854775808', '-1', '5') if $big && chance(0.3);
				return $plain->(@_);
			};
		},
		num => 1,
		minmax => 1,
		int => 1,
		freq => 5
	},
	float4 => { make => sub { float_maker($_[0], 1) }, loose => 1, norm => '(%s + 0)', num => 1, minmax => 1, float => 1, freq => 3 },
	float8 => { make => sub { float_maker($_[0], 0) }, loose => 1, norm => '(%s + 0)', num => 1, minmax => 1, float => 1, freq => 5 },
	numeric => { make => sub { numeric_maker() }, loose => 1, norm => 'trim_scale(%s)', num => 1, minmax => 1, freq => 3 },
	'numeric(12,2)' => { make => sub { numeric_maker(12, 2) }, norm => 'trim_scale(%s)', num => 1, minmax => 1, freq => 3 },
	'numeric(10,2)' => { make => sub { numeric_maker(10, 2) }, norm => 'trim_scale(%s)', num => 1, minmax => 1, freq => 1 },
	'numeric(40,2)' => { make => sub { numeric_maker(40, 2) }, norm => 'trim_scale(%s)', num => 1, minmax => 1, freq => 1 },
	'numeric(5,0)' => { make => sub { numeric_maker(5, 0) }, norm => 'trim_scale(%s)', num => 1, minmax => 1, freq => 1 },
	'numeric(38,10)' => { make => sub { numeric_maker(38, 10) }, norm => 'trim_scale(%s)', num => 1, minmax => 1, freq => 1 },
	'numeric(20,6)' => { make => sub { numeric_maker(20, 6) }, norm => 'trim_scale(%s)', num => 1, minmax => 1, freq => 1 },
	bool => { make => sub { sub { pick('t', 'f', 'f') } }, bool => 1, freq => 3 },
	date => {
		make => sub {
			my $odd = chance(0.2);
			sub { $odd && chance(0.1) ? pick('infinity', '-infinity', '0044-03-15 BC', '0001-12-31 BC') : substr(timestamp_text(), 0, 10) }
		},
		minmax => 1,
		freq => 2
	},
	time => { make => sub { sub { substr(timestamp_text(), 11) } }, minmax => 1, freq => 1 },
	timestamp => {
		make => sub {
			my @odd = pick([], [], [], [ 'infinity', '-infinity' ], [ '0001-06-01 10:00:00 BC', '0044-03-15 BC', '0001-01-01' ]);
			sub { @{ $odd[0] } && chance(0.1) ? pick(@{ $odd[0] }) : timestamp_text() }
		},
		minmax => 1,
		freq => 2
	},
	timestamptz => {
		make => sub {
			my @odd = pick([], [], ['infinity'], [ '0001-06-01 10:00:00+00 BC', '0001-01-01 00:00:00+00', '0001-12-31 23:59:59+00 BC' ]);
			sub { @{ $odd[0] } && chance(0.1) ? pick(@{ $odd[0] }) : timestamp_text() . '+00' }
		},
		minmax => 1,
		freq => 2
	},
	interval => {
		make => sub {
			sub {
				pick('1 mon', '30 days', '720 hours', '-1 day', '0', '1 year 2 days', int_between(-50, 50) . ' minutes');
			}
		},
		norm => '(extract(epoch from justify_interval(%s)))',
		loose => 1,
		num => 2,
		minmax => 1,
		freq => 1
	},
	money => { make => sub { sub { int_between(-100000, 100000) / 100 } }, num => 3, minmax => 1, freq => 1 },
	oid => { make => sub { sub { pick(0, 1, 4294967295, int_between(0, 50)) } }, minmax => 1, freq => 1 },
	text => { make => sub { text_maker() }, minmax => 1, text => 1, freq => 4 },
	'text COLLATE "C"' => { make => sub { text_maker() }, minmax => 1, text => 1, freq => 1 },
	'text COLLATE "en-x-icu"' => { make => sub { text_maker() }, minmax => 1, text => 1, freq => 1 },
	'text COLLATE nocase' =>
	  { make => sub { text_maker() }, loose => 1, norm => 'lower(%s COLLATE "C.utf8")', minmax => 1, freq => 1 },
	varchar => { make => sub { text_maker() }, text => 1, minmax => 1, freq => 1 },
	'char(4)' => { make => sub { sub { pick('a', 'ab', 'abcd', '') } }, minmax => 1, freq => 1 },
	bpchar => { make => sub { sub { pick('a', 'a ', 'a  ', 'b', 'b ', '') } }, loose => 1, norm => '%s::text', minmax => 1, freq => 1 },
	'numeric[]' => { make => sub { sub { pick('{1.0}', '{1.00}', '{1,2}', '{1.0,2.00}') } }, loose => 1, lossy => 1, norm => 'cardinality(%s)', minmax => 1, freq => 1 },
	numrange => { make => sub { sub { pick('[1.0,2)', '[1.00,2.0)', 'empty') } }, loose => 1, lossy => 1, norm => 'isempty(%s)', freq => 1 },
	pair => { make => sub { sub { pick('(1,1.0)', '(1,1.00)', '(2,1)', '(2,1.0)') } }, loose => 1, lossy => 1, norm => '((%s).a)', freq => 1 },
	small => { make => sub { int_maker(-32768, 32767) }, int => 1, num => 1, minmax => 1, freq => 1 },
	'"char"' => { make => sub { sub { pick('a', 'b', 'c') } }, freq => 1 },
	name => { make => sub { sub { pick('pg', 'my', 'lite') } }, freq => 1 },
	uuid => { make => sub { sub { sprintf('00000000-0000-4000-8000-%012d', int_between(0, 30)) } }, freq => 1 },
	bytea => { make => sub { sub { sprintf('\\\\x%04x', int_between(0, 30)) } }, freq => 1 },
	inet => { make => sub { sub { '10.0.0.' . int_between(0, 20) . pick('', '/24') } }, minmax => 1, freq => 1 },
	jsonb => { make => sub { sub { pick('{"a": 1}', '{"a": 1.0}', '[]', '"x"') } }, lossy => 1, norm => '(%s::text = \'{}\')', loose => 1, freq => 1 },
	'int4[]' => { make => sub { sub { pick('{}', '{1}', '{1,2}', '{NULL}') } }, minmax => 1, freq => 1 },
	mood => { make => sub { sub { pick('sad', 'ok', 'happy') } }, minmax => 1, freq => 1 },
	int4range => { make => sub { sub { pick('[1,5)', 'empty', '[2,)') } }, freq => 1 },
	varbit => { make => sub { sub { pick('0', '1', '101') } }, freq => 1 });

# Columns of table w, whose values are printed as hashes.
our $wide = { norm => 'md5(%s)', minmax => 0, freq => 0 };

my %citext = (make => sub { sub { pick('a', 'A', 'aB', 'Ab', 'b') } }, loose => 1, norm => 'lower(%s::text)');

our @bag = map { ($_) x $types{$_}{freq} } sort keys %types;

# Adds type citext, if its extension is installed.
sub add_citext
{
	$types{citext} = \%citext;
	push @bag, 'citext';
	return;
}

1;
