package shell_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// developerPrograms are the programs in testdata/developer.txt that have a rule.
// No rule can cover builtins that change the shell.
const developerPrograms = `git gh go gofmt golangci-lint staticcheck goimports npm npx yarn pnpm node tsc bun deno make cmake ctest ninja cargo rustc
	gcc g++ clang-format mvn ./gradlew gradle bazel dotnet python3 python pip pytest ruff black mypy uv poetry tox bundle ruby php composer
	docker docker-compose podman kubectl helm terraform aws gcloud ansible-playbook ls cd pwd cat head tail sed wc find fd tree du df file stat
	which type printenv echo printf date uname whoami id hostname nproc free ps lsof ss netstat kill sleep true test [ basename dirname realpath
	readlink diff cmp md5sum sha256sum mkdir touch cp mv chmod ln grep rg ag awk cut sort uniq tr column paste comm join tac rev nl xxd hexdump
	od base64 strings jq curl yq xmllint sqlite3 psql tar unzip gzip zcat ping dig nc ssh rsync tee seq bc xargs env command export set source
	timeout time nohup watch read jobs`

func developerPolicy(t testing.TB) *policy.Policy {
	p := &policy.Policy{Banned: banned(), Workspace: filepath.ToSlash(repository(t))}
	for program := range strings.FieldsSeq(developerPrograms) {
		p.Rules = append(p.Rules, entries(t, policy.Allow, "run_shell_command("+program+")")...)
	}
	p.Rules = append(p.Rules, entries(t, policy.Allow, "run_shell_command(git push)")...) // git alone does not cover it
	return p
}

// repository returns a folder with the folders of the lines in testdata/developer.txt that git tracks.
func repository(t testing.TB) string {
	root := t.TempDir()
	for _, dir := range []string{"docs", "sub", "web"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "Makefile"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, argv := range [][]string{{"init", "-q"}, {"add", "."}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, argv...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", argv, err, out)
		}
	}
	return root
}

// developerLines returns the lines of a file in testdata. A line in double quotes is a
// Go string.
func developerLines(t testing.TB, name string) []string {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		if unquoted, err := strconv.Unquote(line); err == nil {
			line = unquoted
		}
		out = append(out, line)
	}
	return out
}

// TestDeveloperLines counts the ordinary lines that run unasked: those whose
// programs have a rule, and those that a rule runs in the sandbox. It logs the
// others.
func TestDeveloperLines(t *testing.T) {
	confined := &policy.Policy{
		Banned: banned(),
		Rules:  []policy.Rule{{Tool: "run_shell_command", Decision: policy.Sandbox, Origin: "settings.yaml:1"}},
		Means:  func(string) policy.Means { return policy.Means{Missing: func() string { return "" }} },
	}
	for _, tt := range []struct {
		name    string
		policy  *policy.Policy
		percent int
	}{
		{"a rule for each program", developerPolicy(t), 93},
		{"in the sandbox", confined, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := developerLines(t, "testdata/developer.txt")
			unasked := 0
			for _, line := range lines {
				tool := shellTool(line)
				tool.Program = "shell"
				v := tt.policy.Decide(t.Context(), tool, registry.Call{})
				if v.Decision == policy.Allow || v.Decision == policy.Sandbox || strings.HasPrefix(line, "sudo ") { // shell.banned denies sudo
					unasked++
				} else {
					t.Logf("%s: %q: %s", v.Decision, line, v.Reason)
				}
			}
			t.Logf("%d of %d run unasked", unasked, len(lines))
			if unasked*100 < len(lines)*tt.percent {
				t.Errorf("%d of %d lines run unasked, less than %d%%", unasked, len(lines), tt.percent)
			}
		})
	}
}
