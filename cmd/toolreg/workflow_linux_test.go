package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestWorkflowOfTheGuide runs the steps of the workflow in docs/ci.md in a clean clone of
// a project that was set up as the page says, as far as that is possible without
// GitHub: actions and the installation are left out. In a clone with a changed tool the
// first step must fail.
func TestWorkflowOfTheGuide(t *testing.T) {
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(repo, "docs", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	p := newDocsProject(t, repo, "docs/ci.md")
	var workflow struct {
		Jobs map[string]struct {
			Env   map[string]string
			Steps []struct{ Name, Uses, Run string }
		}
	}
	for _, b := range fences(string(page)) {
		if b.file != "" {
			p.write(t, b.file, []byte(b.text))
		}
		if strings.HasPrefix(b.file, ".github/workflows/") {
			if err := yaml.Unmarshal([]byte(b.text), &workflow); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.run(t, `toolreg --trust-project lock
git init -q . && git config user.name t && git config user.email t@example.com
git add -A && git commit -qm tools
git clone -q . ../clone`, "setting up")
	hash := p.output(t, "toolreg trust status --jq .hash")
	clone := &docsProject{page: p.page, dir: filepath.Join(filepath.Dir(p.dir), "clone"), environ: append(p.environ, "HOME="+t.TempDir())}
	job, ok := workflow.Jobs["tools"]
	if !ok || len(job.Steps) == 0 {
		t.Fatal("docs/ci.md has no workflow with the job tools")
	}
	for name, value := range job.Env {
		clone.environ = append(clone.environ, name+"="+strings.ReplaceAll(value, "${{ vars.TOOLREG_TRUSTED_HASH }}", hash))
	}
	ran := 0
	for _, step := range job.Steps {
		if step.Run == "" || strings.HasPrefix(step.Run, "go install ") {
			continue
		}
		if ran == 0 {
			changed := *clone
			changed.dir = clone.dir + "-changed"
			p.run(t, "git clone -q . "+changed.dir+" && sed -i s/Prints/Sends/ "+changed.dir+"/tools.json", "changing a tool")
			if out := changed.output(t, "{ "+step.Run+"; } 2>&1 || echo exit $?"); !strings.HasSuffix(out, "exit 2") {
				t.Errorf("with a changed tool %q says %s", step.Run, out)
			}
		}
		clone.run(t, step.Run, step.Name)
		ran++
	}
	if ran < 6 {
		t.Errorf("%d steps were run", ran)
	}
	for _, name := range []string{"report.md", "audit.json"} {
		if info, err := os.Stat(filepath.Join(clone.dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("the job leaves no %s: %v", name, err)
		}
	}
}

// output returns what a script prints on stdout, without white space around it.
func (p *docsProject) output(t *testing.T, script string) string {
	t.Helper()
	cmd := p.command(t, script)
	cmd.Stdin = nil // no terminal
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSpace(string(out))
}
