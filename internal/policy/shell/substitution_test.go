package shell_test

import (
	"testing"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// What a substitution prints may be an option of the program, unless it can print only commits
// or the text of a here-document that begins like an operand.
func TestSubstitutionsThatPrintNoOption(t *testing.T) {
	for line, want := range map[string]policy.Decision{
		`git show "$(git rev-parse HEAD)"`:                     policy.Allow,
		`git show $(git rev-parse HEAD)`:                       policy.Allow,
		`git show "$(git rev-parse --short --verify HEAD~2^)"`: policy.Allow,
		`git show "$(git merge-base main HEAD)"`:               policy.Allow,
		`git show "$(git rev-parse HEAD)..HEAD"`:               policy.Allow,
		`git show "$(git rev-parse HEAD)-p"`:                   policy.Ask, // -p if there is no HEAD
		`git show "$(git log HEAD)"`:                           policy.Ask,
		`git show "$(echo rev-parse HEAD)"`:                    policy.Ask,
		`git show "$(git rev-parse HEAD; echo -p)"`:            policy.Ask,
		`git show "$(git rev-parse)"`:                          policy.Ask,
		`git show "$(git rev-parse --git-dir HEAD)"`:           policy.Ask,
		`git show "$(git rev-parse HEAD --sq)"`:                policy.Ask,
		`git show "$(git rev-parse HEAD^!)"`:                   policy.Ask, // its parents, as ^COMMIT
		`git show "$(git rev-parse HEAD "$x")"`:                policy.Ask,
		`git show "$( (git rev-parse HEAD) )"`:                 policy.Ask,

		"git commit -m \"$(cat <<'E'\nfix\nE\n)\"":                policy.Allow,
		"git commit -m \"$(cat <<E\nadd\nE\n)\"":                  policy.Allow,
		"git commit -m \"$(cat <<'E'\n-F f\nE\n)\"":               policy.Ask,
		"git commit -m \"$(cat <<'E'\n## Fix\nE\n)\"":             policy.Allow,
		"git commit -m \"$(cat <<'E'\n\\-F f\nE\n)\"":             policy.Ask,
		"git commit -m \"$(cat <<E\n$x\nE\n)\"":                   policy.Ask,
		"git commit -m \"$(cat <<'E'\n$x\nE\n)\"":                 policy.Ask,
		"git commit -m \"$(cat <<'E'\n~x\nE\n)\"":                 policy.Ask,
		"git commit -m \"$(cat <<'E'\nE\n)\"":                     policy.Ask,
		"git commit -m \"$(cat <<'A' <<'B'\nfix\nA\n-F f\nB\n)\"": policy.Ask, // prints the second one
		"git commit -m \"$(cat <<'E'; echo x\nfix\nE\n)\"":        policy.Ask,
		"git commit -m \"$(cat f <<'E'\nfix\nE\n)\"":              policy.Ask,
		"git commit -m \"$(sort <<'E'\nfix\n-F f\nE\n)\"":         policy.Ask,
		"git commit -m \"$( (cat) <<'E'\nfix\nE\n)\"":             policy.Ask,
		`git commit -m "$(cat f)"`:                                policy.Ask,
		`git commit -m "$(cat <f)"`:                               policy.Ask,
		`git commit -m "$(cat <<< -F)"`:                           policy.Ask,
	} {
		p := &policy.Policy{Rules: entries(t, policy.Allow, "run_shell_command(git)", "run_shell_command(cat)", "run_shell_command(sort)", "run_shell_command(echo)")}
		if v := p.Decide(t.Context(), shellTool(line), registry.Call{}); v.Decision != want {
			t.Errorf("%q: %s (%s), want %s", line, v.Decision, v.Reason, want)
		}
	}
}
