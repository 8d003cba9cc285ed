#!/usr/bin/env perl
# Makes forged states for test/states.sh: well-formed states and rows with wrong contents.
#
#	test/states.pl SEED NUMBER state|row
#
# Prints NUMBER lines of hexadecimal text, each a gpuagg_state or a gpuagg_row. The output depends only on the arguments.
use strict;
use warnings;

my ($seed, $number, $what) = @ARGV;
srand $seed;

sub pick { return $_[ rand @_ ] }
sub length_and_bytes { return pack('N/a*', $_[0]) }

my @ints = (0, 1, 2, 3, 255, 1000, 0xFFFF, 0x10000, 999_999, 1_000_000, 2**30, 2**31 - 1, 2**31, 2**32 - 1);
my @longs = map { pack 'Q>', $_ } 0, 1, 2, 100, 2**31, 2**55, 2**56, 2**62, 9223372036854775807, 9223372036854775808, 18446744073709551615;
my @doubles = map { pack 'd>', $_ } 0, -0.0, 1, 0.5, -1, 10, 1e300, -1e300, 1e-310, 9**9**9, -(9**9**9), -sin(9**9**9);
# types by oid, without multiranges: PostgreSQL's receive function allocates as much memory as the value claims
my @fixed = (16, 17, 20, 21, 23, 25, 114, 142, 600, 700, 701, 705, 869, 1005, 1007, 1009, 1082, 1114, 1186, 1560, 1700, 2205, 2249, 2275, 2278, 2283, 2287,
	2950, 3220, 3614, 3802, 3904, 4072, 0, 9999, 4294967295);
my @named = ('public.positive', 'public.never_null', 'public.digits', 'public.pair', 'public.positive[]', 'public.pair[]', 'public.mood',
	'public.gpuagg_state', 'public.gpuagg_row', 'public.gpuagg_state[]', 'public.parts', 'nowhere.x', '-', '23', 'int4', '"', 'public.span', '');

# mostly(USUAL, OTHERS): returns one of the usual values, or with probability 1/20 one of the others
sub mostly { my ($usual, $others) = @_; return rand() < 0.95 ? pick(@$usual) : pick(@$others) }
sub long { return mostly([ @longs[ 1 .. 5 ] ], \@longs) }
sub int_ { return pack 'N', rand() < 0.7 ? pick(0 .. 5) : pick(@ints) }
sub type { return rand() < 0.6 ? pack('N', pick(@fixed, (23, 25, 1700, 2249) x 6)) : pack('N', 0) . length_and_bytes(pick(@named)) }
sub collation { return rand() < 0.95 ? "\0" . pack('N', mostly([ 0, 0, 100, 950 ], [ 12345, 4294967295 ])) : "\1" . length_and_bytes(pick('pg_catalog."C"', '"C"', '9999', 'x')) }

sub value
{
	my ($type, $depth) = @_;
	my $oid = unpack 'N', $type;

	return "\1" if rand() < 0.1;
	return "\0" . record($depth) if $oid == 2249 && $depth < 40;
	return "\0" . pack('NNN', 1, pick(0, 1, 2, 2**31 - 1), pick(0, 1, 2**31 - 1)) . join('', map { value(pack('N', 2249), $depth + 1) } 1 .. 2)
		if $oid == 2287 && $depth < 40;
	return "\0" . length_and_bytes(int_()) if $oid == 23 && rand() < 0.8;
	return "\0" . length_and_bytes(pick('a', '5', '')) if $oid == 25 && rand() < 0.8;
	return "\0" . length_and_bytes(pack('n*', 1, 0, 0, 0, 5)) if $oid == 1700 && rand() < 0.8;
	return "\0" . length_and_bytes(int_()) if $type =~ /positive$|never_null$/ && rand() < 0.7;
	return "\0" . length_and_bytes(pick(int_(), pick(@longs), pick(@doubles), pack('n*', 1, 0, 0, 0, 5), pack('n*', map { int rand 65536 } 1 .. 6), '', 'a', '5',
			'-5', '{1,-2}', '(1,x)', '(5,5)', 'glad', "\xff", "a\0b", 'x' x 3000, join('', map { int_() } 1 .. 8), ($what eq 'state' ? state($depth + 1) : '')));
}

