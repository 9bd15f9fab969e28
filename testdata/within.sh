#!/bin/sh
# within.sh TEXT LINE: runs a line of sh with the time limit $LIMIT, and again with a longer one until its output
# holds TEXT. A busy machine may spend a short limit before the line gets to what the limit is to end.
for LIMIT in 1s 4s 16s 64s; do
	export LIMIT
	sh -c "$2" >within.out 2>within.err
	code=$?
	grep -q "$1" within.out within.err && break
done
cat within.out
cat within.err >&2
exit $code
