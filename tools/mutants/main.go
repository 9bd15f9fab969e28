// Mutants changes one operator of a package at a time and runs the package's own tests after
// each change. A change that they miss must be listed with a reason in testdata/mutants.txt of
// the package, and a listed change must be missed. Run it at the root of the repository with
// the folders of packages, or without arguments for every package that has such a file.
//
// Gremlins decides which operators are changed. All changes of a package are built into one
// binary of its tests, in which a number selects one, because building takes longer than most
// tests. A change that cannot be selected, such as one of a constant, has its own binary.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// list is the file that lists the changes that the tests of a package may miss: lines with
// changes, then an indented line with the reason for them.
const list = "testdata/mutants.txt"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(dirs []string) error {
	// Copy only what git tracks or would track: installed programs are many times larger than
	// the code.
	listed, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return err
	}
	names := strings.Split(strings.Trim(string(listed), "\x00"), "\x00")
	if len(dirs) == 0 {
		for _, name := range names {
			if dir, ok := strings.CutSuffix(name, "/"+list); ok {
				dirs = append(dirs, dir)
			}
		}
	}
	for i, dir := range dirs {
		dirs[i] = filepath.Clean(dir)
	}
	tree, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	for _, name := range names {
		if err := copyFile(name, filepath.Join(tree, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	changes, err := findChanges(dirs)
	if err != nil {
		return err
	}
	differ := false
	for _, dir := range dirs {
		same, err := check(dir, tree, changes[dir])
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		differ = differ || !same
	}
	if differ {
		return errors.New("what the tests miss differs from " + list)
	}
	return nil
}

// findChanges asks gremlins which operators of the packages to change. Gremlins builds and copies
// the module that it is given, so it gets one that is empty for the go command, with the files in a
// folder that only gremlins reads.
func findChanges(dirs []string) (map[string][]*change, error) {
	module, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(module)
	for name, text := range map[string]string{"go.mod": "module mutants\n", "mutants.go": "package mutants\n"} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	for _, dir := range dirs {
		pkg, err := build.ImportDir(dir, 0)
		if err != nil {
			return nil, err
		}
		for _, name := range pkg.GoFiles {
			if err := copyFile(filepath.Join(dir, name), filepath.Join(module, "_files", dir, name)); err != nil {
				return nil, err
			}
		}
	}
	report := filepath.Join(module, "report.json")
	cmd := exec.Command("go", "tool", "-modfile=tools/gremlins.mod",
		"gremlins", "unleash", "--dry-run", "--silent", "--output="+report,
		"--invert-logical", "--invert-loopctrl", "--invert-assignments",
		"--invert-bitwise", "--invert-bwassign", "--remove-self-assignments", module)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gremlins: %w\n%s", err, out)
	}
	data, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	var found struct {
		Files []struct {
			Name    string    `json:"file_name"`
			Changes []*change `json:"mutations"`
		}
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return nil, err
	}
	changes := map[string][]*change{}
	for _, f := range found.Files {
		dir := strings.TrimPrefix(filepath.Dir(f.Name), "_files"+string(filepath.Separator))
		for _, c := range f.Changes {
			c.file = filepath.Base(f.Name)
			changes[dir] = append(changes[dir], c)
			c.number = len(changes[dir])
		}
	}
	return changes, nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil || info.IsDir() { // a link to a folder
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

// check tries each change of a package and prints how many of them the tests notice and each
// difference from the package's list. It reports whether there were no differences.
func check(dir, tree string, changes []*change) (bool, error) {
	start := time.Now()
	may, err := readList(filepath.Join(dir, list))
	if err != nil {
		return false, err
	}
	s, err := readSource(dir)
	if err != nil {
		return false, err
	}
	for name, text := range s.text {
		nameAll(s.set, s.files[name], text,
			slices.DeleteFunc(slices.Clone(changes), func(c *change) bool { return c.file != name }))
	}
	temp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temp)
	verdicts, err := s.tryAll(changes, may, tree, temp, runtime.GOMAXPROCS(0))
	if err != nil {
		return false, err
	}
	unnoticed, ended := map[string]bool{}, 0
	for c, v := range verdicts {
		switch v {
		case missed:
			unnoticed[c.key] = true
		case late:
			ended++
		}
	}
	fmt.Printf("%s: %d of %d changes noticed in %s, %d of them by a test that did not end; %d others do not compile\n",
		dir, len(verdicts)-len(unnoticed), len(verdicts),
		time.Since(start).Round(time.Second), ended, len(changes)-len(verdicts))
	same := true
	for _, key := range slices.Sorted(maps.Keys(unnoticed)) {
		if !may[key] {
			fmt.Println("  missed, and not in " + list + ": " + key)
			same = false
		}
	}
	for _, key := range slices.Sorted(maps.Keys(may)) {
		if !unnoticed[key] {
			fmt.Println("  noticed or gone, and in " + list + ": " + key)
			same = false
		}
	}
	return same, nil
}

// nameAll gives each change of a file a name that stays the same when lines move: file,
// function, kind of change, text of the line, and a number if several are equal.
func nameAll(set *token.FileSet, file *ast.File, text []byte, changes []*change) {
	slices.SortFunc(changes, func(a, b *change) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Type, b.Type))
	})
	lines := bytes.Split(text, []byte("\n"))
	alike := map[string]int{}
	for _, c := range changes {
		in := "-"
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && set.Position(f.Pos()).Line <= c.Line &&
				c.Line <= set.Position(f.End()).Line {
				in = f.Name.Name
			}
		}
		c.key = fmt.Sprintf("%s %s %s %s", c.file, in, c.Type, bytes.TrimSpace(lines[c.Line-1]))
		alike[c.key]++
		if n := alike[c.key]; n > 1 {
			c.key += fmt.Sprintf(" (%d)", n)
		}
	}
}

// readList reads the changes that a package's tests may miss. The list is empty if there
// is no file.
func readList(path string) (map[string]bool, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	may := map[string]bool{}
	last := ""
	for line := range strings.Lines(string(data)) {
		if last = strings.TrimRight(line, "\n"); !strings.HasPrefix(last, "\t") {
			may[last] = true
		}
	}
	if may[last] {
		return nil, fmt.Errorf("%s: no reason after %q", path, last)
	}
	return may, nil
}
