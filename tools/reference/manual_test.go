package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// writtenManual writes the man pages to a folder and returns their files.
func writtenManual(t *testing.T) []string {
	t.Helper()
	t.Chdir(filepath.Join("..", ".."))
	dir := t.TempDir()
	if err := writeManual(dir, footer{"1.2.3", "2026-11-22"}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "man*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// rendered returns a page as man shows it on a terminal of 80 columns.
func rendered(t *testing.T, file string) string {
	t.Helper()
	if _, err := exec.LookPath("mandoc"); err != nil {
		t.Skip("mandoc is not installed")
	}
	out, err := exec.CommandContext(t.Context(), "mandoc", "-T", "utf8", "-O", "width=78", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(".\b").ReplaceAllString(string(out), "") // bold is a letter printed twice
}

func TestManualOfCall(t *testing.T) {
	files := writtenManual(t)
	at := slices.IndexFunc(files, func(f string) bool { return filepath.Base(f) == "toolreg-call.1" })
	if at < 0 {
		t.Fatalf("toolreg-call.1 is not among %q", files)
	}
	text := rendered(t, files[at])
	for _, want := range []string{
		"       toolreg-call - run one tool\n",
		"       toolreg call TOOL [k=v…] [flags]\n",
		// Paragraphs are refilled; tables keep their columns.
		"       Run a tool and print its result: formatted on a terminal, as a model\n",
		"       --params JSON       the object itself\n",
		"                           --params-file\n",
		"       -f, --format format       answer the calls in a model's response on\n                                 stdin, in this format\n",
		"run N calls at once (default 1)\n",
		"       Exit codes: 0, 2, 3 (no such tool), 4 (invalid params),",
		"           toolreg call read_file < params.json\n",
		"       toolreg(1), toolreg-params(7)\n",
		"toolreg 1.2.3 ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// described matches a page with a description.
var described = regexp.MustCompile(`(?m)^DESCRIPTION$\n {7}\S`)

// Every command in the help has a page, and so do the topics, the settings and the policy.
// mandoc reports no problems in them, and only literal lines are wider than the terminal.
func TestManual(t *testing.T) {
	var names []string
	for _, file := range writtenManual(t) {
		names = append(names, filepath.Base(file))
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`[^\x00-\x7f]|\\\\fB`).Find(source); m != nil {
			t.Errorf("%s has %q", file, m)
		}
		text := rendered(t, file)
		if !described.MatchString(text) {
			t.Errorf("%s has no description:\n%s", file, text)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > 80 && !strings.HasPrefix(line, "           ") {
				t.Errorf("%s: too wide: %s", filepath.Base(file), line)
			}
		}
		out, err := exec.CommandContext(t.Context(), "mandoc", "-T", "lint", "-W", "warning", file).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%v\n%s", err, out)
		}
	}
	for _, want := range []string{"toolreg.1", "toolreg-servers-add-json.1", "toolreg-settings.1", "toolreg-settings.5", "toolreg-policy.7", "toolreg-exit-codes.7", "toolreg-params.7", "toolreg-flags.7"} {
		if !slices.Contains(names, want) {
			t.Errorf("no page %s, only %q", want, names)
		}
	}
	for _, hidden := range []string{"toolreg-help.1", "toolreg-keep-background.1", "toolreg-evaluate-expression.1", "toolreg-execute-script.1"} {
		if slices.Contains(names, hidden) {
			t.Errorf("the hidden command has a page %s", hidden)
		}
	}
}
