#!/bin/sh
# run.sh [REVISION…]: runs what each revision of the protocol requires of a
# client, and prints a line for each scenario. Exit code 1 when a required one
# failed. RESULTS names a folder for the wire logs.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
repo=$here/../..
node=$(ls "$here"/node_modules/node-*/bin/node 2>/dev/null | head -n 1)
suite=$here/node_modules/@modelcontextprotocol/conformance/dist/index.js
results=${RESULTS:-$(mktemp -d)}
mkdir -p "$results"
export TOOLREG="${TOOLREG:-$repo/bin/toolreg}"
status=0
for revision in ${*:-2025-11-25 2026-07-28}; do
	"${node:-node}" "$suite" client --command "$repo/bin/conformance-adapter" --requirements "$revision" \
		--output-dir "$results/$revision" >"$results/$revision.log" 2>&1 || status=1
	echo "revision $revision"
	sed -n '/=== SUITE SUMMARY ===/,$p' "$results/$revision.log" | sed -e 1,2d
done
test -n "$RESULTS" || { test $status = 0 && rm -rf "$results"; } || echo "logs are in $results" >&2
exit $status
