package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// notRun lists the lines of examples that cannot be run here, with the reason.
func notRun() map[string]string {
	const browser, endless, release, docker, network = "opens a browser", "does not end", "needs the files of a release", "needs docker", "asks a registry"
	return map[string]string{
		"docs/agent-loop.md: ANTHROPIC_API_KEY=… examples/anthropic.py 'What does go.mod say?'":                                                "TestExamples runs it",
		"docs/install.md: sha256sum --check --ignore-missing checksums.txt":                                                                    release,
		"docs/install.md: gh attestation verify toolreg_VERSION_linux_amd64.tar.gz --repo toolreg/toolreg":                                     release,
		"docs/install.md: git checkout vVERSION":                                                                                               release,
		"docs/install.md: go tool -modfile=tools/goreleaser.mod goreleaser release --clean --skip=publish":                                     release,
		"docs/install.md: diff bin/dist/checksums.txt ~/Downloads/checksums.txt":                                                               release,
		"docs/install.md: docker build -t toolreg -f Containerfile .":                                                                          docker,
		"docs/install.md: docker run --rm -v \"$PWD:/workspace:ro\" toolreg list":                                                              docker,
		"docs/login.md: toolreg servers login github":                                                                                          browser,
		"docs/login.md: toolreg servers login github --no-browser      # on a machine without a browser":                                       browser,
		"docs/login.md: toolreg servers login github --scope \"repo read:org\"":                                                                browser,
		"docs/servers.md: toolreg servers find github                                                        # what the official registry has": network,
		"docs/servers.md: toolreg servers add io.github.github/github-mcp-server                             # a server of the registry":       network,
		"docs/running.md: toolreg audit --follow":                                                                                              endless,
		"docs/serve.md: toolreg serve                              # on stdin and stdout":                                                      endless,
		"docs/serve.md: toolreg serve --http 127.0.0.1:8080        # over HTTP":                                                                endless,
		"docs/serve-http.md: toolreg serve --http 127.0.0.1:8080 --token-file tokens":                                                          endless,
		"docs/serve-running.md: toolreg serve --http 127.0.0.1:8080 --console":                                                                 endless,
	}
}

// TestDocumentedExamples runs what README.md and the pages in docs show, each page in its
// own project:
//
//   - sh: the commands must succeed. Questions are answered with yes.
//   - console: the commands after "$ " must print the lines that follow, on a terminal of
//     80 columns; "…" matches any text. Questions get the answers that are shown.
//   - yaml and jsonc must be settings without mistakes, json must be valid JSON.
//   - A block with "file=NAME" becomes that file of the project, for later blocks.
//   - text is not checked.
//
// testdata/docs has the files that pages expect, and replacements for programs that they
// mention.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	skipped := maps.Clone(notRun())
	for _, path := range pages(t, repo) {
		name, err := filepath.Rel(repo, path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		blocks := fences(string(text))
		for _, b := range blocks {
			for line := range strings.Lines(b.text) {
				delete(skipped, name+": "+strings.TrimRight(line, "\n"))
			}
		}
		if m := indentedBlock.FindString(string(text)); m != "" && strings.HasPrefix(name, "docs/") {
			t.Errorf("%s: a block needs a language, so that it is run or checked: %q", name, m)
		}
		if !strings.Contains(string(text), "```") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newDocsProject(t, repo, name)
			for _, b := range blocks {
				p.check(t, b)
			}
		})
	}
	for line := range skipped {
		t.Errorf("notRun lists a line that no page has: %s", line)
	}
}

// pages lists the pages for readers.
func pages(t *testing.T, repo string) []string {
	t.Helper()
	found := []string{filepath.Join(repo, "README.md"), filepath.Join(repo, "examples", "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		list, err := filepath.Glob(filepath.Join(repo, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, list...)
	}
	return found
}

// fence is a fenced block of a page.
type fence struct {
	lang, file, text string
	line             int
}

// indentedBlock matches code without a fence, after a paragraph.
var indentedBlock = regexp.MustCompile(`(?m)^[^ \n*\-0-9|].*\n\n {4}\S.*`)

var fenceStart = regexp.MustCompile("^( *)```([a-z]*)(?: file=(\\S+))?$")

func fences(page string) []fence {
	var found []fence
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		m := fenceStart.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		b := fence{lang: m[2], file: m[3], line: i + 1}
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
			b.text += strings.TrimPrefix(lines[i], m[1]) + "\n"
		}
		found = append(found, b)
	}
	return found
}

// docsProject is the project in which the examples of a page run.
type docsProject struct {
	page, dir string
	environ   []string
}

