#!/usr/bin/env perl
# The order of the folders of src/, from the list under "Layers" in src/README.md, against what the
# code does; and the order of the files of a folder whose README.md states one, as src/device_cuda/ does.
#
#	test/layers.pl			the checks, as TAP
#	test/layers.pl --print	the folders, top to bottom: files, lines, and the folders each uses
#
# Needs the objects of `make layers-objects`.  Fails for
#	- an #include of a file in a higher folder, or, where the list says what a folder may use,
#	  of anything else in the tree; plain C must not include PostgreSQL's headers;
#	- a symbol that is defined in a higher folder, however it was declared;
#	- a circle of #includes or of symbols between files of one folder, or of the two folders of the
#	  server.  Circles between other folders have an arrow upwards;
#	- an #include or a symbol of a file further down in the list of files of the folder's README.md.
use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;

chdir dirname(__FILE__) . '/..' or die "cannot enter the source tree: $!";

# ---------------------------------------------------------------------------------------------
# What the README says.

my %level;						# folder, "." for src/ itself -> its place from below
my %uses;						# folder -> the only files, or folders with a slash, that it may use
my %plain;						# folders in plain C
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

# Folders whose README.md has a list of their files, lowest first: file -> its place in that list.
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
# What the code does: arrows "file -> file", relative to src/.

my @files = sort(glob('src/*.[ch] src/*/*.[ch] src/*/*.cu src/*/*.cuh'));
s{^src/}{} foreach @files;
my %lines;						# file -> number of lines
my %includes;					# file -> the project's files that it includes
my %foreign;					# file -> headers in quotes that are not the project's
my %calls;						# file.c -> the files that define its undefined symbols -> one of those

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

# The server is a program of its own: what it calls is defined in its two folders, or in the files that it shares.
my @sources = grep { /\.c$/ } @files;
my @of_server = grep { is_of_server($_) } @sources;
my @of_library = grep { !is_of_server($_) } @sources;
my @missing = grep { !-e object($_) } @sources;
my %symbols;					# object -> what nm prints of it
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
sub may_circle { return folder($_[0]) eq folder($_[1]) || (is_of_server($_[0]) && is_of_server($_[1])) }

# Fills %calls for the first files; the others define.
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

# The lines that nm prints of the object of a file; of all objects at the first call.
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
# The checks.  What is wrong is a line "kind: file -> file".

my %wrong;						# line -> detail

# Whether the list lets a file use another.
sub allowed
{
	my ($user, $used) = map { folder($_) } @_;

	return 1 if $user eq $used;
	return scalar grep { $_ eq $_[1] || $_ eq "$used/" } @{ $uses{$user} } if $uses{$user};
	return defined $level{$used} && $level{$used} < $level{$user};
}

# Pairs of files that lie on a circle of the graph, as [user, used].
sub circles
{
	my ($graph) = @_;
	my %reached;

	foreach my $start (keys %$graph)
	{
		my @todo = ($start);

		while (defined(my $file = pop @todo))
		{
			push @todo, grep { may_circle($_, $start) && !$reached{$start}{$_}++ } @{ $graph->{$file} // [] };
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
		# what strategy.h or device_store.h declares is defined in strategy.c, or device_store_hold.c
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
foreach my $pair (circles(\%includes))
{
	$wrong{"include circle: $pair->[0] -> $pair->[1]"} = '';
}
foreach my $pair (circles({ map { $_ => [ sort keys %{ $calls{$_} } ] } keys %calls }))
{
	my ($user, $used) = @$pair;

	$wrong{"symbol circle: $user -> $used"} = " ($calls{$user}{$used})";
}

# Plain C, with everything that it includes.
my %seen;
my @todo = map { [ $_, $_ ] } grep { $plain{ folder($_) } } @files;
while (my $next = shift @todo)
{
	my ($file, $for) = @$next;

	next if $seen{"$file for $for"}++;
	$wrong{"not plain C: $for -> $file"} = " ($_)" foreach grep { !/^gpuagg_cuda\.h$|^cuda/ } @{ $foreign{$file} // [] };
	push @todo, map { [ $_, $for ] } @{ $includes{$file} // [] };
}

# none NAME, WRONG...: there must be none
sub none
{
	my ($name, @found) = @_;

	return ok(!@found, $name) || diag(join("\n", map { "  $_" } @found));
}

my %folders = map { folder($_) => 1 } @files;
none('every folder is in the list of layers', grep { !defined $level{$_} } sort keys %folders);
none('every folder of the list is there', grep { !$folders{$_} } sort keys %level);
none('every file is in its folder\'s list of files',
	grep { my $file = $_; !$place{$file} && grep { folder($_) eq folder($file) } keys %place } @files);
none('every file of such a list is there', grep { my $file = $_; !grep { $_ eq $file } @files } sort keys %place);
none('every source has an object (make layers-objects)', @missing);
foreach my $check (
	[ 'include', 'includes go downwards' ],
	[ 'symbol', 'symbols come from below' ],
	[ 'order', 'files use files further up in their folder\'s list' ],
	[ 'include circle', 'no circle of includes in a folder' ],
	[ 'symbol circle', 'no circle of symbols in a folder' ],
	[ 'not plain C', 'no PostgreSQL in plain C' ])
{
	my ($kind, $name) = @$check;

	none($name, map { "$_$wrong{$_}" } grep { /^$kind: / } sort keys %wrong);
}
done_testing();
