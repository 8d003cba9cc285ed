# A psql session that is controlled through pipes. It returns rows as lists of fields, errors as SQLSTATE and message, and all other
# messages (for example the plans of auto_explain) as text.
package Session;
use strict;
use warnings;
use IPC::Open2;

our $FIELD = "\x1f";
my $END = '@@END@@';

# log: the file for this session's messages
sub new
{
	my ($class, %args) = @_;
	my $self = bless { log => $args{log} }, $class;

	$self->connect;
	return $self;
}

sub connect
{
	my ($self) = @_;
	my @command = ('psql', '-XqAt', '-F', $FIELD, '-P', 'null=\N', '-v', 'ON_ERROR_STOP=0');

	local $SIG{PIPE} = 'IGNORE';
	open(my $saved, '>&', \*STDERR) or die $!;
	open(STDERR, '>', $self->{log}) or die "$self->{log}: $!";
	$self->{pid} = open2($self->{out}, $self->{in}, @command);
	open(STDERR, '>&', $saved) or die $!;
	open($self->{messages}, '<', $self->{log}) or die "$self->{log}: $!";
	binmode($self->{in}, ':utf8');
	binmode($self->{out}, ':utf8');
	$self->{in}->autoflush(1);
	return;
}

# Waits for the server to come back after a crash.
sub reconnect
{
	my ($self) = @_;

	close($self->{in});
	close($self->{out});
	close($self->{messages});
	waitpid($self->{pid}, 0);
	foreach my $try (1 .. 120)
	{
		last if system("psql -Xqc 'SELECT 1' >/dev/null 2>&1") == 0;
		sleep 1;
	}
	$self->connect;
	return;
}

# The messages since the last call. psql writes them unbuffered, so those of a statement are complete when its end was read.
sub messages
{
	my ($self) = @_;
	my $text = '';

	seek($self->{messages}, 0, 1);
	while (my $line = readline($self->{messages}))
	{
		$text .= $line;
	}
	return $text;
}

# Runs one statement, or several that are joined by "\;". Returns { state, message, rows => [[field...]...] }. The state is '00000' on
# success, and 'LOST' if the connection broke.
sub run
{
	my ($self, $sql) = @_;
	my ($in, $out) = @{$self}{qw(in out)};
	my @rows;

	local $SIG{PIPE} = 'IGNORE';
	print $in $sql, $sql =~ /\\\.\s*\z/ ? "\n" : ";\n", "\\echo $END :SQLSTATE :LAST_ERROR_MESSAGE\n"
	  or return { state => 'LOST', message => 'connection lost', rows => [] };
	while (my $line = <$out>)
	{
		chomp $line;
		if ($line =~ /^\Q$END\E (\S+) ?(.*)/)
		{
			my ($state, $message) = ($1, $2);

			last if $message =~ /server closed the connection|connection to server was lost/;
			return {
				state => $state,
				message => $state eq '00000' ? '' : $message,
				rows => \@rows
			};
		}
		push @rows, [ split /$FIELD/, $line, -1 ];
	}
	return { state => 'LOST', message => 'connection lost', rows => [] };
}

1;
