package shell

import (
	"slices"
	"strings"
	"testing"
)

func command(t *testing.T, line string) *Command {
	t.Helper()
	commands := Read(Bash, line, "").Commands
	if len(commands) == 0 || slices.ContainsFunc(commands[1:], func(c Command) bool { return c.outer == nil }) {
		t.Fatalf("%q: %+v", line, commands)
	}
	return &commands[0]
}

func TestCover(t *testing.T) {
	for line, want := range map[string]string{
		"ls -la":                   "ls",
		"make -j4 all":             "make",
		"git status --short":       "git status",
		"/usr/bin/git log -1":      "/usr/bin/git log",
		"git":                      "",
		"git -C sub status":        "git -C sub status",
		"git --version":            "git --version",
		"git $x":                   "",
		"git -C $x status":         "",
		"npm test":                 "npm test",
		"npm run build -- -w":      "npm run build -- -w",
		"npm run":                  "",
		"npm run $x":               "",
		"npm run 'my script'":      "npm run 'my script'",
		"docker compose up -d":     "docker compose up",
		"docker ps -a":             "docker ps",
		"gh pr list":               "gh pr list",
		"gh -R a/b pr list":        "gh -R a/b pr list",
		"aws s3":                   "aws s3",
		"python3.12 run.py x":      "python3.12 run.py x",
		"python3.12 run.py":        "python3.12 run.py",
		"python -m pytest -k x":    "python -m pytest",
		"git --no-pager log -1":    "git log",
		"npm run build --silent":   "npm run build",
		"npm run --silent x -s":    "npm run x",
		"python -m":                "python -m",
		"python -I -m pytest x":    "python -m pytest",
		"uv run pytest -x":         "uv run pytest",
		"python -c 'print(1)' x":   "python -c 'print(1)' x",
		"java -jar a.jar --port 1": "java -jar a.jar --port 1",
		"awk '{print $1}' a":       "awk",
		"gawk -F: -f a.awk b":      "gawk -F: -f a.awk b",
		"gawk -F: NF b":            "gawk",
		"awk --assign x=1 NF b":    "awk --assign 'x=1' NF b", // one of the implementations takes x=1 for the script
		"bash run.sh":              "bash run.sh",
		"bash":                     "",
		"pnpm publish --tag x":     "pnpm publish --tag x",
		"node -e '" + strings.Repeat("x", 200) + "'": "",
	} {
		c := command(t, line)
		got := c.Cover()
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
		if got != "" && !c.Covered(got, false) {
			t.Errorf("%q is not covered by its own %q", line, got)
		}
	}
}

func TestCovered(t *testing.T) {
	for _, tt := range []struct {
		cover, line string
		want        bool
	}{
		{"ls", "ls -la", true},
		{"git log", "git --no-pager log -1", true},
		{"git --no-pager log -1", "git --no-pager log -1", true},
		{"git --no-pager log", "git --no-pager log -1", false},
		{"npm run build", "npm -w web run --silent build", true},
		{"git log", "git --exec-path=x log", false},
		{"git status", "git status --short", true},
		{"git status", "git stat", false},
		{"git status", "git -C x status", false},
		{"git status", "GIT status", false},
		{"git", "git", false},
		{"git", "git status", false},
		{"npm run", "npm run x", false},
		{"npm run build", "npm run build:all", false},
		{"git -C x status", "git -C x status", true},
		{"git -C x status", "git -C x status --short", false},
		{"git -C '*' status", "git -C x status", false},
		{"npm run 'my script'", "npm run my script", false},
		{"", "ls", false},
		{"ls; rm", "ls", false},
	} {
		if got := command(t, tt.line).Covered(tt.cover, false); got != tt.want {
			t.Errorf("%q by %q: %v", tt.line, tt.cover, got)
		}
	}
}
