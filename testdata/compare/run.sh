#!/usr/bin/env bash
# run.sh: what toolreg, mcporter and a program on the Go SDK do with a published MCP server.
# Prints a Markdown table. It needs bin/toolreg, bin/sdkclient, and the packages of ../npm and
# ../clients.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
repo=$(CDPATH= cd -- "$here/../.." && pwd)
PATH=$repo/bin:$(ls -d "$repo"/testdata/clients/node_modules/node-*/bin | head -n 1):$repo/testdata/clients/node_modules/.bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/files" "$work/home"
cd "$work" || exit 1
export HOME=$work/home XDG_CONFIG_HOME=$work/home/config XDG_STATE_HOME=$work/home/state XDG_CACHE_HOME=$work/home/cache
unset TOOLREG_DEPTH

# server is a published server; what it is sent is kept in the file "sent".
cat >server <<EOF
#!/bin/sh
tee -a "$work/sent" | node "$repo/testdata/npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js" "$work/files"
EOF
echo 'exit 1' >broken
chmod +x server broken
echo plums >files/notes.txt
echo '{"mcpServers": {"broken": {"command": "sh", "args": ["broken"]}, "files": {"command": "'"$work/server"'"}}}' >servers.json

# NAME_list lists tools; NAME_call TOOL JSON makes a call that somebody has allowed, where the
# program asks for that; NAME_unasked makes one that nobody has allowed.
toolreg_list() { toolreg --settings servers.json list; }
toolreg_call() { toolreg_unasked "$@" --yes; }
toolreg_unasked() { toolreg --settings servers.json --non-interactive call "files__$1" --params "$2" "${@:3}"; }
mcporter_list() { mcporter --config servers.json list files; }
mcporter_call() { mcporter --config servers.json call "files.$1" --args "$2"; }
mcporter_unasked() { mcporter_call "$@"; }
sdk_list() { sdkclient list ./server; }
sdk_call() { sdkclient tool "$1" "$2" ./server; }
sdk_unasked() { sdk_call "$@"; }

yes_no() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }

# facts prints one line for each fact: what it is, a tab, and what the program did.
facts() {
	name=$1
	fact() { printf '%s\t%s\n' "$1" "$2"; }
	"${name}_list" >listed 2>/dev/null
	fact "lists the tools of a server from a fresh home" "$(yes_no grep read_text_file listed)"
	"${name}_call" read_text_file "{\"path\": \"$work/files/notes.txt\"}" >called 2>/dev/null
	fact "calls one of them" "$(yes_no grep plums called)"
	fact "leaves processes of the server behind" "$(yes_no pgrep -f "server-filesystem/dist/index.js $work")"
	: >sent
	"${name}_call" read_text_file '{"pth": "notes.txt"}' >/dev/null 2>&1
	fact "exit code for params that do not match the schema" $?
	fact "sends such params to the server" "$(yes_no grep '"tools/call"' sent)"
	"${name}_call" read_text_file "{\"path\": \"$work/files/nothing.txt\"}" >/dev/null 2>&1
	fact "exit code of a call that failed in the tool" $?
	rm -f files/new.txt
	"${name}_unasked" write_file "{\"path\": \"$work/files/new.txt\", \"content\": \"x\"}" >/dev/null 2>&1
	fact "writes a file that nobody has allowed" "$(yes_no test -f files/new.txt)"
}

programs="toolreg mcporter sdk"
for program in $programs; do facts "$program" >"$program.facts"; done
echo "| | toolreg $(toolreg version --jq .version | tr -d '"') | mcporter $(mcporter --version) | Go SDK $(cd "$repo" && go list -m -f '{{.Version}}' github.com/modelcontextprotocol/go-sdk) |"
echo "|---|---|---|---|"
paste toolreg.facts mcporter.facts sdk.facts | awk -F '\t' '{printf "| %s | %s | %s | %s |\n", $1, $2, $4, $6}'
