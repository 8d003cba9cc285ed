# Changes of a set's tables between its queries. Pages that the column cache has are then read again unchanged, changed, vacuumed
# and rewritten.
package Changes;
use strict;
use warnings;
use Types;

BEGIN { *pick = \&Types::pick; *chance = \&Types::chance; *int_between = \&Types::int_between; }

# Returns the statements of one change of a table.
sub change
{
	my ($name, $join, $key) = @_;
	my $which = pick('id % ' . pick(7, 31, 97) . ' = ' . int_between(0, 6), 'id BETWEEN ' . int_between(0, 3000) . ' AND ' . int_between(0, 6000));
	my $touch = "UPDATE $name SET $join = $join WHERE $which";
	my $update = "UPDATE $name SET $join = ($join + " . int_between(1, 25) . ") % 26 WHERE $which";
	my $delete = "DELETE FROM $name WHERE id % 61 = " . int_between(0, 60);
	my $insert = $key ? $touch : "INSERT INTO $name SELECT * FROM $name WHERE id % 97 = " . int_between(0, 96);
	my $lock = "DO 'BEGIN PERFORM FROM $name WHERE $which FOR " . pick('UPDATE', 'SHARE', 'KEY SHARE') . "; END'";
	my @some = map { pick($touch, $update, $delete, $insert, $lock) } 1 .. 2;

	return ($some[0]) if chance(0.4);
	return ("VACUUM $name") if chance(0.4);
	return @{ pick(
		[ 'BEGIN', @some, pick('ROLLBACK', 'COMMIT') ],
		[ 'BEGIN', $some[0], 'SAVEPOINT s', $some[1], 'ROLLBACK TO s', 'COMMIT' ],
		[ 'BEGIN', "TRUNCATE $name", 'ROLLBACK' ],
		[ "VACUUM (FREEZE) $name" ],
		[ "VACUUM FULL $name" ],
		[ @some, "VACUUM $name" ]) };
}

# Returns the statements before a query; usually none.
sub changes
{
	my ($tables) = @_;
	my @of = ([ 't', 'aj', $tables->{t}{key} ], [ 't', 'aj', $tables->{t}{key} ], [ 'p', 'aj', 1 ], [ 'd', 'bj', $tables->{d}{key} ]);

	return chance(0.6) ? () : map { change(@{ pick(@of) }) } 1 .. int_between(1, 2);
}

1;
