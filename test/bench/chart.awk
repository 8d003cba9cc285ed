# Draws the chart test/bench/speed.svg from the table of the standard queries in README.md. Each configuration has a bar, whose length is
# its time divided by PostgreSQL's time.
#
#	awk -f test/bench/chart.awk README.md > test/bench/speed.svg
#
# test/docs.sh checks that the chart agrees with the table.
BEGIN {
	FS = " *\\| *"
	left = 310
	full = 430
	height = 12
}

/^<!-- bench -->/ { inside = 1 }
/^<!-- \/bench -->/ { inside = 0 }

inside && /^\| [0-9]+: / {
	n++
	name[n] = $2
	gsub(/`/, "", name[n])
	core[n] = $3
	tuples[n] = $4
	heap[n] = $5
}

function bar(class, row, value, of) {
	printf "  <rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", class, left, top + row * (height + 2), full * value / of, height
	printf "<text class=\"small\" x=\"%.1f\" y=\"%d\">%s ms</text>\n", left + full * value / of + 5, top + row * (height + 2) + 10, value
}

function legend(class, x, text) {
	printf "  <rect class=\"%s\" x=\"%d\" y=\"14\" width=\"12\" height=\"12\"/><text class=\"small\" x=\"%d\" y=\"24\">%s</text>\n", class, x, x + 18, text
}

END {
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 %d\" font-family=\"system-ui, sans-serif\" font-size=\"14\">\n", 44 + n * 56
	print "  <title>Time of the standard queries, as a share of core's</title>"
	print "  <style>"
	print "    .core { fill: #babdb6 }"
	print "    .tuples { fill: #729fcf }"
	print "    .heap { fill: #204a87 }"
	print "    text { fill: #2e3436 }"
	print "    .small { font-size: 12px; fill: #555753 }"
	print "  </style>"
	printf "  <rect width=\"860\" height=\"%d\" fill=\"#ffffff\"/>\n", 44 + n * 56
	legend("core", left, "core")
	legend("tuples", left + 80, "gpuagg, rows from the child plan")
	legend("heap", left + 310, "gpuagg, heap pages")
	for (i = 1; i <= n; i++) {
		top = 40 + (i - 1) * 56
		printf "  <text x=\"%d\" y=\"%d\" text-anchor=\"end\" font-size=\"13\">%s</text>\n", left - 12, top + 25, name[i]
		bar("core", 0, core[i], core[i])
		bar("tuples", 1, tuples[i], core[i])
		bar("heap", 2, heap[i], core[i])
	}
	print "</svg>"
}
