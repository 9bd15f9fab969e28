package shell

import "testing"

// The shortcut in Names for long lists of rules never changes its result.
func TestNamesShortCut(t *testing.T) {
	commands := []string{"git push", "Git push", "/usr/bin/git push", `./GIT`, "g*", "{git,rm} x", "$x push", "\"git\" push", `g\it`, "ſu", "sudo git", "a x", "/git push", "KILL 1", "kill 1", "\u212aill 1", "_x", "-x", "./*", "~/bin/git", `C:\git`, "a/"}
	rules := []string{"/git", "git", "git push", "GIT", "/usr/bin/git", "bin/git", "g*", "*", "[gr]it", "{git,rm}", "su", "ſu", "kill", "KILL", "rm", "_x", "-x", "", " git", "git;", "a/", "/", ".", "git.exe"}
	for _, line := range commands {
		read := Read(Bash, line, "")
		for i := range read.Commands {
			c := &read.Commands[i]
			for _, rule := range rules {
				if got, want := c.Names(rule), c.names(rule); got != want {
					t.Errorf("%q for %q: %v, want %v", rule, c.Text, got, want)
				}
			}
		}
	}
}
