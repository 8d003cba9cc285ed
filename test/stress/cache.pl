#!/usr/bin/env perl
# One session of the stress test of the column cache. cache.sh starts many of them.
#
#	cache.pl setup|reader|writer [option...]
#
#	setup		makes the tables
#	reader		compares answers
#	writer		changes tables
#
#	--name N			name of the session (default x)
#	--seed S			seed of random numbers (default 1)
#	--until TIME		the time at which the session ends, in seconds since 1970
#	--standby			the server is a standby, so nothing is changed
#	--patience SECONDS	longest time for which a transaction keeps its snapshot (default 4)
#	--directory DIR		folder for files of COPY and logs (default /tmp)
#	--engine ENGINE		engine of readers, cpu or cuda (default cpu)
#
# STRESS_VERBOSE in the environment prints expected errors as well. Prints "not ok" lines with errors, and at the end "count NAME: NUMBER"
# lines.
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
		Shapes::create_dimensions(), map { (Shapes::create($_), Shapes::fill($_), Shapes::chance(0.5) ? "VACUUM $_" : ()) } @Shapes::names);

	foreach my $sql (@statements)
	{
		my $result = $session->run($sql);

		die "$result->{state} $result->{message}\n$sql\n" if $result->{state} ne '00000';
	}
	# fails where the extension is not installed
	$session->run('CREATE EXTENSION pg_visibility');
	exit 0;
}
die "no such role: $role\n" if $role !~ /^(?:reader|writer)$/;

my $self = ($role eq 'reader' ? 'Reader' : 'Writer')->new(%option, session => $session, what => "$role $option{name}");
# the server may be restarting right now
eval { $self->prepare_session; 1 } or $self->reconnect;
while (time() < $option{until})
{
	eval { $self->step; 1 } or print("not ok $self->{what} ends: $@"), last;
	sleep(rand($role eq 'reader' ? 0.02 : 0.05));
}
print map { "count $role $_: $self->{count}{$_}\n" } sort keys %{ $self->{count} };
