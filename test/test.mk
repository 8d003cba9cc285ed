# make test, make demo, make bench.