sub record
{
	my ($depth) = @_;
	my $n = pick(0, 1, 1, 2, 3);
	my $bytes = pack 'N', 2249;

	return pack('N', 0) . length_and_bytes('public.pair') . "\0" . length_and_bytes(pick('(1,2)', '(-1,2)', '(1,x)')) if rand() < 0.2;
	$bytes .= pack 'N', rand() < 0.95 ? $n : pick(@ints);
	for (1 .. $n)
	{
		my $type = type();
		$bytes .= length_and_bytes(pick('a', 'b', 'x' x 63, 'x' x 64, '')) . $type . collation() . value($type, $depth + 1);
	}
	return $bytes;
}

sub number
{
	my $digits = pick(0, 1, 1, 2, 5, 40, 3000);
	return pack('N4', mostly([$digits], \@ints), mostly([ 0, 1, 5, 9 ], [ 4000, 0x7FFF, 65542, 2**32 - 1, 2**31 ]), mostly([ 0, 0x4000 ], [0xC000]),
		mostly([ 0, 5, 1000, 0x3FFF, 0x7FFF ], [2**31])) . pack('n*', map { pick(0, 1, 9999, int rand 10000) } 1 .. $digits);
}

sub histogram
{
	my $flags = mostly([ 0, 0, 1, 2, 6, 8, 9 ], [ 7, 10, 255 ]);
	my $n = pick(1, 2, 5, 5, 50, 2000);
	my $bytes = chr($flags) . pack('N', mostly([$n], \@ints));
	my $ny = $flags & 8 ? pick(1, 2, 5) : 0;

	$bytes .= $flags & 2 && !($flags & 4) ? join('', map { pack 'd>', $_ } 1 .. $n) : mostly([ $doubles[3] ], \@doubles) . mostly([ @doubles[ 5, 6 ] ], \@doubles);
	$bytes .= pack('N', mostly([$ny], \@ints)) . mostly([ $doubles[3] ], \@doubles) . mostly([ @doubles[ 5, 6 ] ], \@doubles) if $ny;
	return $bytes . join '', map { rand() < 0.99 ? pick(@longs[ 0 .. 5 ]) : long() } 1 .. ($flags & 2 ? $n + 1 : $n + 2) * ($ny ? $ny + 2 : 1);
}

sub sketch
{
	my $n = pick(0, 1, 3, 2048, 2049);
	my $fractions = pick(1, 1, 3);

	return pack('N', mostly([$fractions], \@ints)) . join('', map { pick(@doubles[ 0, 2, 3 ]) } 1 .. $fractions) . pack('N', mostly([ 0, 1, 40, 53 ], [ 54, 2**31 ])) .
		join('', map { long() } 1 .. 4) . ($n == 0 ? pack('d>d>', 9**9**9, -(9**9**9)) : mostly([ @doubles[ 1, 7, 4 ] ], \@doubles) . mostly([ @doubles[ 5, 6 ] ], \@doubles)) .
		pack('N', mostly([$n], \@ints)) . join('', map { pack('Q>', int rand 2000) . (rand() < 0.999 ? $longs[1] : pick(@longs)) } 1 .. $n);
}

sub hll
{
	my $n = pick(0, 1, 5, 500);
	return pick(1, 2) == 1 ? pack('N', mostly([$n], \@ints)) . join('', map { pack 'N', int(rand 4096) << 8 | (rand() < 0.999 ? pick(1, 5, 20) : pick(0, 60, 255)) } 1 .. $n) :
		pack('N', 2**32 - 1) . mostly([ "\0", "\1", "\5" ], ["\xff"]) x mostly([16384], [ 0, 100, 4096, 20000 ]);
}

# a state of gpu_max_n, gpu_min_n, gpu_argmax_n or gpu_argmin_n
sub top_n
{
	my ($depth) = @_;
	my $form = mostly([ 0 .. 3 ], [ 4, 255 ]);
	my $count = pick(1, 2, 2, 5, 30);
	my ($value, $key) = (rand() < 0.5 ? pack('N', 23) : type(), rand() < 0.7 ? pack('N', 23) : type());

	return chr($form) . ($form & 2 ? $value : '') . $key . collation() . pack('NN', mostly([ $count, 50, 1000 ], \@ints), mostly([$count], \@ints)) .
		join('', map { value($key, $depth) . ($form & 2 ? value($value, $depth) : '') } 1 .. $count);
}

