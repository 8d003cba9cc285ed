# Compares two results in CSV, both sorted by their keys. Fields, without the quotes around them, must be equal as text, or as numbers
# within 1e-9, as sums of floats depend on the order of rows. Numbers that differ by at most "absolute" (default 0) are equal too. Prints
# the first difference. The exit status is 1 if there is one.
#
#	awk -F, -v other=FILE [-v absolute=NUMBER] -f compare.awk FILE
function differ(a, b, d)
{
	gsub(/^"|"$/, "", a)
	gsub(/^"|"$/, "", b)
	if (a == b)
		return 0
	if (a !~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/ || b !~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/)
		return 1
	d = a - b
	return (d < 0 ? -d : d) > absolute + 1e-9 * ((a < 0 ? -a : a) + (b < 0 ? -b : b))
}
{
	if ((getline line < other) <= 0) {
		print "row " NR " is missing: " $0
		exit bad = 1
	}
	n = split(line, field, ",")
	for (i = 1; i <= (n > NF ? n : NF); i++)
		if (differ($i, field[i])) {
			print "row " NR ": " $0 " is not " line
			exit bad = 1
		}
}
END {
	if (!bad && (getline line < other) > 0) {
		print "row " NR + 1 " is surplus: " line
		bad = 1
	}
	exit bad
}
