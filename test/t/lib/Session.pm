# A client of PostgreSQL's protocol, for tests that run thousands of short scripts: the start of psql takes longer than most of them.
# It prints results and messages as "psql -XAtq -f -" does. It has no meta-commands, variables and COPY.
package Session;

use strict;
use warnings;
use Exporter 'import';
use File::Basename qw(basename);
use IO::Socket::UNIX;

our @EXPORT_OK = qw(statements);

my $lost = "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n"
	. "\tbefore or while processing the request.\n";

# Splits a script into [ statement, number of its last line ]. Returns nothing if only psql can run it.
sub statements
{
	my ($script) = @_;
	my ($text, $line, $depth, @statements) = ('', 1, 0);

	return if $script =~ /\b(?:STDIN|STDOUT|ATOMIC)\b/i;
	while ($script =~ /\G(\s+|--[^\n]*|\/\*.*?\*\/|\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\2\$|\w[\w\$]*|.)/gs)
	{
		my $token = $1;

		return if $token eq '\\' || $token eq "'" || $token eq '"';
		$depth += $token eq '(' ? 1 : $token eq ')' ? -1 : 0;
		$line += $token =~ tr/\n//;
		if ($token eq ';' && $depth == 0)
		{
			push @statements, [ "$text;", $line ] if $text =~ /\S/;
			$text = '';
		}
		elsif ($text ne '' || $token !~ /^(?:\s|--)/)
		{
			$text .= $token;
		}
	}
	push @statements, [ $text, $line ] if $text =~ /\S/;
	return @statements;
}

# Connects as psql with the environment's PGOPTIONS would. Returns nothing if that fails.
sub new
{
	my ($class, $folder, $port, $database) = @_;
	my $socket = IO::Socket::UNIX->new(Peer => "$folder/.s.PGSQL.$port") or return;
	my $self = bless { socket => $socket, input => '' }, $class;
	my %parameters = (user => scalar getpwuid($>), database => $database, application_name => basename($0));

	$parameters{options} = $ENV{PGOPTIONS} if $ENV{PGOPTIONS};
	$self->send_bytes(pack('N', 196608) . join('', map { "$_\0$parameters{$_}\0" } sort keys %parameters) . "\0");
	while (my ($type, $body) = $self->receive)
	{
		return $self if $type eq 'Z';
		return if $type eq 'E' || ($type eq 'R' && unpack('N', $body) != 0);
	}
	return;
}

# Runs a statement. Returns its rows, its messages, each of which begins with $prefix, and 'ok', 'error' or 'lost'.
sub run
{
	my ($self, $statement, $prefix) = @_;
	my ($rows, $messages, $status) = ('', '', 'ok');

	utf8::encode($statement) if utf8::is_utf8($statement);
	$self->send_bytes("$statement\0", 'Q');
	while (my ($type, $body) = $self->receive)
	{
		return ($rows, $messages, $status) if $type eq 'Z';
		if ($type eq 'D')
		{
			my ($n, @values) = unpack('n', $body);
			my $at = 2;

			foreach (1 .. $n)
			{
				my $length = unpack('l>', substr($body, $at, 4));

				push @values, $length < 0 ? '' : substr($body, $at + 4, $length);
				$at += 4 + ($length < 0 ? 0 : $length);
			}
			$rows .= join('|', @values) . "\n";
		}
		elsif ($type eq 'E' || $type eq 'N')
		{
			$messages .= $prefix . message($body, $statement);
			($status, $rows) = ('error', '') if $type eq 'E';
		}
	}
	return ('', "$messages$prefix$lost${prefix}error: connection to server was lost\n", 'lost');
}

sub close
{
	my ($self) = @_;

	$self->send_bytes('', 'X');
	$self->{socket}->close;
	return;
}

# The text of an error or a notice
sub message
{
	my ($body, $statement) = @_;
	my %field = map { substr($_, 0, 1) => substr($_, 1) } grep { $_ ne '' } split /\0/, $body;
	my $text = "$field{S}:  $field{M}\n";

	$statement = $field{q} if defined $field{p};
	if (my $position = $field{P} // $field{p})
	{
		my $before = substr($statement, 0, $position - 1);
		my ($line) = substr($statement, 1 + rindex($before, "\n")) =~ /^(.*)/;
		my $label = 'LINE ' . (1 + $before =~ tr/\n//) . ': ';

		$text .= "$label$line\n" . ' ' x (length($label) + length($before) - 1 - rindex($before, "\n")) . "^\n";
	}
	$text .= "DETAIL:  $field{D}\n" if defined $field{D};
	$text .= "HINT:  $field{H}\n" if defined $field{H};
	$text .= "QUERY:  $field{q}\n" if defined $field{q};
	$text .= "CONTEXT:  $field{W}\n" if defined $field{W} && $field{S} =~ /ERROR|FATAL|PANIC/;
	return $text;
}

# Sends a message of the protocol. If the server has closed the connection, receive() finds the end of its answers.
sub send_bytes
{
	my ($self, $body, $type) = @_;
	local $SIG{PIPE} = 'IGNORE';

	$self->{socket}->syswrite(($type // '') . pack('N', 4 + length $body) . $body);
	return;
}

# Returns the type and the body of the next message; nothing at the end of the connection.
sub receive
{
	my ($self) = @_;
	my $input = \$self->{input};

	for (;;)
	{
		my $length = length($$input) < 5 ? 4 : unpack('N', substr($$input, 1, 4));

		if (length($$input) > $length)
		{
			my $message = substr($$input, 0, $length + 1, '');

			return (substr($message, 0, 1), substr($message, 5));
		}
		my $got = $self->{socket}->sysread($$input, 65536, length $$input);
		next if !defined $got && $!{EINTR};
		return if !$got;
	}
}

1;
