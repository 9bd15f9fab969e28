#!/bin/bash
# Compares list and call of MCP servers with the limit: a client that starts the
# same servers, shakes hands, makes one request and prints the answer unread.
# Each row is one hyperfine run, the two in turn. Needs hyperfine and jq; RUNS
# sets the runs of each command, ROWS the rows by a pattern.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$here/../../bin
work=$(mktemp -d)
trap 'test -z "${web:-}" || kill $web; rm -rf "$work"' EXIT
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$work/mcpbench" "$here/mcpbench"
cp "${TOOLREG:-$bin/toolreg}" "$work/toolreg"
cd "$work"
mkdir .git
export PATH=$work:$PATH HOME=$work XDG_CONFIG_HOME=$work/c XDG_STATE_HOME=$work/s XDG_CACHE_HOME=$work/h

# settings FILE COUNT FLAGS: so many servers of these flags.
settings() {
	{
		echo 'mcpServers:'
		for i in $(seq "$2"); do echo "  s$i: {command: mcpbench, args: [server$3], trust: true}"; done
	} >"$1.yaml"
}
# servers COUNT FLAGS: the same for the limit.
servers() {
	for i in $(seq "$1"); do
		test "$i" = 1 || printf -- '-- '
		printf 'mcpbench server %s ' "$2"
	done
}
row() { # NAME LIMIT TOOLREG
	[[ $1 =~ ${ROWS:-.} ]] || return 0
	hyperfine -N --warmup 1 --runs "${RUNS:-10}" --export-json out.json "$2" "$3" >/dev/null 2>log || { cat log >&2; return 1; }
	jq -r --arg name "$1" '[.results[].median * 1000] | "| \($name) | \(.[0] * 10 | round / 10) | \(.[1] * 10 | round / 10) | \(.[1] / .[0] * 100 | round / 100) |"' out.json
}
memory() { # NAME COMMAND
	[[ $1 =~ ${ROWS:-.} ]] || return 0
	echo "| memory: $1 | | $(mcpbench memory ${2}) MiB | |"
}

settings one 1 ''
settings ten 10 ''
settings ignore 1 ', -ignore'
settings slow 10 ', -delay, 200ms'
settings many 1 ', -tools, "1000", -schema, "2400"'
settings flood 1 ', -tools, "10000", -schema, "1200"'
settings big 1 ', -result, "20000000"'
settings huge 1 ', -result, "64000000"'
mcpbench server -http 127.0.0.1:0 -delay 50ms >url &
web=$!
until grep -q . url; do sleep 0.01; done
echo "mcpServers: {s1: {httpUrl: \"$(cat url)\", trust: true}}" >http.yaml

echo '| work | limit, ms | toolreg, ms | ratio |'
echo '|---|---:|---:|---:|'
row 'version (limit: a program that does nothing)' '/bin/true' 'toolreg version'
row 'list 1 server, 10 tools' "mcpbench limit $(servers 1 '')" 'toolreg --settings one.yaml list'
row 'list a server that ignores unknown requests' "mcpbench limit $(servers 1 -ignore)" 'toolreg --settings ignore.yaml list'
row 'list 10 instant servers' "mcpbench limit $(servers 10 '')" 'toolreg --settings ten.yaml list'
row 'list 10 servers of 200 ms' "mcpbench limit $(servers 10 '-delay 200ms')" 'toolreg --settings slow.yaml list'
row 'call, 1 server' "mcpbench limit -call $(servers 1 '')" 'toolreg --settings one.yaml call s1__tool_1'
row 'call server__tool, 1 of 10 of 200 ms' "mcpbench limit -call $(servers 1 '-delay 200ms')" 'toolreg --settings slow.yaml call s1__tool_1'
row 'list over HTTP, 50 ms a request' "mcpbench limit -url $(cat url)" 'toolreg --settings http.yaml list'
row 'list 1,000 tools, 2.4 MB of schemas' "mcpbench limit $(servers 1 '-tools 1000 -schema 2400')" 'toolreg --settings many.yaml list --json'
row 'list 10,000 tools, 12 MB of schemas' "mcpbench limit $(servers 1 '-tools 10000 -schema 1200')" 'toolreg --settings flood.yaml list --json'
row 'call, 20 MB result' "mcpbench limit -call $(servers 1 '-result 20000000')" 'toolreg --settings big.yaml call s1__tool_1'
row 'call, 64 MB result' "mcpbench limit -call $(servers 1 '-result 64000000')" 'toolreg --settings huge.yaml call s1__tool_1'
everything="node $here/../npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js stdio"
echo "mcpServers: {s1: {command: node, args: [${everything#node }], trust: true}}" | sed 's/ stdio/, stdio/' >everything.yaml
row 'everything server (Node), list' "mcpbench limit $everything" 'toolreg --settings everything.yaml list'
memory version 'toolreg version'
memory 'call, 1 server' 'toolreg --settings one.yaml call s1__tool_1'
memory '1,000 tools' 'toolreg --settings many.yaml list'
memory '10,000 tools' 'toolreg --settings flood.yaml list'
memory '20 MB result' 'toolreg --settings big.yaml call s1__tool_1'
memory '64 MB result' 'toolreg --settings huge.yaml call s1__tool_1'
