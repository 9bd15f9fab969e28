#!/bin/sh
# run.sh [REVISION…]: runs what each revision of the protocol requires of a client,
# and of `toolreg serve` as a server whose tools come from the Go SDK's server for
# this suite, which speaks the same revision, and from a server of tasks, which the SDK does not
# know. It prints a line for each scenario.
# Exit code 1 if a required one failed. RESULTS names a folder for the wire logs.
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
	echo "client, revision $revision"
	sed -n '/=== SUITE SUMMARY ===/,$p' "$results/$revision.log" | sed -e 1,2d
done
cd "$results"
for revision in ${*:-2025-11-25 2026-07-28}; do
	protocol=modern
	case $revision in 2025*) protocol=legacy ;; esac
	cat >settings.yaml <<-END
		mcpServers:
		  e: {command: "$repo/bin/everything-server", trust: true, protocol: $protocol}
		  tasks: {command: "$repo/bin/mcp-testserver", args: [--tasks], trust: true, protocol: $protocol}
	END
	"$TOOLREG" --settings settings.yaml serve --source 'mcp:*' --no-auth --http 127.0.0.1:0 2>serve.log &
	server=$!
	sh "$here/../await.sh" serve.log 'listening on'
	"${node:-node}" "$suite" server --url "$(sed -n 's/.*listening on //p' serve.log)" --requirements "$revision" \
		--output-dir "$results/server-$revision" >"$results/server-$revision.log" 2>&1 || status=1
	kill $server
	wait $server || status=1
	echo "server, revision $revision"
	sed -n '/=== SUMMARY ===/,$p' "$results/server-$revision.log" | sed -e 1d
done
test -n "$RESULTS" || { test $status = 0 && rm -rf "$results"; } || echo "logs are in $results" >&2
exit $status