# a state of gpu_value_counts, gpu_top_k or gpu_entropy
sub value_counts
{
	my ($depth) = @_;
	my $form = mostly([ 0 .. 2 ], [ 3, 255 ]);
	my $count = pick(0, 1, 2, 2, 3, $depth == 0 ? 600 : 1);
	my $type = $count > 3 || rand() < 0.6 ? pack('N', 23) : type();
	my $floor = $form == 1 ? pick(0, 0, 1, 100) : mostly([0], \@ints);

	return chr($form) . $type . collation() . pack('N', mostly([ $form == 2 ? 0 : pick(1, 30, 1000) ], \@ints)) .
		($form == 2 ? mostly([ $longs[0] ], \@longs) : long()) . pack('Q>', $floor) . pack('N', mostly([$count], \@ints)) .
		join('', map { ($count > 3 ? "\0" . length_and_bytes(pack('N', int rand 700)) : value($type, $depth)) .
				(rand() < 0.99 ? pack('Q>', $floor + 1 + int rand 5) : long()) .
				($form == 1 ? pack('Q>', rand() < 0.99 ? int rand($floor + 1) : pick(@ints)) : '') } 1 .. $count);
}

# a state of gpu_summary: of zeros alone, or of values whose number is mostly another one
sub summary
{
	my $zeros = pick(0, 1, 5);
	my $sketch = rand() < 0.7 ? pack('NNQ>Q>Q>Q>d>d>N', 0, 0, $zeros, 0, 0, 0, 9**9**9, -(9**9**9), 0) : sketch();

	return mostly([ @longs[ 0 .. 3 ] ], \@longs) . $sketch . hll() . pack('d>', $zeros) . join('', map { pick(@doubles) } 1 .. 4);
}

# a state of gpu_histogram_auto: of one value, of bins of width 1/2 or 1, or of another range
sub histogram_auto
{
	my ($nbins, $first, $last, $bins) = @{ pick([ 3, 1, 2, 3 ], [ 10, 0, 9, 10 ], [ 1000, 7, 7, 1 ], [ 1_000_000, -1, -1, 1 ], [ 2, -1, 1, 2 ], [ 5, pick(@ints), pick(@ints), pick(1, 2, 5) ]) };

	return pack('N', mostly([$nbins], \@ints)) . join('', map { mostly([ @longs[ 0 .. 3 ] ], \@longs) } 1 .. 4) .
		(rand() < 0.1 ? pick(@doubles) . pick(@doubles) : pack('d>d>', $first, $last)) . join('', map { rand() < 0.95 ? $longs[ 1 + rand 3 ] : long() } 1 .. $bins);
}

# a state of gpu_histogram_equidepth
sub equidepth
{
	return pack('N', mostly([ 1, 5, 10_000 ], \@ints)) . join('', map { rand() < 0.5 ? pick(@doubles) : pack('d>', int rand 10) } 1 .. pick(0, 1, 2, 5, 500));
}

# a state of gpu_exp_histogram
sub exp_histogram
{
	return pack('N', mostly([ 0, 3, 20, 2**32 - 1, 2**32 - 10 ], [ 21, 2**32 - 11, 2**31 ])) . join('', map { mostly([ @longs[ 0 .. 3 ] ], \@longs) } 1 .. 4) .
		join('', map {
			my $n = pick(0, 1, 2, 100, 160, 161);
			pack('NN', $n == 0 ? mostly([0], \@ints) : mostly([ 0, 5, 2**32 - 2, 900, 2**30 - 1 ], \@ints), mostly([$n], \@ints)) . join('', map { rand() < 0.99 ? $longs[ 1 + rand 3 ] : long() } 1 .. $n)
		} 1 .. 2);
}

# words of a wide sum of an exact aggregate: the first one, how many there are, and these
sub words
{
	my ($most) = @_;
	my $low = int rand $most;
	my $n = rand() < 0.3 ? $most - $low : int rand($most - $low + 1);

	return chr(rand() < 0.99 ? $low : 255) . chr(rand() < 0.99 ? $n : 255) .
		join('', map { pick("\0" x 8, "\xff" x 8, "\x80" . "\0" x 7, pack('Q>', int rand 2**60)) } 1 .. $n);
}

