#!/bin/sh
# Runs the main job on this sample project. Needs toolreg in $TOOLREG (default
# the repository's bin/toolreg) and Go, which builds the project's MCP server.
set -eu
cd "$(dirname "$0")"
toolreg=${TOOLREG:-$PWD/../../bin/toolreg}
go build -o bin/units ./units

# The output must not depend on the user's settings, answers and caches.
for name in $(env | sed -n 's/^\(TOOLREG_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$name"; done
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
export XDG_CONFIG_HOME="$home/config" XDG_STATE_HOME="$home/state" XDG_CACHE_HOME="$home/cache"

show() {
	printf '\n$ toolreg'
	printf ' %s' "$@"
	printf '\n'
	"$toolreg" --trust-project "$@"
}

show list
show call read_file file_path=notes.md limit=1
show call word_count file=notes.md
echo '{"value": 26.2, "from": "mi", "to": "km"}' >bin/params.json
printf '\n$ toolreg call convert < params.json\n'
"$toolreg" --trust-project call convert <bin/params.json
show discover
show servers
show schema word_count convert --format gemini
