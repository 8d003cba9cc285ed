#!/usr/bin/env perl
# Checks that the folders of src/ use each other only downwards, in the order of the list "Layers" in src/README.md. Checks the order
# of files in folders whose README.md has a list of files, such as src/device_cuda/.
#
#	test/layers.pl			checks, prints TAP
#	test/layers.pl --print	prints the folders from top to bottom: files, lines, and the folders that each uses
#
# Needs the objects of `make layers-objects`. These are errors:
#	- an #include of a file in a higher folder, or of a file that the list does not allow the folder to use;
#	- an #include of a PostgreSQL header in plain C;
#	- a use of a symbol that is defined in a higher folder, even if its declaration is elsewhere;
#	- a cycle of #includes or of symbols between files of a folder, or of the two folders of the server. Between other folders, a
#	  cycle always contains a use upwards;
#	- an #include or a use of a symbol of a file that comes later in the list of files in the folder's README.md.
use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;

chdir dirname(__FILE__) . '/..' or die "cannot enter the source tree: $!";

# ---------------------------------------------------------------------------------------------
# The lists of the READMEs.

my %level;						# folder ("." for src/ itself) -> its position, from the lowest
my %uses;						# folder -> files and folders (with a slash) that it may use; undefined: all lower ones
my %plain;						# folders in plain C, without PostgreSQL
my $readme = slurp('src/README.md');
my ($list) = $readme =~ /<!-- layers -->\n(.*?)<!-- end of layers -->/s or die 'src/README.md has no list of layers';

