#!/usr/bin/env perl
# Compares what a client printed with gpuagg to what it printed without.
#
#	compare.pl QUERIES CORE OURS TITLE [TABLE]
#
# Prints one line of TAP, and the first difference of each query that differs. A query of CORE must have an answer with rows. Only queries whose
# name begins with "cancel" or "timeout" end with an error, which must be the one for a cancelled query. Appends "TITLE's first
# word, query, ok or differs" to file TABLE. A client that executes queries of QUERIES must execute all. The exit status is 0 if all answers are equal.
use strict;
use warnings;

my ($queries, $core, $ours, $title, $table) = @ARGV;
my (%unordered, %known, %with_values, $name);

open my $file, '<', $queries or die "$queries: $!";
while (<$file>)
{
	$known{ $name = $1 } = 1 if /^-- name: (\S+)/;
	$unordered{$name} = 1 if /^-- rows: in any order/;
	$with_values{$name} = 1 if /^-- with: /;
}
close $file;

# Returns the names in order and, by name, lists of the lines.
sub sections
{
	my ($path) = @_;
	my (@names, %lines);

	open my $in, '<', $path or die "$path: $!";
	while (<$in>)
	{
		chomp;
		if (/^# (.*?) *$/) { push @names, $1; $lines{$1} = []; }
		elsif (@names) { push @{ $lines{ $names[-1] } }, $_; }
	}
	close $in;
	foreach my $key (@names)
	{
		next unless $unordered{ $key =~ s/ .*//r };
		my @head = grep { !/^\|/ } @{ $lines{$key} };
		$lines{$key} = [ @head, sort grep { /^\|/ } @{ $lines{$key} } ];
	}
	return (\@names, \%lines);
}

my ($core_names, $core_lines) = sections($core);
my ($our_names, $our_lines) = sections($ours);
my (@problems, %outcome);

push @problems, 'there are no answers' unless @$core_names;
push @problems, "the last answer is that of $our_names->[-1]" if @$our_names && "@$core_names" ne "@$our_names";
foreach my $key (@$core_names)
{
	my @core = @{ $core_lines->{$key} };
	my @ours = @{ $our_lines->{$key} // ['none'] };
	my ($error) = grep { /^!/ } @core;
	my $count = @problems;
	my ($at) = grep { ($core[$_] // '(end)') ne ($ours[$_] // '(end)') } 0 .. (@core > @ours ? $#core : $#ours);

	if (defined $at)
	{
		push @problems, "$key: line $at", 'core:   ' . ($core[$at] // '(end)'), 'gpuagg: ' . ($ours[$at] // '(end)');
	}
	elsif ($key =~ /^(cancel|timeout)/) { push @problems, "$key: not cancelled" unless ($error // '') =~ /57014|cancel/; }
	elsif ($error) { push @problems, "$key: $error"; }
	elsif (!grep { /^\|/ } @core) { push @problems, "$key: no rows"; }
	my $query = $key =~ s/ .*//r;
	$outcome{$query} = 'differs' if @problems > $count;
	$outcome{$query} //= 'ok';
}
# A client that executes queries of the file must execute all of them. Two modes have no parameters.
if (grep { $known{$_} } keys %outcome)
{
	push @problems, "$_: not executed"
		foreach grep { !$outcome{$_} && !($with_values{$_} && $title =~ /^(?:pg simple|r dbplyr)$/) } sort keys %known;
}
if ($table)
{
	open my $out, '>>', $table or die "$table: $!";
	print $out join(' ', $title =~ s/ .*//r, $_, $outcome{$_}), "\n" foreach grep { $known{$_} } keys %outcome;
	close $out;
}
print @problems ? 'not ok' : 'ok', " - $title: ", scalar(@$core_names), " answers\n";
print "# $_\n" foreach @problems;
exit(@problems ? 1 : 0);
