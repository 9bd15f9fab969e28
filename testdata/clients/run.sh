#!/bin/sh
# run.sh: has clients that no one here wrote use `toolreg serve` over stdio and HTTP, and
# prints a Markdown table of what each could do: "yes", "-" where the client has no such
# feature, or "FAILED". Exit code 1 if anything failed. It needs bin/toolreg,
# bin/mcp-testserver and bin/gosdk, and the packages of this folder and of ../npm.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
repo=$(CDPATH= cd -- "$here/../.." && pwd)
node=$(ls -d "$here"/node_modules/node-*/bin 2>/dev/null | head -n 1)
PATH=$repo/bin:$node:$here/node_modules/.bin:$PATH
work=$(mktemp -d)
cd "$work" || exit 1
mkdir .git home
export HOME="$work/home" XDG_STATE_HOME="$work/home/state" XDG_CACHE_HOME="$work/home/cache" XDG_CONFIG_HOME="$work/home/config"
export MCP_INSPECTOR_SECRET_STORE=memory
unset TOOLREG_DEPTH
token=0123456789abcdef0123
(umask 077; echo "me $token" >tokens)

# serve.sh is the command of stdio clients: its log is a file that can be looked at.
cat >serve.sh <<'EOF'
exec toolreg -v --settings "$1" serve 2>>"$1.log"
EOF

# features runs the features of one client over one transport: its function gets the
# name of the feature and returns 0, or 77 if the client has no such feature.
features() {
	name=$1 transport=$2 client=$3
	settings=$client-$transport.yaml
	echo "mcpServers: {m: {command: mcp-testserver, args: [--dialogs], inheritEnv: true, trust: true}, t: {command: mcp-testserver, args: [--tasks], trust: true}}" >"$settings"
	: >"$settings.log"
	if [ "$transport" = HTTP ]; then
		toolreg -v --settings "$settings" serve --preset full --http 127.0.0.1:0 --token-file tokens 2>"$settings.log" &
		server=$!
		sh "$repo/testdata/await.sh" "$settings.log" 'listening on'
		url=$(sed -n 's/.*listening on //p' "$settings.log")
	fi
	row="| $name | $transport |"
	for feature in list call asked cancel progress changed task; do
		"$client" $feature >"$settings.$feature" 2>&1 </dev/null
		case $? in
		0) row="$row yes |" ;;
		77) row="$row - |" ;;
		*) row="$row FAILED |" status=1 ;;
		esac
	done
	[ "$transport" = stdio ] || { kill "$server"; wait "$server"; }
	echo "$row"
}

# over prints the words with which a client of sdk.mjs or gosdk connects.
over() { if [ "$transport" = stdio ]; then echo stdio sh serve.sh "$settings"; else echo http "$url" $token; fi; }

# sdk runs a feature by a driver: its arguments, with the feature in front.
sdk() {
	driver=$1 feature=$2
	shift 2
	case "$feature $1" in
	"task v1") ;; # the others do not have tasks
	task*) return 77 ;;
	esac
	[ "$feature" != changed ] || feature=changed:$settings
	# shellcheck disable=SC2086,SC2046
	timeout 100 $driver "$feature" "$@" $(over) | tee /dev/stderr | grep -q '^ok'
}
ts1() { sdk "node $repo/testdata/npm/client.mjs" "$1" v1 2025-11-25; }
ts2() { sdk "node $repo/testdata/npm/client.mjs" "$1" v2 2025-11-25; }
ts2modern() { sdk "node $repo/testdata/npm/client.mjs" "$1" v2 2026-07-28; }
go1() { sdk gosdk "$1" 2025-11-25; }
gomodern() { sdk gosdk "$1" 2026-07-28; }

# cancelled prints how many calls the audit log has that were canceled.
cancelled() { toolreg audit --jq '[.entries[] | select(.outcome == "cancelled")] | length'; }

# interrupted starts a call that lasts, ends the client, and looks for the end of the
# call in the audit log.
interrupted() {
	calls=$(grep -c 'method=tools/call' "$settings.log") before=$(cancelled)
	"$@" &
	client_pid=$!
	i=0
	until [ "$(grep -c 'method=tools/call' "$settings.log")" -gt "$calls" ]; do
		i=$((i + 1))
		[ $i -lt 1500 ] || return 1
		sleep 0.02
	done
	kill -TERM $client_pid
	wait $client_pid
	i=0
	until [ "$(cancelled)" -gt "$before" ]; do
		i=$((i + 1))
		[ $i -lt 300 ] || return 1
		sleep 0.1
	done
}