foreach my $line (grep { /^\S/ } split /\n/, $list)
{
	$line =~ m{^(?:\d+\.|-) `src/(\w*)/?`(?: \(([^)]*)\))?: } or die "not a line of the list of layers: $line";
	my ($folder, $terms) = ($1 || '.', $2 // '');

	$level{$folder} = scalar keys %level;
	$plain{$folder} = 1 if $terms =~ /\bplain C\b/;
	$uses{$folder} = [ $1 =~ /`([^`]+)`/g ] if $terms =~ /\buses only (.*)/;
}

# file -> its position in the list of files of its folder's README.md, lowest first, for folders with such a list
my %place;

foreach my $name (grep { -e "src/$_/README.md" } keys %level)
{
	my ($order) = slurp("src/$name/README.md") =~ /<!-- order -->\n(.*?)<!-- end of order -->/s or next;
	my $number = 0;

	foreach my $line (grep { /^\S/ } split /\n/, $order)
	{
		my ($names) = $line =~ /^\d+\. ((?:`[^`]+`(?:, )?)+): / or die "not a line of the list of files of $name/: $line";

		$number++;
		$place{"$name/$_"} = $number foreach $names =~ /`([^`]+)`/g;
	}
}

# ---------------------------------------------------------------------------------------------
# The uses in the code, from file to file. Paths are relative to src/.

my @files = sort(glob('src/*.[ch] src/*/*.[ch] src/*/*.cu src/*/*.cuh'));
s{^src/}{} foreach @files;
my %lines;						# file -> number of lines
my %includes;					# file -> the project's files that it includes
my %foreign;					# file -> headers in quotes that do not belong to the project
my %calls;						# file.c -> file that defines some of its undefined symbols -> one of these symbols

foreach my $file (@files)
{
	my $text = slurp("src/$file");

	$lines{$file} = $text =~ tr/\n//;
	while ($text =~ /^[ \t]*#[ \t]*include[ \t]*"([^"]+)"/mg)
	{
		my $name = $1;
		my ($found) = grep { -e "src/$_" } dirname($file) . "/$name", $name, "../kernels/$name";

		if (defined $found)
		{
			1 while $found =~ s{(^|/)\./}{$1} || $found =~ s{(^|/)(?!\.\./)[^/]+/\.\./}{$1};
			push @{ $includes{$file} }, $found;
		}
		else
		{
			push @{ $foreign{$file} }, $name;
		}
	}
}

# The server is another program than the library. It has two folders, and shares some files with the library.
my @sources = grep { /\.c$/ } @files;
my @of_server = grep { is_of_server($_) } @sources;
my @of_library = grep { !is_of_server($_) } @sources;
my @missing = grep { !-e object($_) } @sources;
my %symbols;					# object -> lines that nm prints
read_symbols(\@of_library, \@of_library);
read_symbols(\@of_server, [ @of_server, grep { $_ eq 'strategy.c' || m{^operators/} } @of_library ]);

sub slurp
{
	my ($name) = @_;

	open my $handle, '<', $name or die "$name: $!";
	local $/ = undef;
	return scalar <$handle>;
}

sub is_of_server { return $_[0] =~ m{^(?:server|device_cuda)/} }
sub object { return (is_of_server($_[0]) ? 'build/unit/stub/src/' : 'build/strict/') . ($_[0] =~ s/\.c$/.o/r) }
sub folder { return $_[0] =~ m{^(\.\./\w+|\w+)/} ? $1 : '.' }
sub may_cycle { return folder($_[0]) eq folder($_[1]) || (is_of_server($_[0]) && is_of_server($_[1])) }

# read_symbols(USERS, DEFINERS): fills %calls with the symbols that the first files use and the second files define.
sub read_symbols
{
	my ($users, $definers) = @_;
	my %definer;

	foreach my $file (grep { -e object($_) } @$definers)
	{
		$definer{$_} = $file foreach map { /^\S+ [A-TV-Z] (\S+)/ ? $1 : () } nm($file);
	}
	foreach my $file (grep { -e object($_) } @$users)
	{
		foreach my $symbol (map { /^\s+U (\S+)/ ? $1 : () } nm($file))
		{
			my $where = $definer{$symbol};

			$calls{$file}{$where} //= $symbol if defined $where && $where ne $file;
		}
	}
	return;
}

# Returns the lines that nm prints for the object of a file. The first call runs nm for all objects.
sub nm
{
	my ($file) = @_;

	unless (%symbols)
	{
		my $of;

		foreach my $line (split /\n/, qx(nm ${\ join ' ', grep { -e } map { object($_) } @sources }))
		{
			if ($line =~ /^(\S+):$/) { $of = $1 }
			elsif ($line ne '') { push @{ $symbols{$of} }, $line }
		}
		die 'nm failed' if $?;
	}
	return @{ $symbols{ object($file) } // [] };
}

# ---------------------------------------------------------------------------------------------

if (@ARGV && $ARGV[0] eq '--print')
{
	my ($all, $count) = (0, 0);

	foreach my $folder (sort { $level{$b} <=> $level{$a} } keys %level)
	{
		my @own = grep { folder($_) eq $folder } @files;
		my $sum = 0;
		my %used;

		$sum += $lines{$_} foreach @own;
		$used{$_} = 1 foreach map { folder($_) } map { (@{ $includes{$_} // [] }, keys %{ $calls{$_} // {} }) } @own;
		delete $used{$folder};
		printf "%-12s %3d files %6d lines  uses %s\n", $folder eq '.' ? 'src/' : "$folder/", scalar(@own), $sum,
			join(' ', sort { ($level{$a} // -1) <=> ($level{$b} // -1) } keys %used) || 'nothing';
		$all += $sum;
		$count += @own;
	}
	printf "%-12s %3d files %6d lines\n", 'all', $count, $all;
	exit 0;
}

# ---------------------------------------------------------------------------------------------
# The checks. Errors have the form "kind: file -> file".

my %wrong;						# error -> detail

# allowed(USER, USED): returns whether the list allows a file to use another.
sub allowed
{
	my ($user, $used) = map { folder($_) } @_;

	return 1 if $user eq $used;
	return scalar grep { $_ eq $_[1] || $_ eq "$used/" } @{ $uses{$user} } if $uses{$user};
	return defined $level{$used} && $level{$used} < $level{$user};
}

# Returns the pairs of files [user, used] that are on a cycle of the graph.
sub cycles
{
	my ($graph) = @_;
	my %reached;

	foreach my $start (keys %$graph)
	{
		my @todo = ($start);

		while (defined(my $file = pop @todo))
		{
			push @todo, grep { may_cycle($_, $start) && !$reached{$start}{$_}++ } @{ $graph->{$file} // [] };
		}
	}
	return map { my $user = $_; map { [ $user, $_ ] } grep { $reached{$_} && $reached{$_}{$user} } @{ $graph->{$user} } }
		sort keys %$graph;
}

foreach my $file (@files)
{
	foreach my $used (@{ $includes{$file} // [] })
	{
		$wrong{"include: $file -> $used"} = '' unless allowed($file, $used);
	}
	foreach my $used (sort keys %{ $calls{$file} // {} })
	{
		# functions of strategy.h are defined in strategy.c, and functions of device_store.h in device_store.c or device_store_hold.c
		$wrong{"symbol: $file -> $used"} = " ($calls{$file}{$used})"
			unless allowed($file, $used) || ($uses{ folder($file) }
			&& grep { allowed($file, $_) } $used =~ s/\.c$/.h/r, $used =~ s/_[^_]*\.c$/.h/r);
	}
	foreach my $used (grep { defined $place{$file} && folder($_) eq folder($file) }
		@{ $includes{$file} // [] }, sort keys %{ $calls{$file} // {} })
	{
		$wrong{"order: $file -> $used"} = '' unless ($place{$used} // 0) <= $place{$file};
	}
}
foreach my $pair (cycles(\%includes))
{
	$wrong{"include cycle: $pair->[0] -> $pair->[1]"} = '';
}
foreach my $pair (cycles({ map { $_ => [ sort keys %{ $calls{$_} } ] } keys %calls }))
{
	my ($user, $used) = @$pair;

	$wrong{"symbol cycle: $user -> $used"} = " ($calls{$user}{$used})";
}

# Plain C, with all files that it includes.
my %seen;
my @todo = map { [ $_, $_ ] } grep { $plain{ folder($_) } } @files;
while (my $next = shift @todo)
{
	my ($file, $for) = @$next;

	next if $seen{"$file for $for"}++;
	$wrong{"not plain C: $for -> $file"} = " ($_)" foreach grep { !/^gpuagg_cuda\.h$|^cuda/ } @{ $foreign{$file} // [] };
	push @todo, map { [ $_, $for ] } @{ $includes{$file} // [] };
}

# none(NAME, ERRORS...): the test passes if there are no errors
sub none
{
	my ($name, @found) = @_;

	return ok(!@found, $name) || diag(join("\n", map { "  $_" } @found));
}

my %folders = map { folder($_) => 1 } @files;
none('each folder is in the list of layers', grep { !defined $level{$_} } sort keys %folders);
none('each folder of the list exists', grep { !$folders{$_} } sort keys %level);
none('each file is in its folder\'s list of files',
	grep { my $file = $_; !$place{$file} && grep { folder($_) eq folder($file) } keys %place } @files);
none('each file of such a list exists', grep { my $file = $_; !grep { $_ eq $file } @files } sort keys %place);
none('each source has an object (make layers-objects)', @missing);
foreach my $check (
	[ 'include', 'files include only files of lower folders' ],
	[ 'symbol', 'files use only symbols of lower folders' ],
	[ 'order', 'files use only earlier files of their folder\'s list' ],
	[ 'include cycle', 'no folder has a cycle of includes' ],
	[ 'symbol cycle', 'no folder has a cycle of symbols' ],
	[ 'not plain C', 'plain C includes no PostgreSQL headers' ])
{
	my ($kind, $name) = @$check;

	none($name, map { "$_$wrong{$_}" } grep { /^$kind: / } sort keys %wrong);
}
done_testing();
