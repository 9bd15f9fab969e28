#!/bin/bash
# Prints stdin and puts it into docs/development/benchmarks.md, between the comments of the
# name, with the day and the machine.
#
#	keep.sh NAME <table
set -euo pipefail
page=$(dirname "$0")/../../docs/development/benchmarks.md
table=$(tee /dev/stderr)
[[ -n $table ]]
grep -q "^<!-- $1 -->\$" "$page"
new=$(NAME=$1 TABLE=$table HEAD="$(date +%F), $(uname -s), $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg) at the end." awk '
	$0 == "<!-- " ENVIRON["NAME"] " -->" { print $0 "\n\n" ENVIRON["HEAD"] "\n\n" ENVIRON["TABLE"] "\n"; skip = 1 }
	$0 == "<!-- end -->" { skip = 0 }
	!skip' "$page")
echo "$new" >"$page"
