package shell

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The variables in tables.txt have plain names and values that can be matched, and none of them is
// one that programs run, read code from or find programs with.
func TestVariables(t *testing.T) {
	token := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(,[A-Za-z][A-Za-z0-9_]*)*(=\S+)?$`)
	for _, group := range []string{"$variables", "$local"} {
		for text := range strings.FieldsSeq(tables.Get().lines[group]) {
			if !token.MatchString(text) {
				t.Errorf("%s: %s", group, text)
			}
		}
	}
	for _, name := range strings.Fields("PATH HOME IFS LD_PRELOAD BASH_ENV ENV PS4 CDPATH PYTHONPATH NODE_PATH GOFLAGS RUSTFLAGS CC MAKEFLAGS SHELL TMPDIR GIT_DIR http_proxy path histchars _") {
		if isHarmlessVariable(name, "x") || isLocalVariable(name) {
			t.Errorf("%s is harmless", name)
		}
	}
	for assignment, want := range map[string]bool{
		"NODE_ENV=test": true, "NODE_ENV=": true, "DEBUG=app:x,y": true, "DEBUG=-x": false, "DEBUG=a/b": false, "DEBUG=$(id)": false, "DEBUG=a b": false, "DEBUG=a\nb": false,
		"NODE_OPTIONS=--max-old-space-size=4096": true, "NODE_OPTIONS=--require=x": false, "NODE_OPTIONS=--max-old-space-size=1 -r x": false,
		"LC_ALL=C": true, "LANG=en_US.UTF-8": true, "LC_ALL=zh_CN.GBK": false, "PAGER=cat": true, "PAGER=id": false, "FOO=bar": true, "GOTOOLCHAIN=/x": false,
	} {
		name, value, _ := strings.Cut(assignment, "=")
		if got := isHarmlessVariable(name, value); got != want {
			t.Errorf("%q: %t", assignment, got)
		}
	}
}

// In the body of a loop over plain words, the variable is each of them.
func TestLoopsOverWords(t *testing.T) {
	for line, want := range map[string]string{
		"for f in a b/c; do pytest -x $f; done":                        "pytest -x a|pytest -x b/c",
		"for f in a; do pytest \"${f}_t.py\" x-$f; done":               "pytest a_t.py x-a",
		"for d in a b; do (cd $d && make); done; make":                 "cd a|make|cd b|make|make",
		"for f in a b; do for x in 1 2; do ls $f$x; done; done; ls $f": "ls a1|ls a2|ls b1|ls b2|?",
		"for f in ls rm; do $f x; done":                                "ls x|rm x",
		"for f in a b; do ls -f $f; done":                              "ls -f a|ls -f b",
		"for f in -a; do ls $f; done":                                  "?",
		"for f in 'a b'; do ls $f; done":                               "?",
		"for f in *; do ls $f; done":                                   "?",
		"for f in $x a; do ls $f; done":                                "?",
		"for f in ~; do ls $f; done":                                   "?",
		"for f; do ls $f; done":                                        "?",
		"for f in a; do f=-x; ls $f; done":                             "?",
		"for f in a; do read -r f; ls $f; done":                        "read -r f|?",
		"for f in a; do export f=b; ls $f; done":                       "?",
		"for f in a; do ls ${f-x}; done":                               "?", "for f in a; do ls ${f/a/b}; done": "?", "for f in a; do ls ${!f}; done": "?", "for f in a; do ls ${#f}; done": "?",
		"for x in" + strings.Repeat(" a", 20) + "; do for y in" + strings.Repeat(" b", 20) + "; do ls $x$y; done; done": strings.Repeat("ls ab|", 60) + strings.Repeat("|?", 17)[1:],
		"for f in a; do ls ${f:-x} ${f%b}; done":                                                      "?",
		"for f in a; do for f in b -c; do ls $f; done; ls $f; done":                                   "?|?",
		"x=f=-5; for f in a; do ls $((x)); ls $f; done":                                               "?|?",
		"x=f=-5; for f in a; do [[ $x -eq 1 ]]; ls $f; done":                                          "?",
		"x=f=-5; for f in a; do ls ${y:x} ${y[x]}; ls $f; done":                                       "?|?",
		"for f in a; do sh -c 'ls $f'; done":                                                          "sh -c ls $f|?",
		"for PATH in a; do ls $PATH; done":                                                            "?",
		"for f in " + strings.Repeat("a ", maxRounds) + "; do ls $f; done":                            strings.Repeat("|ls a", maxRounds)[1:],
		"for f in " + strings.Repeat("a ", maxRounds+1) + "; do ls; done; for f in a; do ls $f; done": "ls|ls a",
	} {
		var got []string
		for _, c := range Read(Bash, line, "").Commands {
			if len(c.words) == 0 {
				continue
			}
			text := joinWords(c.words)
			if slices.ContainsFunc(c.words, func(w word) bool { return !w.known }) {
				text = "?"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("%.80q: %.200q, want %.200q", line, text, want)
		}
	}
	doubt := func(c Command) bool { return strings.Contains(c.Doubt, "the variable of a loop") }
	if !slices.ContainsFunc(Read(Bash, "for file in a; do re''ad -r fi''le; ls $file; done", "").Commands, doubt) {
		t.Error("a name in quotes is not seen")
	}
}
