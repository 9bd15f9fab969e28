#!/bin/bash
# Measures toolreg serve beside direct calls of the same server and a gateway on the
# bare Go SDK (see serveload). Flags are passed on.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
WORK=$(mktemp -d)
export WORK
cleanup() {
	if [[ -n ${load-} ]]; then
		kill -- -"$load" 2>/dev/null || true
		while kill -0 -- -"$load" 2>/dev/null; do sleep 0.1; done # until then they write to the folder
	fi
	rm -rf "$WORK"
}
trap cleanup EXIT
for program in stub sdkgateway serveload; do
	CGO_ENABLED=0 go build -C "$here" -trimpath -ldflags "-s -w" -o "$WORK/$program" "./$program"
done
cp "${TOOLREG:-$here/../../bin/toolreg}" "$WORK/toolreg"
cd "$WORK"
mkdir .git
export PATH=$WORK:$PATH HOME=$WORK XDG_CONFIG_HOME=$WORK/c XDG_STATE_HOME=$WORK/s XDG_CACHE_HOME=$WORK/h
set -m # a group of its own, which is ended with all that it started
serveload "$@" &
load=$!
wait "$load"
