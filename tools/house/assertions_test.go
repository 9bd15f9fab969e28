package house_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"testing"
)

// negated matches assertions of scripts that a text is not in an output or a file.
var negated = regexp.MustCompile(`(?m)^(?:\[[^\]]*\] )*! (?:stdout|stderr|grep)(?: -count=\d+)? ('(?:[^']|'')*'|\S+)`)

var scriptVariable = regexp.MustCompile(`\$[A-Z]+`)

// asserted matches assertions of scripts that a text is present.
var asserted = regexp.MustCompile(`(?m)^(?:\[[^\]]*\] )*(?:stdout|stderr|grep) .*$`)

// wording matches the parts of a text that are compared. Punctuation between them is left
// out, because output formats add it.
var wording = regexp.MustCompile(`\pL[\pL\d_.:-]+(?: [\pL\d_.:-]+)*`)

// TestNegativeAssertionsCanFail checks that each text that a script says is absent is in a string
// of the code, or in an assertion of a script that it is present. A message that was changed is
// never printed, so asserting its absence tests nothing.
func TestNegativeAssertionsCanFail(t *testing.T) {
	t.Chdir(root)
	var known strings.Builder
	known.WriteString("panic goroutine fatal error\n") // of the Go runtime
	for _, folder := range []string{"cmd", "internal"} {
		if err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == "testdata" {
				return fs.SkipDir
			}
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			return addStrings(&known, path)
		}); err != nil {
			t.Fatal(err)
		}
	}
	paths, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	scripts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		scripts[path] = string(text)
		for _, line := range asserted.FindAllString(scripts[path], -1) {
			known.WriteString(strings.ReplaceAll(line, `\`, "") + "\n")
		}
	}
	everywhere := known.String()
	for path, text := range scripts {
		for _, at := range negated.FindAllStringSubmatchIndex(text, -1) {
			pattern := strings.ReplaceAll(strings.Trim(text[at[2]:at[3]], "'"), "''", "'")
			pattern = scriptVariable.ReplaceAllString(pattern, "")
			parsed, err := syntax.Parse(pattern, syntax.Perl)
			if err != nil {
				continue // the text contained variables of the script
			}
			for _, literal := range literals(parsed) {
				for _, words := range wording.FindAllString(literal, -1) {
					if !strings.Contains(everywhere, words) {
						t.Errorf("%s:%d: neither the code nor a script says where %q is printed; add an assertion that it is, or remove this one", path, 1+strings.Count(text[:at[0]], "\n"), words)
					}
				}
			}
		}
	}
}

// addStrings adds the strings of a file of the code.
func addStrings(to *strings.Builder, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile(path, -1, len(text)), text, nil, 0)
	for {
		switch _, tok, literal := s.Scan(); tok {
		case token.EOF:
			return nil
		case token.STRING:
			value, err := strconv.Unquote(literal)
			if err != nil {
				return err
			}
			to.WriteString(value + "\n")
		}
	}
}

// literals returns the literal texts that a match of an expression contains: one for each
// alternative, and the longest one of a sequence.
func literals(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			out = append(out, literals(sub)...)
		}
		return out
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if now := literals(sub); len(strings.Join(now, "")) > len(strings.Join(best, "")) {
				best = now
			}
		}
		return best
	}
	return nil
}
