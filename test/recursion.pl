#!/usr/bin/env perl
# Functions of src/ that call themselves, directly or through others, against the stack: what input, expressions and types
# can make deep must check it.
#
#	test/recursion.pl		the checks, as TAP
#
# Reads the sources alone: a function has an arrow to each function that it names, and, where it calls one of the members of
# structs that are named below, to the functions that are assigned to it.  On every way around a circle of these some function
# must call check_stack_depth(), or stack_is_too_deep(), or be in the list of bounded ones.
use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;

chdir dirname(__FILE__) . '/..' or die "cannot enter the source tree: $!";

# What cannot be deep, and why not.
my %bounded = (
	divide_by_range => 'each time the range of codes is a part of the one before',
	select_ranks => 'likewise',
	sort_equal_runs => 'once for each word of a key',
	find_conditions => 'at most VECTOR_MAX_INSTRUCTIONS',
	expr_use => 'a vector of scales has none itself',
	composite_open => 'grouping sets, ordered sets and distinct values nest once each',
	cpu_leave_bits => 'there are no bits any more when groups come back',
	redial => 'only a connection that was used before is made anew, once',
);
# Members by which functions call themselves, compiling expressions.
my %recursive = map { $_ => 1 } qw(compile translate);
my %checks = map { $_ => 1 } qw(check_stack_depth stack_is_too_deep);

my %body;						# "file:function" -> text
my %global;						# name -> the same key, if it is not static
my %member;						# name of a member -> functions assigned to it

foreach my $file (sort(glob('src/*.[ch] src/*/*.[ch]')))
{
	my $text = slurp($file);

	$text =~ s{/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'}{ }gs;
	$text =~ s{^[ \t]*#(?:[^\n]*\\\n)*[^\n]*}{}mg;
	# a line before the name has the type
	while ($text =~ /^([^\n]*)\n(\w+)\(((?:[^{};]|\n)*)\)\s*\n\{(.*?)^\}/msg)
	{
		my ($type, $name, $args, $code) = ($1, $2, $3, $4);

		$body{"$file:$name"} = "$args;$code";
		$global{$name} = "$file:$name" unless $name eq 'main' || ($type =~ /\bstatic\b/ && $file =~ /\.c$/);
	}
	push @{ $member{$1} }, "$file $2" while $text =~ /(?:->|\.)(\w+)\s*=\s*&?(\w+)\b/g;
}

my %arrows = map { $_ => [ arrows($_) ] } keys %body;
my (%index, %low, %on, @stack, @circles);
foreach my $node (sort keys %body)
{
	visit($node) unless defined $index{$node};
}

sub slurp
{
	my ($name) = @_;

	open my $handle, '<', $name or die "$name: $!";
	local $/ = undef;
	return scalar <$handle>;
}

# The function that a name means in a file.
sub meant
{
	my ($file, $name) = @_;

	return exists $body{"$file:$name"} ? "$file:$name" : $global{$name};
}

sub safe { my ($name) = $_[0] =~ /:(\w+)$/; return $bounded{$name} || grep { $checks{$_} } $body{ $_[0] } =~ /\b(\w+)\s*\(/g }

sub arrows
{
	my ($node) = @_;
	my ($file) = $node =~ /^(.*):/;
	my $code = $body{$node};
	my %to;

	return () if safe($node);
	# core checks the stack before it calls them, or in what it calls with them first
	$code =~ s/\b(expression_tree_(?:walker|mutator)|query_tree_walker)\s*\(([^;]*?),\s*\w+\s*,/$1($2,/g;
	# the original callback
	$code =~ s/->(\w+)\s*=\s*\w+;/->$1;/g;
	foreach my $name ($code =~ /(?<!->)(?<!\.)\b([a-z]\w+)\b/g)
	{
		my $found = meant($file, $name);

		# no variable of that name
		$to{$found} = 1 if defined $found && $code !~ /\w\s+\**$name\s*[;,=\[]/;
	}
	foreach my $name ($code =~ /(?:->|\.)(\w+)\)?\s*\(/g)
	{
		foreach my $assigned ($recursive{$name} ? @{ $member{$name} } : ())
		{
			my $found = meant(split / /, $assigned);

			$to{$found} = 1 if defined $found;
		}
	}
	return sort keys %to;
}

# Tarjan's components.
sub visit
{
	my ($v) = @_;

	no warnings 'recursion';
	$index{$v} = $low{$v} = keys %index;
	push @stack, $v;
	$on{$v} = 1;
	foreach my $w (@{ $arrows{$v} })
	{
		if (!defined $index{$w})
		{
			visit($w);
			$low{$v} = $low{$w} if $low{$w} < $low{$v};
		}
		elsif ($on{$w})
		{
			$low{$v} = $index{$w} if $index{$w} < $low{$v};
		}
	}
	return if $low{$v} != $index{$v};
	my @circle;
	do { push @circle, pop @stack; delete $on{ $circle[-1] } } until $circle[-1] eq $v;
	push @circles, \@circle if @circle > 1 || grep { $_ eq $v } @{ $arrows{$v} };
	return;
}

cmp_ok(scalar(keys %body), '>', 2000, 'functions were found');
ok(scalar(grep { $_ eq 'src/expr/compile.c:compile_expr' } @{ $arrows{'src/expr/expr_internal.h:expr_compile'} }), 'calls of members were found');
is(join("
", map { join ' ', @$_ } @circles), '', 'functions that call themselves check the stack');
# an entry without its function is old
is(join(' ', grep { my $name = $_; !grep { /:$name$/ } keys %body } sort keys %bounded), '', 'every function of the list is there');
done_testing();
