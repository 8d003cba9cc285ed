#!/usr/bin/env perl
# Checks the layout of the sources by .clang-format and .editorconfig.
#
#	test/format.pl			checks all files, prints TAP
#	test/format.pl --fix	lays out the C and CUDA sources
#
# The layout itself is checked only if clang-format 14 is installed, as other versions differ in details.
use strict;
use warnings;
use File::Basename qw(dirname);
use Test::More;

chdir dirname(__FILE__) . '/..' or die "cannot enter the source tree: $!";

my $columns = setting('.clang-format', qr/^ColumnLimit: (\d+)/m);
my $tab = setting('.clang-format', qr/^TabWidth: (\d+)/m);
my @sources = sort map { glob("$_/*.c $_/*.h $_/*.cu $_/*.cuh") } folders(qw(src kernels test));
my @texts = (@sources, sort map { glob("$_/*.sh $_/*.pl $_/*.pm $_/*.sql $_/*.md $_/*.mk") } folders(qw(src kernels test sql)), glob('*.md'));
my ($clang_format) = grep { (`$_ --version 2>&1` // '') =~ /version 14\./ } qw(clang-format-14 clang-format);

if (@ARGV && $ARGV[0] eq '--fix')
{
	die "clang-format 14 is not installed\n" unless defined $clang_format;
	exit(system($clang_format, '-i', @sources) != 0);
}

cmp_ok(scalar @sources, '>', 100, 'sources are found');
is(setting('.editorconfig', qr/^max_line_length = (\d+)/m), $columns, '.editorconfig has the line width of .clang-format');

subtest 'C and CUDA sources are laid out as .clang-format says' => sub {
	plan skip_all => 'clang-format 14 is not installed' unless defined $clang_format;
	my $differences = `$clang_format --dry-run -Werror @{[ join ' ', @sources ]} 2>&1`;

	is($?, 0, 'make format would change nothing') or diag(substr($differences, 0, 4000));
};

my (@wide, @loose);

foreach my $file (@texts)
{
	my $is_source = $file =~ /\.(?:c|h|cu|cuh)$/;

	open my $in, '<:encoding(UTF-8)', $file or die "cannot open $file: $!";
	while (my $line = <$in>)
	{
		push @loose, "$file:$." if $line =~ /[ \t\r]$/ || $line !~ /\n\z/;
		next unless $is_source;
		chomp $line;
		1 while $line =~ s/^([^\t]*)\t/$1 . ' ' x ($tab - length($1) % $tab)/e;
		push @wide, "$file:$." if length $line > $columns;
	}
	close $in;
}
is("@wide", '', "lines have at most $columns columns");
is("@loose", '', 'no line ends with a blank, and each file ends with a newline');
done_testing();

# setting(FILE, PATTERN): returns what the pattern captures in the file.
sub setting
{
	my ($file, $pattern) = @_;

	open my $in, '<', $file or die "cannot open $file: $!";
	local $/;
	my ($value) = <$in> =~ $pattern or die "$file lacks $pattern";
	return $value;
}

# Returns these folders and their subfolders, without the folder of test results.
sub folders
{
	my @folders = @_;

	for (my $i = 0; $i < @folders; $i++)
	{
		push @folders, grep { -d && !m{^test/results$} } glob("$folders[$i]/*");
	}
	return @folders;
}
