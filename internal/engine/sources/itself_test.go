package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServersThatAreToolregAreRecognised(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(self, link); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		argv string // words separated by |
		want bool
	}{
		{"toolreg", true},
		{`C:\tools\Toolreg.exe|serve`, true},
		{"/opt/bin/toolreg|serve|--preset|mcp", true},
		{self + "|serve", true},
		{link + "|serve", true},
		{"env|A=1|" + link + "|serve", true},
		{"npx|-y|toolreg@1.2.3|serve", true},
		{"npx|-y|@toolreg/toolreg|serve", true},
		{"uvx|--from|toolreg==1.2|toolreg|serve", true},
		{"go|run|example.org/cmd/toolreg@latest|serve", true},
		{"sh|-c|cd /x && exec 'toolreg' --locked serve", true},
		{"timeout|9|nice|toolreg|--settings|s.yaml|serve", true},
		{"sh|-c|MODE=x /opt/toolreg serve", true},
		{"notes|--about|toolreg can serve", false},
		{"notes|--of|toolreg|serve", false},
		{"sh|-c|exec notes --about 'how toolreg can serve'", false},
		{"npx|-y|notes|--about|toolreg can serve", false},
		{"ssh|host|toolreg|serve", false},
		{"docker|run|-i|toolreg|serve", false},
		{"npx|-y|server-filesystem|/home/ann/toolreg", false},
		{"npx|serve|toolreg", false},
		{"sh|-c|toolreg list", false},
		{"mcp-toolreg-notes|serve", false},
		{"", false},
	} {
		if got := StartsToolreg(strings.Split(c.argv, "|"), "", os.Environ()); got != c.want {
			t.Errorf("%s: got %t, want %t", c.argv, got, c.want)
		}
	}
}
