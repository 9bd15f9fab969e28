package shell

import (
	"slices"
	"testing"
)

// No rule on commands allows a part that does more than run them. A similar part that only
// reads or tests is no doubt.
func TestPartsThatDoMoreThanRunCommands(t *testing.T) {
	for harmless, doubtful := range map[string][]string{
		"echo $((x-1))":        {"echo $((x--))", "echo $((--x))", "echo $((x++))", "echo $((x=1))", "echo $((x+=1))", "echo $((x|=1))"},
		"echo $((x==1, x!=1))": {"((x=1))", "let x=1", "for ((x=1;x<2;)); do echo; done"},
		"echo $((x<=1, x>=1))": {"declare x", "export x=1 PATH=y", "export x=/y", "export x", "readonly x", "local x=1", "typeset x"},
		"echo ${x:-a} ${x-a}":  {"echo ${x:=a}", "echo ${x=a}", "echo ${!x}", "echo ${x@P}", "echo ${x@Q}"},
		"[[ a == b ]]":         {"[[ a -eq b ]]", "[[ a -ne b ]]", "[[ a -lt b ]]", "[[ a -le b ]]", "[[ a -gt b ]]", "[[ a -ge b ]]"},
		"[[ -f x && -n y ]]":   {"[[ -v x ]]", "[[ -R x ]]"},
		"cat <a":               {"cat <$x", "cat </dev/tcp/h/1", "cat </dev/udp/h/1", "cat <>a"},
		"cat </dev/null":       {"echo >a", "echo >>a", "echo >$x", "echo &>a", "echo >|a"},
		"echo >/dev/null":      {"echo {fd}>/dev/null", "echo >&a"},
		"echo 2>/dev/stderr":   {"PATH=1", "IFS=,", "PATH=1 echo", "x=/y echo", "x=\"$y\" echo", "CI+=1 echo", "NODE_OPTIONS=-rx echo", "a[1]=2", "a=([1]=)", "a=()"},
		"echo >/dev/stdout":    {"coproc cat", "f() { echo; }", "function f { echo; }"},
		"echo 2>&1 >&2 3>&-":   {"for PATH in a; do echo; done", "select IFS in a; do echo; done"},
		"echo 3>&2- <&0":       {"for PATH; do echo; done"},
		"while false; do echo; done; if true; then echo; fi":       {"unset x", "read PATH", "read 'x[1]'", "read -a x", "trap '' INT"},
		"echo {a,b} & { echo; }; (echo); ! echo":                   {"echo @(a)", ". ./x", "eval echo"},
		"printf -- a; wait; test a = -vx":                          {"printf -vx a", "wait -px", "test -v x", "test -R x"},
		`test -f "$x"; [ -f "$x" ]`:                                {"test -f $x", "[ -f $x ]", `test "$x" = a`},
		"time echo; x=1; export x=1; x=$(id)":                      {"env -i ls", "env PATH=x ls", "timeout $x ls", "timeout 5 -- ls", "xargs --process-slot-var=x ls", "./timeout 5 ls", "nohup $x", "/usr/bin/time -o f ls"},
		"timeout -k 1 5 ls; CI=1 xargs -0 wc -l; watch -n 1 ls -l": {"watch 'ls;id'", "watch ls '>f'", "watch ls ''", "watch -x ls", "watch $x", "setsid ls", "exec ls", "find . -execdir ls {} +", "find . -exec ls + {} +", "find $x -exec ls {} +", "find . -exec ls {} + -ok rm {} +"},
		"set -euo pipefail; while read -r x; do echo; done":        {"set -T"},
		"case a in b) echo;; esac":                                 {"alias a=b", "set -f", "set -eo history", "set -o", "set", "set -e x", "shopt -s nullglob"},
	} {
		doubt := func(c Command) bool { return c.Doubt != "" }
		if c := Read(Bash, harmless, "").Commands; slices.ContainsFunc(c, doubt) {
			t.Errorf("%q: %+v", harmless, c)
		}
		for _, line := range doubtful {
			if !slices.ContainsFunc(Read(Bash, line, "").Commands, doubt) {
				t.Errorf("%q is no doubt", line)
			}
		}
	}
}

// Each part has its text as written, which a person is shown.
func TestTextOfParts(t *testing.T) {
	var got []string
	for _, c := range Read(Bash, "ls  -l 'a b'; x=1\necho a >b | cat", "").Commands {
		got = append(got, c.Text)
	}
	if want := []string{"ls  -l 'a b'", "x=1", "echo a", ">b", "cat"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = nil
	for _, c := range Read(Bash, "cross-env BASH_ENV=f ls", "").Commands {
		got = append(got, c.Text)
	}
	if want := []string{"cross-env BASH_ENV=f ls", "f", "BASH_ENV=f", "cross-env BASH_ENV=f ls"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Quoted text is code where the line evaluates the values of variables, and only there.
func TestQuotedTextThatIsEvaluated(t *testing.T) {
	for line, want := range map[string]Certainty{
		"x='$(rm y)'; echo $x":                  No,
		"x='$(rm y)'; echo ${x:-a} ${#x}":       No,
		"x='$(rm y)'; [[ $x == a ]]":            No,
		"x='$(rm y)'; echo ${!x}":               Yes,
		"x='$(rm y)'; echo ${a[$x]}":            Yes,
		"x='$(rm y)'; echo ${a:$x}":             Yes,
		"x='$(rm y)'; echo $((x))":              Yes,
		"x='$(rm y)'; ((x))":                    Yes,
		"x='$(rm y)'; let x":                    Yes,
		"x='$(rm y)'; for ((;x;)); do ls; done": Yes,
		"x='$(rm y)'; declare -i z=x":           Yes,
		"x='$(rm y)'; [[ x -eq 1 ]]":            Yes,
		"x='$(rm y)'; [[ -v x ]]":               Yes,
		"x='$(rm y)'; echo ${x@P}":              Yes,
		"x='$(rm y)'; a[1]=2":                   Yes,
		"x='$(rm y)'; read z":                   Yes,
		"x='$(rm y)'; trap '' INT":              No,
		"x='`rm y`'; ((x))":                     Yes,
		"x='${z:-$(rm y)}'; ((x))":              Yes,
		"x='rm y'; ((x))":                       No,
		"x='$'; z='(rm y)'; ((x))":              No,
		"x='<(rm y)'; ((x))":                    Maybe,
		"x='>(rm y)'; ((x))":                    Maybe,
		"x='<(rm y)'; echo":                     No,
		"echo ${x@P}":                           Maybe,
		"echo ${x@Q}":                           No,
		"[[ a[$x] -eq 1 ]]":                     Maybe,
		"[[ 1 -eq 2 ]]":                         No,
		"[[ $x == a ]]":                         No,
	} {
		got := No
		for _, c := range Read(Bash, line, "").Commands {
			got = max(got, c.Names("rm"))
		}
		if got != want {
			t.Errorf("%q runs rm: %d, want %d", line, got, want)
		}
	}
}
