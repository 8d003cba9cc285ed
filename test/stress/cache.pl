#!/usr/bin/env perl
# One session of the stress test of the column cache (cache.sh starts many).
#
# cache.pl setup|reader|writer --name N --seed S --until SECONDS [--standby] [--patience SECONDS] [--directory DIR] [--engine cpu|cuda]
#
#	setup	makes the tables
#	reader	compares answers until that time (seconds since 1970)
#	writer	changes tables until then
#
# Prints "not ok" lines with what is wrong, and in the end "count NAME: NUMBER" lines.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../diff";
use Getopt::Long;
use IO::Handle;
use Time::HiRes qw(sleep time);
use Reader;
use Session;
use Shapes;
use Writer;

my $role = shift @ARGV // '';
my %option = (name => 'x', seed => 1, until => 0, standby => 0, patience => 4, directory => '/tmp', engine => 'cpu');
GetOptions(\%option, 'name=s', 'seed=i', 'until=i', 'standby', 'patience=f', 'directory=s', 'engine=s') or exit 2;
STDOUT->autoflush(1);
srand($option{seed});

my $session = Session->new(log => "$option{directory}/psql-$option{name}");

if ($role eq 'setup')
{
	my @statements = ('SET client_min_messages = error', 'CREATE EXTENSION gpuagg', 'SET allow_in_place_tablespaces = on', "CREATE TABLESPACE other LOCATION ''",
		map { (Shapes::create($_), Shapes::fill($_), Shapes::chance(0.5) ? "VACUUM $_" : ()) } @Shapes::names);

	foreach my $sql (@statements)
	{
		my $result = $session->run($sql);

		die "$result->{state} $result->{message}\n$sql\n" if $result->{state} ne '00000';
	}
	# not everywhere installed
	$session->run('CREATE EXTENSION pg_visibility');
	exit 0;
}
die "no such role: $role\n" if $role !~ /^(?:reader|writer)$/;

my $self = ($role eq 'reader' ? 'Reader' : 'Writer')->new(%option, session => $session, what => "$role $option{name}");
# a server that is being restarted right now is waited for
eval { $self->settle; 1 } or $self->reconnect;
while (time() < $option{until})
{
	eval { $self->step; 1 } or print("not ok $self->{what} ends: $@"), last;
	sleep(rand($role eq 'reader' ? 0.02 : 0.05));
}
print map { "count $role $_: $self->{count}{$_}\n" } sort keys %{ $self->{count} };