# a state of exact aggregates of floats
sub exact
{
	my $kind = mostly([ 1 .. 3 ], [ 0, 4, 255 ]);
	my $wide = pick(0, 1);
	my ($sums, $products) = $kind == 3 ? (2, 3) : (1, $kind == 2 ? 1 : 0);
	my $word = sub { pick("\0" x 8, "\xff" x 8, "\x80" . "\0" x 7, "\x7f" . "\xff" x 7, pack('Q>', int rand 2**60)) };

	return mostly([ "\1" ], [ "\2" ]) . chr($kind) . chr($wide) . mostly([ @longs[ 0 .. 3 ], pack('Q>', 2**56 - 1) ], \@longs) .
		join('', map { pack('n', mostly([ 0, 5, 1000, 1972, 32767 ], [ 1973, 32768, 65535 ])) . $word->() . $word->() } 1 .. $sums) .
		join('', map { $word->() } 1 .. 5 * $products) .
		($wide ? join('', map { join('', map { mostly([ ("\0" x 8) x 5, @longs[ 1 .. 3 ] ], \@longs) } 1 .. 3) . words(34) } 1 .. $sums) .
			join('', map { words(67) } 1 .. $products) : '');
}

sub body
{
	my ($kind, $depth) = @_;

	return long() . join('', map { number() } 1 .. ($kind > 2 ? 2 : 1)) . ($kind % 2 ? '' : pack('N', mostly([ 0, 2, 0x3FFF ], [2**31])) . join('', map { long() } 1 .. 4))
		if $kind >= 1 && $kind <= 4;
	return histogram() if $kind == 5;
	return hll() if $kind == 6;
	return sketch() if $kind == 7;
	return top_n($depth) if $kind == 10;
	return value_counts($depth) if $kind == 11;
	return summary() if $kind == 12;
	return histogram_auto() if $kind == 13;
	return equidepth() if $kind == 14;
	return exp_histogram() if $kind == 15;
	return exact() if $kind == 16;
	my ($value, $key) = (type(), rand() < 0.85 ? pack('N', 23) : type());
	return $value . $key . collation() . pick("\1", "\1", "\0", "\7") . value($key, $depth) . value($value, $depth);
}

sub state
{
	my ($depth) = @_;
	my $kind = pick(1 .. 16, 8, 8, 9, 10, 11);
	my $bytes = (rand() < 0.02 ? "\2" : "\1") . chr(rand() < 0.97 ? $kind : pick(0, 1 .. 17, 255)) . body($kind, $depth);
	return corrupt($bytes);
}

# Returns the bytes, mostly unchanged; else with a truncated end, with bytes repeated, or with one byte changed.
sub corrupt
{
	my ($bytes) = @_;
	my $at = int rand length $bytes;

	return $bytes if rand() < 0.85;
	return substr($bytes, 0, $at) if rand() < 0.3;
	return substr($bytes, 0, $at) . substr($bytes, $at, 8) . substr($bytes, $at) if rand() < 0.4;
	substr($bytes, $at, 1) = chr pick(0, 1, 8, 127, 128, 255);
	return $bytes;
}

sub row
{
	my $agg = pick('gpu_argmax(anyelement,anycompatible)', 'gpu_max_n(anyelement,integer)', 'gpu_argmin_n(anyelement,anycompatible,integer)', 'gpu_last(anyelement,anycompatible)', 'gpu_stddev(numeric)', 'gpu_sum(bigint)',
		'gpu_value_counts(anyelement)', 'gpu_top_k(anyelement,integer)', 'gpu_entropy(anyelement)', 'gpu_histogram_auto(double precision,integer)', 'gpu_exp_histogram(double precision,integer)',
		'gpu_approx_count_distinct("any")', 'gpu_histogram(double precision,double precision[])', 'gpu_approx_percentile(double precision,double precision)', 'int4pl(integer,integer)', '0', '2100');
	my @types = map { type() } 1 .. 1 + ($agg =~ tr/,//);
	$types[-1] = pack 'N', 23 if $agg =~ /_n\(|top_k/;

	return corrupt(length_and_bytes('public.' x ($agg =~ /^gpu/) . $agg) . collation() . pack('N', rand() < 0.95 ? scalar(@types) : pick(@ints)) .
		join('', map { $_ . value($_, 0) } @types));
}

print '\\x', unpack('H*', $what eq 'row' ? row() : state(0)), "\n" for 1 .. $number;
