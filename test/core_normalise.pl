#!/usr/bin/env perl
# Removes what the custom scan may change from the output of one of PostgreSQL's regression tests: omits plans and what functions read of them, sorts the rows of each
# result and of consecutive notices (several aggregates call functions in another order), rounds floats to 10 digits, and removes the
# padding of columns.
#
#	test/core_normalise.pl FILE
use strict;
use warnings;

my @rows;
my @notices;
my $in_result = 0;
my $is_plan = 0;
my $previous = '';

while (my $line = <>)
{
	chomp $line;
	if ($line =~ /^NOTICE: /)
	{
		push @notices, squeeze($line);
		next;
	}
	print "$_\n" foreach sort @notices;
	@notices = ();
	$line =~ s/(-?\d+\.\d{9,}(?:e[-+]\d+)?)/sprintf('%.10g', $1)/ge;
	if ($line =~ /^-[-+]*-$|^-+$/ && $previous =~ /^ /)
	{
		$is_plan = $previous =~ /QUERY PLAN|explain_\w+ *$|^ (?:initially_multibatch|original +\|) /;
		$in_result = 1;
		@rows = ();
		next;
	}
	if ($in_result && $line =~ /^\(\d+ rows?\)$/)
	{
		print "$_\n" foreach $is_plan ? () : sort @rows;
		print $is_plan ? "(plan)\n" : "$line\n";
		$in_result = 0;
	}
	elsif ($in_result)
	{
		push @rows, squeeze($line);
	}
	else
	{
		print squeeze($line), "\n" unless $line =~ /QUERY PLAN|explain_\w+ *$/;
	}
	$previous = $line;
}
print map { "$_\n" } $in_result ? @rows : (), sort @notices;

sub squeeze
{
	my ($text) = @_;

	$text =~ s/ +/ /g;
	$text =~ s/ $//;
	return $text;
}