inspect() {
	if [ "$transport" = stdio ]; then
		exec timeout 60 mcp-inspector --cli sh serve.sh "$settings" "$@"
	else
		exec timeout 60 mcp-inspector --cli --server-url "$url" --transport http --header "Authorization: Bearer $token" "$@"
	fi
}
inspector() {
	case $1 in
	list) inspect --method tools/list | tee /dev/stderr | grep -q '"name": "echo"' ;;
	call) inspect --method tools/call --tool-name echo --tool-arg text=hello | tee /dev/stderr | grep -q '"text": "hello"' ;;
	asked) answered ;;
	*) return 77 ;;
	esac
}
# answered lets mcpdo, the part of the inspector that can be asked, answer a question.
answered() {
	eval "$(mcpdo private)"
	if [ "$transport" = stdio ]; then
		echo "{\"mcpServers\":{\"tr\":{\"command\":\"sh\",\"args\":[\"serve.sh\",\"$settings\"]}}}" >inspector.json
	else
		echo "{\"mcpServers\":{\"tr\":{\"type\":\"streamable-http\",\"url\":\"$url\",\"headers\":{\"Authorization\":\"Bearer $token\"}}}}" >inspector.json
	fi
	timeout 60 mcpdo --config inspector.json connect tr
	rm -f inspector.txt
	id=$(timeout 60 mcpdo --connection tr --format json tools/call write_file file_path:=inspector.txt content:=x |
		sed -n 's/.*"elicitationId": "\(.*\)".*/\1/p')
	timeout 60 mcpdo --connection tr elicitation/respond "$id" decision:=once
	timeout 30 mcpdo daemon stop
	test -e inspector.txt
}

port() {
	verb=$1
	shift
	if [ "$transport" = stdio ]; then
		exec timeout 60 mcporter "$verb" --stdio sh --stdio-arg serve.sh --stdio-arg "$settings" --name tr "$@"
	else
		exec timeout 60 mcporter "$verb" --http-url "$url" --allow-http --header "Authorization=Bearer $token" --name tr "$@"
	fi
}
mcport() {
	case $1 in
	list) port list --json | tee /dev/stderr | grep -q '"name": "echo"' ;;
	call) port call --tool echo --args '{"text":"hello"}' | tee /dev/stderr | grep -qx hello ;;
	*) return 77 ;;
	esac
}

# Over HTTP alone: toolreg does not start itself as a server.
itself() {
	echo "mcpServers: {tr: {httpUrl: \"$url\", headers: {Authorization: \"Bearer $token\"}, trust: true}}" >outer.yaml
	case $1 in
	list) toolreg --settings outer.yaml list --server tr | tee /dev/stderr | grep -q '^echo' ;;
	call) toolreg --settings outer.yaml call tr__echo text=hello | tee /dev/stderr | grep -qx hello ;;
	asked) python3 "$here/terminal.py" Created 1 y -- toolreg --settings outer.yaml call tr__write_file file_path=itself-$transport.txt content=x ;;
	cancel) interrupted toolreg --settings outer.yaml call tr__slow seconds=60 ;;
	task) toolreg --settings outer.yaml call tr__slow_compute seconds:=1 --detach >task && toolreg --settings outer.yaml tasks "$(cat task)" --wait | tee /dev/stderr | grep -qx computed ;;
	progress) python3 "$here/terminal.py" 'my step' -- toolreg --settings outer.yaml call tr__work steps=3 pause=400 message='my step' ;;
	*) return 77 ;;
	esac
}

status=0
echo "| client | transport | lists | calls | is asked | cancels | follows progress | follows list_changed | has tasks |"
echo "|---|---|---|---|---|---|---|---|---|"
for transport in stdio HTTP; do
	features "TypeScript SDK 1.32.2" $transport ts1
	features "TypeScript SDK 2.4.0, 2025-11-25" $transport ts2
	features "TypeScript SDK 2.4.0, 2026-07-28" $transport ts2modern
	features "Go SDK 1.8.0, 2025-11-25" $transport go1
	features "Go SDK 1.8.0, 2026-07-28" $transport gomodern
	features "MCP inspector 2.12.0 (command line)" $transport inspector
	features "mcporter 0.12.3" $transport mcport
done
features "toolreg" HTTP itself
test $status = 0 && rm -rf "$work" || echo "logs are in $work" >&2
exit $status
