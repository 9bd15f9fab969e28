#!/bin/sh
# covered.sh runs a test for go test -exec, in short. If that writes a coverage profile, it then
# says that everything is covered: gremlins leaves out what is not, and neither the
# conditions of cases nor constants ever stand in a profile. The tests that run thousands of
# lines in real shells are left out: they take longer than all others together.
"$@" -test.short -test.skip='^(TestShellsAgree|TestOptionsAreHarmless)$' || exit
for arg; do
	case $arg in
	-test.coverprofile=*) sed -i -E 's/:[0-9.,]+ [0-9]+ [0-9]+$/:1.1,999999.1 1 1/' "${arg#*=}" ;;
	esac
done
