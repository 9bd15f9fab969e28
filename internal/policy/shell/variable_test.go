package shell

import (
	"regexp"
	"strings"
	"testing"
)

// The variables in tables.txt have plain names and values that can be matched, and none of them is
// one that programs run, read code from or find programs with.
func TestVariables(t *testing.T) {
	token := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(,[A-Za-z][A-Za-z0-9_]*)*(=\S+)?$`)
	for _, group := range []string{"$variables", "$local"} {
		for text := range strings.FieldsSeq(tables().lines[group]) {
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
