#!/bin/bash
# Compares toolreg as a client of MCP servers with the limit, a client that starts
# the same servers, makes one request and prints the answer unread, and with a
# client on the bare Go SDK. Each row is one hyperfine run of the three. Needs
# hyperfine and jq; RUNS sets the runs of each command, ROWS the rows by a pattern.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
npm=$(cd "$here/../npm" && pwd)/node_modules/@modelcontextprotocol
work=$(mktemp -d)
web=()
trap 'kill ${web[@]:-} 2>/dev/null || true; rm -rf "$work"' EXIT
for program in limit stub webstub sdkclient peak; do
	CGO_ENABLED=0 go build -C "$here" -trimpath -ldflags "-s -w" -o "$work/$program" "./$program"
done
cp "${TOOLREG:-$here/../../bin/toolreg}" "$work/toolreg"
cd "$work"
mkdir .git
export PATH=$work:$PATH HOME=$work XDG_CONFIG_HOME=$work/c XDG_STATE_HOME=$work/s XDG_CACHE_HOME=$work/h

row() { # NAME LIMIT SDK TOOLREG
	[[ $1 =~ ${ROWS:-.} ]] || return 0
	# A server that limit has killed still takes some of what comes next.
	hyperfine -N --ignore-failure --warmup 1 --runs "${RUNS:-11}" --export-json out.json "$2" "$3" "$4" >/dev/null 2>log || { cat log >&2; return 1; }
	if jq -e '.results[2].exit_codes | any(. != 0)' out.json >/dev/null; then
		echo "$4 fails" >&2
		return 1
	fi
	jq -r --arg name "$1" '[.results[].median * 1000] as $t | "| \($name) | \($t[0] * 10 | round / 10) | \($t[1] / $t[0] * 10 | round / 10)× | \($t[2] * 10 | round / 10) | \($t[2] / $t[0] * 100 | round / 100)× |"' out.json
}
# stdio NAME COUNT VERB TOOLREG-ARGS SERVER…: so many servers of that command line.
stdio() {
	local name=$1 count=$2 verb=$3 args=$4 line="${*:5}" all i file
	all=$line
	for ((i = 2; i <= count; i++)); do all="$all -- $line"; done
	file=$(tr -c 'a-z0-9\n' _ <<<"$name").json
	jq -cn --argjson n "$count" '{mcpServers: ([range($n) | {key: "s\(. + 1)", value: {command: $ARGS.positional[0], args: $ARGS.positional[1:], trust: true}}] | from_entries)}' --args -- "${@:5}" >"$file"
	row "$name" "limit $verb $all" "sdkclient $verb $all" "toolreg --settings $file $args"
}
http() { # NAME VERB TOOLREG-ARGS [FLAGS]
	webstub -http 127.0.0.1:0 ${4:-} >url &
	web+=($!)
	until grep -q . url; do sleep 0.01; done
	echo "mcpServers: {s1: {httpUrl: \"$(cat url)\", trust: true}}" >http.yaml
	row "$1" "limit $2 -url $(cat url)" "sdkclient $2 -url $(cat url)" "toolreg --settings http.yaml $3"
	rm url
}
memory() { # NAME TOOLREG-ARGS SERVER…
	[[ "memory: $1" =~ ${ROWS:-.} ]] || return 0
	jq -cn '{mcpServers: {s1: {command: $ARGS.positional[0], args: $ARGS.positional[1:], trust: true}}}' --args -- "${@:3}" >m.json
	echo "| memory: $1 | | | $(peak toolreg --settings m.json $2) MiB | |"
}

echo '| work | limit, ms | Go SDK | toolreg, ms | |'
echo '|---|---:|---:|---:|---:|'
row 'version' 'limit version' 'sdkclient version' 'toolreg version'
stdio 'list 1 server, 10 tools' 1 list 'list --json' stub
stdio 'list a server that ignores unknown requests, second time' 1 list 'list --json' stub -ignore
stdio 'list 10 instant servers' 10 list 'list --json' stub
stdio 'list 10 servers of 200 ms' 10 list 'list --json' stub -delay 200ms
stdio 'call, 1 server' 1 call 'call s1__tool_1' stub
stdio 'call server__tool, 1 of 10 of 200 ms' 10 call 'call s1__tool_1' stub -delay 200ms
http 'list over HTTP' list 'list --json'
http 'call over HTTP' call 'call s1__tool_1'
http 'list over HTTP, 50 ms a request' list 'list --json' '-delay 50ms'
http 'call over HTTP, 50 ms a request' call 'call s1__tool_1' '-delay 50ms'
stdio 'list 1,000 tools, 2.4 MB of schemas' 1 list 'list --json' stub -tools 1000 -schema 2400
stdio 'call, 8 MB result' 1 call 'call --raw s1__tool_1' stub -result 8000000
stdio 'call, 20 MB result' 1 call 'call --raw s1__tool_1' stub -result 20000000
stdio 'everything server (Node), list' 1 list 'list --json' node "$npm/server-everything/dist/index.js" stdio
stdio 'filesystem server (Node), list' 1 list 'list --json' node "$npm/server-filesystem/dist/index.js" "$work"
memory version version stub
memory 'call, 1 server' 'call s1__tool_1' stub
memory 'list 1,000 tools' 'list --json' stub -tools 1000 -schema 2400
memory 'call, 20 MB result' 'call --raw s1__tool_1' stub -result 20000000
