package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeModule makes the working folder a module with one package.
func writeModule(t *testing.T, code, tests string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module p\n\ngo 1.26\n", "p.go": code, "p_test.go": tests} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Each change that is selected in the binary has the effect of the changed operator, and no
// other change has an effect.
func TestSelectedChanges(t *testing.T) {
	rows := []struct{ body, at, kind, want, changed string }{
		{"return a < b", "<", "CONDITIONALS_BOUNDARY", "false", "true"},
		{"return a < b", "<", "CONDITIONALS_NEGATION", "false", "true"},
		{"return a >= b", ">=", "CONDITIONALS_BOUNDARY", "true", "false"},
		{"return a == b && b == 0", "&&", "INVERT_LOGICAL", "false", "true"},
		{"return a == b && b > 0", "==", "CONDITIONALS_NEGATION", "true", "false"},
		{"return a == 0 && b == 0 || a == 3", "||", "INVERT_LOGICAL", "true", "false"},
		{"return 2 * (a + b)", "+", "ARITHMETIC_BASE", "12", "0"},
		{"return 2 * (a + b)", "*", "ARITHMETIC_BASE", "12", "0"},
		{"return int64(a) - 1", "-", "INVERT_NEGATIVES", "2", "4"},
		{"return -a", "-", "ARITHMETIC_BASE", "-3", "3"},
		{"return uint8(1) << a", "<<", "INVERT_BITWISE", "8", "0"},
		{"return a &^ 1", "&^", "INVERT_BITWISE", "2", "1"},
		{"a++; return a", "++", "INCREMENT_DECREMENT", "4", "2"},
		{"u := uint(a); u--; return u", "--", "INCREMENT_DECREMENT", "2", "4"},
		{"a += b + 1; return a", "+=", "INVERT_ASSIGNMENTS", "7", "-1"},
		{"a += b + 1; return a", "+=", "REMOVE_SELF_ASSIGNMENTS", "7", "4"},
		{"s := \"a\"; s += \"b\"; return s", "+=", "REMOVE_SELF_ASSIGNMENTS", "ab", "b"},
		{"a |= 4; return a", "|=", "INVERT_BWASSIGN", "7", "0"},
		{"n := 0; for range a { n++; if n == 1 { break } }; return n", "break", "INVERT_LOOPCTRL", "1", "3"},
		{"n := 0; for range a { if n == 0 { n = 5; continue }; n++ }; return n", "continue", "INVERT_LOOPCTRL", "7", "5"},
	}
	code, calls := "package p\n", ""
	var changes []*change
	for i, row := range rows {
		line := fmt.Sprintf("func f%d(a, b int) any { %s }", i, row.body)
		changes = append(changes, &change{Type: row.kind, Line: i + 2, Column: 1 + strings.LastIndex(line, row.at), file: "p.go", number: i + 1})
		if row.at == "==" || row.at == "*" {
			changes[i].Column = 1 + strings.Index(line, row.at)
		}
		code += line + "\n"
		calls += fmt.Sprintf("fmt.Println(f%d(3, 3))\n", i)
	}
	writeModule(t, code, "package p\nimport (\"fmt\"; \"testing\")\nfunc Test(*testing.T) {\n"+calls+"}\n")
	s, err := readSource(".")
	if err != nil {
		t.Fatal(err)
	}
	woven := s.weave(changes)
	for _, c := range changes {
		if c.alone || c.dead {
			t.Errorf("%+v cannot be selected", c)
		}
	}
	binary := filepath.Join(t.TempDir(), "tests")
	if err := s.buildTests(binary, woven); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	for chosen := range len(rows) + 1 {
		if err := selectChange(data, chosen, binary+"-chosen"); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(binary + "-chosen").Output()
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for i, row := range rows {
			if i+1 == chosen {
				fmt.Fprintln(&want, row.changed)
			} else {
				fmt.Fprintln(&want, row.want)
			}
		}
		if diff := cmp.Diff(want.String()+"PASS\n", string(out)); diff != "" {
			t.Errorf("change %d (-want +got):\n%s", chosen, diff)
		}
	}
}

// Changes that the tests miss are told from those that they notice, also if they cannot be
// selected. Changes that do not compile are left out.
func TestChangesAreTried(t *testing.T) {
	writeModule(t, `package p

const size = 4 + 4

var hello = "hello, " + "world"

func larger(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func same[T int | byte](a T) T { return a }
`, `package p

import "testing"

func Test(t *testing.T) {
	if larger(1, 2) != 2 || larger(2, 1) != 2 || size != 8 {
		t.Fail()
	}
}
`)
	changes := []*change{
		{Type: "ARITHMETIC_BASE", Line: 3, Column: 16, key: "size"}, {Type: "ARITHMETIC_BASE", Line: 5, Column: 23, key: "hello"},
		{Type: "CONDITIONALS_BOUNDARY", Line: 8, Column: 7, key: "a >= b"}, {Type: "CONDITIONALS_NEGATION", Line: 8, Column: 7, key: "a <= b"},
		{Type: "INVERT_BITWISE", Line: 14, Column: 17, key: "int & byte"},
	}
	for i, c := range changes {
		c.file, c.number = "p.go", i+1
	}
	s, err := readSource(".")
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := s.tryAll(changes, nil, ".", t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]verdict{}
	for c, v := range verdicts {
		got[c.key] = v
	}
	if diff := cmp.Diff(map[string]verdict{"size": noticed, "a >= b": missed, "a <= b": noticed}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The name of a change does not depend on its line number, and changes on the same line or
// on equal lines have different names.
func TestNamesDoNotDependOnLineNumbers(t *testing.T) {
	const code = "func f(a, b bool) bool {\n\tif a && b && a {\n\t\treturn true\n\t}\n\treturn a && b\n}\n\nvar x = 1 << 2\n"
	want := []string{
		"a.go f INVERT_LOGICAL if a && b && a {", "a.go f INVERT_LOGICAL if a && b && a { (2)",
		"a.go f INVERT_LOGICAL return a && b", "a.go - INVERT_BITWISE var x = 1 << 2",
	}
	for above, text := range map[int]string{0: "package a; ", 2: "package a\n\n"} {
		changes := []*change{
			{Type: "INVERT_BITWISE", Line: above + 8, Column: 11}, {Type: "INVERT_LOGICAL", Line: above + 2, Column: 12},
			{Type: "INVERT_LOGICAL", Line: above + 5, Column: 11}, {Type: "INVERT_LOGICAL", Line: above + 2, Column: 7},
		}
		for _, c := range changes {
			c.file = "a.go"
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "a.go", text+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		nameAll(set, file, []byte(text+code), changes)
		var got []string
		for _, c := range changes {
			got = append(got, c.key)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d lines further down (-want +got):\n%s", above, diff)
		}
	}
}

func TestReadListRequiresReasons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mutants.txt")
	for text, ok := range map[string]bool{"": true, "a\nb\n\twhy\nc\n\twhy too\n": true, "a\n\twhy\nb\n": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if may, err := readList(path); (err == nil) != ok || ok && text != "" && len(may) != 3 {
			t.Errorf("%q: %v, %v", text, may, err)
		}
	}
	if may, err := readList(path + ".none"); err != nil || len(may) > 0 {
		t.Errorf("no file: %v, %v", may, err)
	}
}
