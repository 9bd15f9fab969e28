package shell

import (
	"slices"
	"testing"
)

// What a program runs may depend on the folder unless it is known not to.
func TestWhatRunsDependsOnTheFolder(t *testing.T) {
	for line, want := range map[string]bool{
		"ls -l":         false,
		"/bin/ls":       false,
		"echo $x":       false,
		">a":            false,
		"./ls":          true, // another program of this name
		"unknown":       true,
		"$x":            true,
		"eslint .":      true,
		"ruby x.rb":     true,
		"npx tsc":       true,
		"./gradlew run": true,
		"python3 -V":    true,
	} {
		c := Read(Bash, line, "").Commands[0]
		if got := c.RunsFolder(); got != want {
			t.Errorf("%q: %t, want %t", line, got, want)
		}
	}
}

// The arguments of a program may name code that it runs, unless they are known to be data.
func TestWordsThatMayNameCode(t *testing.T) {
	for line, want := range map[string][]string{
		"ls -l a":         {"ls"},
		"unknown -l a":    {"unknown", "-l", "a"},
		"ruby x.rb a":     {"ruby", "x.rb", "a"},
		"npx tsc a":       {"npx", "tsc", "a"},
		"npm exec a":      {"npm", "exec", "a"},
		"npm install a":   {"npm"},
		"python3 x.py":    {"python3", "x.py"},
		"$x a":            nil,
		">a":              nil,
		"git log -1 HEAD": {"git"},
	} {
		c := Read(Bash, line, "").Commands[0]
		if got := c.Starts(); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// A cd that certainly runs is followed; after another one the folder is not known.
func TestFolderAfterCd(t *testing.T) {
	for line, want := range map[string]struct {
		dir   string
		moved bool
	}{
		"make":                       {"", false},
		"cd sub && make":             {"/w/sub", true},
		"cd sub; cd ..; make":        {"/w", true},
		"cd /tmp/x; make":            {"/tmp/x", true},
		"cd -- sub; make":            {"/w/sub", true},
		"(cd sub); make":             {"", false},
		"x=$(cd sub; pwd); make":     {"", false},
		"cat <(cd sub; pwd); make":   {"", false},
		"{ cd sub; }; make":          {"/w/sub", true},
		"cd $x; make":                {"", true},
		"cd ~/x; make":               {"~/x", true},
		"(cd sub; cd deeper); make":  {"", false},
		"cd a; (cd b); make":         {"/w/a", true},
		"cd a; x=$(cd b; pwd); make": {"/w/a", true},
	} {
		commands := Read(Bash, line, "/w").Commands
		c := commands[len(commands)-1]
		if dir, moved := c.Folder(); c.Root() != "make" || dir != want.dir || moved != want.moved {
			t.Errorf("%q: %s runs in %q, moved %t, want %q, %t", line, c.Root(), dir, moved, want.dir, want.moved)
		}
	}
}

// An option that names a folder of the project leads there, and another option or folder does not.
func TestFolderOfOption(t *testing.T) {
	for _, tt := range []struct {
		line, start string
		project     bool
		dir         string
	}{
		{"git -C sub status", "/w", true, "/w/sub"}, {"git -C sub", "/w", true, "/w/sub"}, {"git -C sub status", "/w", false, ""}, {"git -C sub status", "", true, ""},
		{"git -C /x status", "", true, "/x"}, {"git -C ../x status", "/w", true, ""}, {"git -c sub status", "/w", true, ""}, {"make -C sub", "/w", true, "/w/sub"},
	} {
		c := ReadIn(Bash, tt.line, tt.start, func(string, string) bool { return tt.project }).Commands[0]
		if dir, moved := c.Folder(); dir != tt.dir || moved != (tt.dir != "") {
			t.Errorf("%+v: %q, %t", tt, dir, moved)
		}
	}
}

// A cd to a folder of the project needs no rule, and no other cd or command there does.
func TestPassesCd(t *testing.T) {
	for _, tt := range []struct {
		line, start     string
		project, passes bool
	}{
		{"cd sub", "/w", true, true}, {"cd sub", "/w", false, false}, {"cd sub", "", true, false},
		{"cd $x", "/w", true, false}, {"ls sub", "/w", true, false}, {"pushd sub", "/w", true, false},
	} {
		c := ReadIn(Bash, tt.line, tt.start, func(string, string) bool { return tt.project }).Commands[0]
		if c.Passes != tt.passes {
			t.Errorf("%+v: %t", tt, c.Passes)
		}
	}
	always := func(string, string) bool { return true }
	for i, c := range ReadIn(Bash, "cd sub && make", "/w", always).Commands {
		if c.Passes != (i == 0) {
			t.Errorf("command %d behind a cd: %t", i, c.Passes)
		}
	}
	if Read(Bash, "cd sub", "/w").Commands[0].Passes {
		t.Error("a cd passes where no folder is of the project")
	}
}

// Of several options that say whether a command only shows what it would do, the last counts.
func TestTrial(t *testing.T) {
	for line, trial := range map[string]bool{
		"kubectl apply -f x":                                     false,
		"kubectl apply --dry-run=client -f x":                    true,
		"kubectl apply --dry-run=none --dry-run=server -f x":     true,
		"kubectl apply --dry-run=client --dry-run=none -f x":     false,
		"kubectl apply --dry-run=client --dry-run=$x -f x":       false,
		"kubectl apply --dry-run=client --namespace=none -f x":   true,
		"kubectl apply --namespace=client --dry-run=none -f x":   false,
		"kubectl apply --dry-run=client --dry-run=false -f x -v": false,
	} {
		if c := Read(Bash, line, "").Commands[0]; (c.Named == "") != trial {
			t.Errorf("%q: %q", line, c.Named)
		}
	}
}
