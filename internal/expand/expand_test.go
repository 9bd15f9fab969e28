package expand

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	lookup := NewEnviron([]string{"A=1", "EMPTY=", "B_2=two", "DOLLAR=$A", "CMD=cmd:id", "ProgramFiles(x86)=C:"}).Lookup
	tests := []struct{ in, want, fails string }{
		{"", "", ""},
		{"plain", "plain", ""},
		{"$A", "1", ""},
		{"<$A>${B_2}.$A", "<1>two.1", ""},
		{"$B_2x", "", "$B_2x is not set; set it, or write ${B_2x:-default}"},
		{"$EMPTY|", "|", ""},
		{"${EMPTY:-d}", "d", ""},
		{"${NONE:-}", "", ""},
		{"${NONE:-a b}", "a b", ""},
		{"${NONE:-${A}}", "1", ""},
		{"${NONE:-${NO:-${A}$B_2}}!", "1two!", ""},
		{"${A:-$NONE}", "1", ""},
		{"${NONE:-$NO}", "", "$NO is not set"},
		{"$$A $$ $", "$A $ $", ""},
		{"pa$$word", "pa$word", ""},
		{"${NONE:-a$$b}", "a$b", ""},
		{"${NONE:-$${A}", "${A", ""}, // an escaped dollar sign does not open a brace
		{"$5 $! $-", "$5 $! $-", ""},
		{"$DOLLAR", "$A", ""}, // the value of a variable is not expanded again
		{"$CMD", "cmd:id", ""},
		{"${ProgramFiles(x86)}\\x", "C:\\x", ""},
		{"${A", "", "${ without a closing }"},
		{"${}", "", ""},
		{"${}file:/x ${}$A", "file:/x 1", ""}, // so that text does not look like a reference
		{"${A:=x}", "", "${A:=x}: not the name of a variable"},
		{"${\x1b[2J}", "", `${\x1b[2J}: not the name`},
		{"$Ä", "$Ä", ""},
		{`C:\dir\$A`, `C:\dir\1`, ""},
		{strings.Repeat("${N:-", 100) + strings.Repeat("}", 100), "", "deeper than 16 levels"},
	}
	for _, test := range tests {
		t.Run(test.in, func(t *testing.T) {
			got, err := Text(test.in, lookup)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%q, error %v, want %q", got, err, test.fails)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestNilLookup(t *testing.T) {
	var unset *UnsetError
	if _, err := Text("$A", nil); !errors.As(err, &unset) || unset.Name != "A" {
		t.Errorf("error %v, want that A is not set", err)
	}
}

func TestVariable(t *testing.T) {
	for s, want := range map[string]bool{"$A": true, "${A_1}": true, "${ProgramFiles(x86)}": true,
		"A": false, "$": false, "${}": false, "${A:-x}": false, "$A/b": false, "$1": false, "x$A": false,
		"$ProgramFiles(x86)": true, "$A$B": false, "${A": false, "$A-b": false} {
		if got := IsVariable(s); got != want {
			t.Errorf("IsVariable(%q) = %v", s, got)
		}
	}
}

func TestHome(t *testing.T) {
	for path, want := range map[string]string{"~/a/b": "/h/a/b", "~": "/h", "~bob/x": "~bob/x", "/a/~/b": "/a/~/b", "a": "a"} {
		if got := Home(path, "/h"); got != want {
			t.Errorf("Home(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestLastEntryOfNameWins(t *testing.T) {
	e := NewEnviron([]string{"A=1", "broken", "", "A=2=3", "E="})
	if got := e.Get("A"); got != "2=3" || len(e) != 2 {
		t.Errorf("A = %q of %v", got, e)
	}
	if _, ok := e.Lookup("E"); !ok {
		t.Error("an empty variable is reported as not set")
	}
	if _, ok := e.Lookup("broken"); ok {
		t.Error("an entry without = is reported as set")
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"$A", "${A:-${B:-$C}}", "$$", "${", "a$b}c{", "${A:-}}", "$A$$A", "${B:-$${A}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		lookup := NewEnviron([]string{"A=1"}).Lookup
		got, err := Text(s, lookup)
		if err == nil && !strings.Contains(s, "$") && got != s {
			t.Errorf("%q became %q", s, got)
		}
		if err != nil && got != "" {
			t.Errorf("%q: a value in addition to an error: %q", s, got)
		}
		if escaped, err := Text(Escape(s), lookup); err != nil || escaped != s {
			t.Errorf("%q escaped became %q, %v", s, escaped, err)
		}
		names := Names(s)
		for _, value := range []string{"", "v", "unset"} {
			_, _ = Text(s, func(name string) (string, bool) { // only the names that it looks up matter
				if !slices.Contains(names, name) {
					t.Errorf("%q reads %s, names are %q", s, name, names)
				}
				return value, value != "unset"
			})
		}
	})
}

func TestFind(t *testing.T) {
	entries := []string{"A=1", "B=", "A=2", "AB=3"}
	for name, want := range map[string]string{"A": "2", "B": "", "AB": "3"} {
		if got, ok := Find(entries, name); got != want || !ok {
			t.Errorf("Find(%q) = %q, %v", name, got, ok)
		}
	}
	if _, ok := Find(entries, "C"); ok {
		t.Error("C is reported as set")
	}
}
