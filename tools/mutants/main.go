// Mutants changes one operator of a package at a time, using gremlins, and runs the
// package's own tests after each change. A change that they miss must be listed with a
// reason in testdata/mutants.txt of the package, and a listed change must be missed. Run it
// at the root of the repository with the folders of packages, or without arguments for
// every package that has such a file.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	// Copy only what git tracks or would track: gremlins copies the module for each package,
	// and installed programs are many times larger than the code.
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
	differ := false
	for _, dir := range dirs {
		same, err := check(filepath.Clean(dir), tree)
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

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
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

// check runs gremlins on one package and prints how many changes the tests notice and each
// difference from the package's list. It reports whether there were no differences.
func check(dir, tree string) (bool, error) {
	may, err := readList(filepath.Join(dir, list))
	if err != nil {
		return false, err
	}
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return false, err
	}
	wrapper, err := filepath.Abs("tools/mutants/covered.sh")
	if err != nil {
		return false, err
	}
	report := filepath.Join(tree, dir, "report.json")
	args := []string{"tool", "-modfile=tools/gremlins.mod", "gremlins", "unleash", "--output-statuses=lt",
		"--workers=1", "--timeout-coefficient=5", "--output=" + report, "--exclude-files=/", // of subfolders
		"--invert-logical", "--invert-loopctrl", "--invert-assignments", "--invert-bitwise", "--invert-bwassign", "--remove-self-assignments",
	}
	for _, name := range pkg.IgnoredGoFiles { // of other systems
		args = append(args, "--exclude-files=^"+regexp.QuoteMeta(name)+"$")
	}
	args = append(args, filepath.Join(tree, dir))
	cmd := exec.Command("go", args...)
	// Without -trimpath the build cache would not know the packages in a new folder.
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath -vet=off -ldflags=-w -gcflags=all=-dwarf=false -exec="+wrapper)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return false, err
	}
	var result struct {
		Files []struct {
			Name    string   `json:"file_name"`
			Mutants []mutant `json:"mutations"`
		}
	}
	data, err := os.ReadFile(report)
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return false, err
	}
	noticed, late := 0, 0
	missed := map[string]bool{}
	for _, f := range result.Files {
		keys, err := nameAll(filepath.Join(tree, dir, f.Name), f.Mutants)
		if err != nil {
			return false, err
		}
		for i, m := range f.Mutants {
			switch m.Status {
			case "LIVED", "NOT COVERED":
				missed[keys[i]] = true
			case "TIMED OUT":
				late++
				fallthrough
			default:
				noticed++
			}
		}
	}
	fmt.Printf("%s: %d of %d changes noticed, %d of them by a test that took too long\n", dir,
		noticed, noticed+len(missed), late)
	same := true
	for _, key := range slices.Sorted(maps.Keys(missed)) {
		if !may[key] {
			fmt.Println("  missed, and not in " + list + ": " + key)
			same = false
		}
	}
	for _, key := range slices.Sorted(maps.Keys(may)) {
		if !missed[key] {
			fmt.Println("  noticed or gone, and in " + list + ": " + key)
			same = false
		}
	}
	return same, nil
}

type mutant struct {
	Type, Status string
	Line, Column int
}

// nameAll returns a name for each mutant of a file that stays the same when lines move:
// file, function, kind of change, text of the line, and a number if several are equal. It
// sorts the mutants by position.
func nameAll(path string, mutants []mutant) ([]string, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(mutants, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Type, b.Type))
	})
	lines := bytes.Split(src, []byte("\n"))
	alike := map[string]int{}
	keys := make([]string, len(mutants))
	for i, m := range mutants {
		in := "-"
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && set.Position(f.Pos()).Line <= m.Line && m.Line <= set.Position(f.End()).Line {
				in = f.Name.Name
			}
		}
		keys[i] = fmt.Sprintf("%s %s %s %s", filepath.Base(path), in, m.Type, bytes.TrimSpace(lines[m.Line-1]))
		alike[keys[i]]++
		if n := alike[keys[i]]; n > 1 {
			keys[i] += fmt.Sprintf(" (%d)", n)
		}
	}
	return keys, nil
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
