#!/usr/bin/env perl
# Checks that recursive functions of src/ check the depth of the stack, if input, expressions or types can make them deep.
#
#	test/recursion.pl		checks, prints TAP
#
# Reads only the sources. A function may call each function that it names. If it calls one of the struct members listed below, it may
# call each function that is assigned to this member. In each cycle of calls, a function must call check_stack_depth() or
# stack_is_too_deep(), or be in the list of bounded functions.
use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;

chdir dirname(__FILE__) . '/..' or die "cannot enter the source tree: $!";

# Functions whose recursion is bounded, and why.
my %bounded = (
	divide_by_range => 'each call has a smaller range of codes',
	select_ranks => 'each call has a smaller range of codes',
	sort_equal_runs => 'at most once for each word of a key',
	find_conditions => 'at most VECTOR_MAX_INSTRUCTIONS calls',
	expr_use => 'a vector of scales has no scales itself',
	composite_open => 'grouping sets, ordered sets and distinct values nest at most once each',
	cpu_leave_bits => 'when groups are added again, there are no bits left',
	redial => 'only a connection that was used before is opened again, once',
);
# Struct members through which functions that compile expressions are recursive.
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
	# the line before the name has the type
	while ($text =~ /^([^\n]*)\n(\w+)\(((?:[^{};]|\n)*)\)\s*\n\{(.*?)^\}/msg)
	{
		my ($type, $name, $args, $code) = ($1, $2, $3, $4);

		$body{"$file:$name"} = "$args;$code";
		$global{$name} = "$file:$name" unless $name eq 'main' || ($type =~ /\bstatic\b/ && $file =~ /\.c$/);
	}
	push @{ $member{$1} }, "$file $2" while $text =~ /(?:->|\.)(\w+)\s*=\s*&?(\w+)\b/g;
}

my %callees = map { $_ => [ callees($_) ] } keys %body;
my (%index, %low, %on, @stack, @cycles);
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

# meant(FILE, NAME): returns the function to which a name refers in a file.
sub meant
{
	my ($file, $name) = @_;

	return exists $body{"$file:$name"} ? "$file:$name" : $global{$name};
}

sub is_bounded_or_checks { my ($name) = $_[0] =~ /:(\w+)$/; return $bounded{$name} || grep { $checks{$_} } $body{ $_[0] } =~ /\b(\w+)\s*\(/g }

sub callees
{
	my ($node) = @_;
	my ($file) = $node =~ /^(.*):/;
	my $code = $body{$node};
	my %to;

	return () if is_bounded_or_checks($node);
	# PostgreSQL checks the stack before it calls these callbacks, or in the first function that it calls with them
	$code =~ s/\b(expression_tree_(?:walker|mutator)|query_tree_walker)\s*\(([^;]*?),\s*\w+\s*,/$1($2,/g;
	# the assignment of a callback back to its variable is no call
	$code =~ s/->(\w+)\s*=\s*\w+;/->$1;/g;
	foreach my $name ($code =~ /(?<!->)(?<!\.)\b([a-z]\w+)\b/g)
	{
		my $found = meant($file, $name);

		# unless a variable has this name
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

# Finds strongly connected components (Tarjan).
sub visit
{
	my ($v) = @_;

	no warnings 'recursion';
	$index{$v} = $low{$v} = keys %index;
	push @stack, $v;
	$on{$v} = 1;
	foreach my $w (@{ $callees{$v} })
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
	my @cycle;
	do { push @cycle, pop @stack; delete $on{ $cycle[-1] } } until $cycle[-1] eq $v;
	push @cycles, \@cycle if @cycle > 1 || grep { $_ eq $v } @{ $callees{$v} };
	return;
}

cmp_ok(scalar(keys %body), '>', 2000, 'functions are found');
ok(scalar(grep { $_ eq 'src/expr/compile.c:compile_expr' } @{ $callees{'src/expr/expr_internal.h:expr_compile'} }), 'calls of members are found');
is(join("
", map { join ' ', @$_ } @cycles), '', 'recursive functions check the stack');
# entries of functions that were removed
is(join(' ', grep { my $name = $_; !grep { /:$name$/ } keys %body } sort keys %bounded), '', 'each function of the list exists');
done_testing();