// newDocsProject makes the project of a page, from testdata/docs/common.txtar and
// the archive with the page's name. The comments of archives are shell scripts that
// run in it.
func newDocsProject(t *testing.T, repo, page string) *docsProject {
	t.Helper()
	root := t.TempDir()
	p := &docsProject{page: page, dir: filepath.Join(root, "project")}
	home := filepath.Join(root, "home")
	for _, dir := range []string{filepath.Join(p.dir, ".git"), home} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	p.environ = []string{
		"PATH=" + filepath.Join(root, "bin") + string(os.PathListSeparator) + os.Getenv("PATH"), "REPO=" + repo, "HOME=" + home,
		"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "EDITOR=true", "BROWSER=true", "GORACE=atexit_sleep_ms=0",
		// Nothing beyond this machine is contacted.
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9",
	}
	settings, err := goSettings()
	if err != nil {
		t.Fatal(err)
	}
	p.environ = append(p.environ, settings...)
	own := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(page, "docs/"), ".md"), "/", "-") + ".txtar"
	for _, name := range []string{"common.txtar", own} {
		archive, err := txtar.ParseFile(filepath.Join(repo, "testdata", "docs", name))
		if os.IsNotExist(err) && name == own {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			p.write(t, f.Name, f.Data)
		}
		p.run(t, string(archive.Comment), name)
	}
	return p
}

// goSettings returns settings of the go command, whose defaults may be below HOME.
var goSettings = sync.OnceValues(func() ([]string, error) {
	names := []string{"GOCACHE", "GOMODCACHE", "GOFLAGS"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	settings := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	for i, value := range settings {
		settings[i] = names[i] + "=" + value
	}
	return settings, err
})

// write creates a file of the project. Programs are in ../bin.
func (p *docsProject) write(t *testing.T, name string, data []byte) {
	t.Helper()
	path, mode := filepath.Join(p.dir, name), os.FileMode(0o666)
	if bytes.HasPrefix(data, []byte("#!")) {
		mode = 0o777
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

func (p *docsProject) check(t *testing.T, b fence) {
	t.Helper()
	where := fmt.Sprintf("%s:%d", p.page, b.line)
	switch {
	case b.file != "":
		p.write(t, b.file, []byte(b.text))
	case b.lang == "sh":
		p.run(t, p.runnable(b.text), where)
	case b.lang == "console":
		p.transcript(t, b.text, where)
	case b.lang == "yaml" || b.lang == "jsonc":
		p.settings(t, b, where)
	case b.lang == "json" && !json.Valid([]byte(b.text)):
		t.Errorf("%s: not JSON", where)
	case b.lang == "":
		t.Errorf("%s: a block without a language", where)
	}
}

// runnable returns the script without the lines that cannot be run.
func (p *docsProject) runnable(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		if _, skip := notRun()[p.page+": "+strings.TrimRight(line, "\n")]; !skip {
			b.WriteString(line)
		}
	}
	return b.String()
}

// command returns a shell that runs a script in the project, after ../profile if
// the page's archive wrote one.
func (p *docsProject) command(t *testing.T, script string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", "[ ! -f ../profile ] || . ../profile\n"+script)
	cmd.Dir, cmd.Env = p.dir, append(p.environ, "PWD="+p.dir)
	cmd.Stdin = keyboard{}
	return cmd
}

// run runs a script, which must succeed.
func (p *docsProject) run(t *testing.T, script, where string) {
	t.Helper()
	cmd := p.command(t, "trap 'echo \"failed: $BASH_COMMAND\" >&2' ERR\n"+script)
	var out bytes.Buffer
	cmd.Stdout = &out
	if shown, err := atTerminal(cmd, slices.Repeat([]string{"y\n"}, 20)); err != nil {
		t.Errorf("%s: %v\n%s%s", where, err, out.String(), shown)
	}
}

// transcript runs the commands of a terminal session and compares what they print.
func (p *docsProject) transcript(t *testing.T, session, where string) {
	t.Helper()
	for part := range strings.SplitSeq("\n"+session, "\n$ ") {
		script, want, _ := strings.Cut(part, "\n")
		if script == "" {
			continue
		}
		var answers []string
		for _, m := range answered.FindAllStringSubmatch(want, -1) {
			answers = append(answers, m[1]+"\n")
		}
		shown, _ := atTerminal(p.command(t, "set +e\n"+script), answers)
		if shown = colors.ReplaceAllString(shown, ""); !alike(want, shown) {
			t.Errorf("%s: %s prints\n%s\nwant\n%s", where, script, shown, want)
		}
	}
}

// colors matches what programs other than toolreg print despite NO_COLOR.
var colors = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// answered matches a question with its answer.
var answered = regexp.MustCompile(`(?m)\[n\]o: (.+)$`)

// alike compares a text with a pattern in which "…" matches any text, or alone on a line
// any lines.
func alike(want, got string) bool {
	pattern := regexp.QuoteMeta(strings.TrimRight(want, "\n"))
	pattern = strings.ReplaceAll("\n"+pattern+"\n", "\n…\n", "\n(?:.*\n)*?")
	pattern = strings.ReplaceAll(pattern, "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString("\n" + strings.Trim(got, "\n") + "\n")
}

// settings checks that a block is a settings file without mistakes and unknown keys.
func (p *docsProject) settings(t *testing.T, b fence, where string) {
	t.Helper()
	name := map[string]string{"yaml": "documented.yaml", "jsonc": "documented.json"}[b.lang]
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(b.text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "toolreg", "--settings", filepath.Join(dir, name), "--no-user-settings", "--no-project-settings", "settings", "show")
	cmd.Dir, cmd.Env = p.dir, p.environ
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "unknown") {
		t.Errorf("%s: %v\n%s", where, err, out)
	}
}
