package shell_test

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/process"
)

// TestBashAgrees runs every allowed line of testdata/shell.txt in a real bash,
// with programs that only record how they were called. Nothing may run that no
// rule allows, and no file may be created.
func TestBashAgrees(t *testing.T) {
	data, err := os.ReadFile("testdata/shell.txt")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	log := filepath.Join(bin, "log")
	for _, name := range []string{"git", "id", "rm", "ls", "cat", "npm", "env", "sudo", "make"} {
		// One write for each call, because the programs of a pipe run at the same time.
		stub := "#!/bin/bash\nprintf '%s\\n' \"$(printf '%q ' " + name + ` "$@")" >> ` + log + "\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	rules := []string{"git status", "git log", "ls", "cat", "npm run test", "env"}
	ran := 0
	for text := range strings.Lines(string(data)) {
		line, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), "allow - ")
		if !ok {
			continue
		}
		if unquoted, err := strconv.Unquote(line); err == nil {
			line = unquoted
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := process.Run(t.Context(), process.Spec{Argv: []string{"/bin/bash", "-c", line}, Dir: dir, Env: []string{"PATH=" + bin}}); err != nil {
			t.Fatal(err)
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) != 1 {
			t.Errorf("%q made files: %v, %v", line, made, err)
		}
		calls, _ := os.ReadFile(log) // does not exist if nothing ran
		for s := bufio.NewScanner(bytes.NewReader(calls)); s.Scan(); {
			ran++
			if !slices.ContainsFunc(rules, func(r string) bool { return strings.HasPrefix(s.Text()+" ", r+" ") }) {
				t.Errorf("%q ran %q", line, s.Text())
			}
		}
		_ = os.Remove(log)
	}
	if ran < 30 {
		t.Errorf("only %d programs ran, too few for a meaningful test", ran)
	}
}
