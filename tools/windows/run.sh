#!/usr/bin/env bash
# Runs the tests of windows/amd64 by Wine. The arguments are packages; all by default. Tests that
# skip.txt names are not run. Logs are in bin/windows. It must run as root on Debian.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
logs=bin/windows
mkdir -p "$logs"
export GOOS=windows CGO_ENABLED=0 MCPTEST_SERVER=Z:/src/$logs/server.exe
go build -o "$logs/server.exe" ./testdata/clients/testserver
tools/windows/wine.sh
status=0
while read -r package folder; do
	skip=$(awk -v p="$package" '$1 == p {print $2}' tools/windows/skip.txt | paste -sd '|')
	if test "$skip" = '*'; then
		echo "none $package"
		continue
	fi
	go test -vet=off -c -o "$logs/test.exe" "./$folder"
	start=$SECONDS log=$logs/${package//\//-}.log result=ok
	tools/windows/wine.sh . "$folder" "/src/$logs/test.exe" -test.short ${skip:+"-test.skip=^($skip)\$"} >"$log" 2>&1 || { result=FAIL status=1; }
	echo "$result $package $((SECONDS - start))s"
done < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' "${@:-./...}" |
	sed "s|^github.com/toolreg/toolreg/||; s|^github.com/toolreg/toolreg |. |; s| $PWD/*| ./|")
exit $status
