#!/usr/bin/env bash
# Runs the tests of the packages in the list's reach on this system, except those that the list
# names: usage: tools/test-skipping.sh LIST. Each line of a list is a package and the name of a
# test, or * for all of its tests; lines that begin with # give the reasons.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
list=$1 status=0
while read -r package; do
	folder=${package#github.com/toolreg/toolreg}
	folder=${folder#/}
	skip=$(awk -v p="${folder:-.}" '$1 == p {print $2}' "$list" | paste -sd '|' -)
	test "$skip" != '*' || continue
	go test -vet=off -short ${skip:+-skip "^($skip)\$"} "$package" || status=1
done < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)
exit $status
