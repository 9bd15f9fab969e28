//go:build unix

package browsertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "chromium" {
		os.Exit(fake())
	}
	os.Exit(m.Run())
}

// fake is a Chromium that answers every command, or as many of its first commands as the file ANSWERS has
// lines: a start takes one line from it, and ends with exit status 7 after that many answers.
func fake() int {
	answers := -1
	home := os.Getenv("HOME")
	if _, err := os.Stat(filepath.Join(home, "profile")); err == nil {
		return 9 // of an earlier start
	}
	if err := os.Mkdir(filepath.Join(home, "profile"), 0o700); err != nil {
		return 9
	}
	if text, err := os.ReadFile(os.Getenv("ANSWERS")); err == nil {
		line, rest, _ := strings.Cut(string(text), "\n")
		if _, err := fmt.Sscan(line, &answers); err == nil && os.WriteFile(os.Getenv("ANSWERS"), []byte(rest), 0o600) != nil {
			return 9
		}
	}
	commands, out := bufio.NewReader(os.NewFile(3, "commands")), os.NewFile(4, "answers")
	for ; answers != 0; answers-- {
		line, err := commands.ReadBytes(0)
		if err != nil {
			return 0
		}
		var command struct {
			ID     int
			Method string
		}
		if err := json.Unmarshal(line[:len(line)-1], &command); err != nil {
			return 8
		}
		fmt.Fprintf(out, `{"method":"Target.targetCreated"}`+"\x00"+`{"id":%d,"result":{"sessionId":"s","result":{"value":true}}}`+"\x00", command.ID)
		if command.Method == "Browser.close" {
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, "no shared memory")
	return 7
}

// install puts the fake on PATH; starts are the numbers of answers of its first starts.
func install(t *testing.T, starts ...string) (answers string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(program, filepath.Join(dir, "chromium")); err != nil {
		t.Fatal(err)
	}
	answers = filepath.Join(dir, "answers")
	if err := os.WriteFile(answers, []byte(strings.Join(starts, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv("TMPDIR", dir)
	return answers
}

// TestEndsBeforePage has browsers that end before they have opened a page: they are started again.
func TestEndsBeforePage(t *testing.T) {
	answers := install(t, "0", "1", "3", "2")
	tab := Open(t, "about:blank", 100, 100, "ANSWERS="+answers)
	if got := tab.Eval("true"); got != "true" {
		t.Errorf("got %s", got)
	}
	if rest, err := os.ReadFile(answers); err != nil || len(rest) > 0 {
		t.Errorf("left: %q, %v", rest, err)
	}
}

// TestEndsAlways has a browser that always ends: the error says how.
func TestEndsAlways(t *testing.T) {
	answers := install(t, "0", "0", "1", "2", "3", "-1")
	again := 0
	_, _, err := start("chromium", "about:blank", func(string, ...any) { again++ }, 100, 100, "ANSWERS="+answers)
	if err == nil || again != starts-1 {
		t.Fatalf("%v after %d more starts", err, again)
	}
	for _, want := range []string{"5 attempts", "Page.navigate", "exit status 7", "no shared memory"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "browser*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestEndsWithPage has a browser that ends once it has a page: that may be the page's doing.
func TestEndsWithPage(t *testing.T) {
	answers := install(t, "4", "-1")
	b, session, err := start("chromium", "about:blank", t.Logf, 100, 100, "ANSWERS="+answers)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	for range 2 {
		err := b.command(session, "Runtime.evaluate", map[string]any{}, nil)
		if err == nil || !strings.Contains(err.Error(), "Runtime.evaluate: ") || !strings.Contains(err.Error(), "exit status 7") {
			t.Errorf("got %v", err)
		}
	}
}
