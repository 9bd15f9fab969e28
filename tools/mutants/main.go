// Mutants changes one operator of a package at a time, by gremlins, and runs the
// package's own tests on each change. A change that they do not notice must stand in
// testdata/mutants.txt of the package with a reason; what stands there must not be
// noticed. Run it at the root of the repository, with folders of packages, or without
// for every package that has such a file.
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

// file names, for each package, the changes that its tests may miss: lines of changes,
// then an indented reason for these.
const file = "testdata/mutants.txt"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(dirs []string) error {
	if len(dirs) == 0 {
		err := filepath.WalkDir("internal", func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(filepath.ToSlash(path), "/"+file) {
				dirs = append(dirs, filepath.Dir(filepath.Dir(path)))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	temp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	tree := filepath.Join(temp, "tree")
	if err := copyTree(tree); err != nil {
		return err
	}
	failed := false
	for _, dir := range dirs {
		same, err := check(filepath.Clean(dir), tree, filepath.Join(temp, "report.json"))
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		failed = failed || !same
	}
	if failed {
		return errors.New("the tests and " + file + " differ")
	}
	return nil
}

// copyTree copies what git tracks or would track: gremlins copies its module for each
// package, and installed programs are many times larger than the code.
func copyTree(tree string) error {
	list, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return err
	}
	for _, name := range strings.Split(strings.Trim(string(list), "\x00"), "\x00") {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) { // removed, and not yet from the index
			continue
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// check runs gremlins over one package, prints how many changes the tests notice and
// each difference to the file of the package, and says whether there was none.
func check(dir, tree, report string) (bool, error) {
	reasons, err := readReasons(filepath.Join(dir, file))
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
	args := []string{"tool", "-modfile=tools/gremlins.mod", "gremlins", "unleash", "--output-statuses=l",
		"--workers=1", "--timeout-coefficient=5", "--output=" + report, "--exclude-files=/", // of subfolders
		"--invert-logical", "--invert-loopctrl", "--invert-assignments", "--invert-bitwise", "--invert-bwassign", "--remove-self-assignments",
	}
	for _, name := range pkg.IgnoredGoFiles { // of other systems
		args = append(args, "--exclude-files=^"+regexp.QuoteMeta(name)+"$")
	}
	args = append(args, filepath.Join(tree, dir))
	cmd := exec.Command("go", args...)
	// Without -trimpath the build cache would not know the packages in a new folder.
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath -vet=off -ldflags=-w -exec="+wrapper)
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
		keys, err := name(filepath.Join(tree, dir, f.Name), f.Mutants)
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
		if _, ok := reasons[key]; !ok {
			fmt.Println("  not in the file: " + key)
			same = false
		}
	}
	for _, key := range slices.Sorted(maps.Keys(reasons)) {
		if !missed[key] {
			fmt.Println("  noticed, or gone: " + key)
			same = false
		}
	}
	return same, nil
}

type mutant struct {
	Type, Status string
	Line, Column int
}

// name returns a name for each mutant of a file that stays the same when other lines
// move: file, function, kind of change, text of the line, and a number if several are alike.
// It sorts the mutants by their place.
func name(path string, mutants []mutant) ([]string, error) {
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

// readReasons reads the file of a package.
func readReasons(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	var open []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '\t':
			for _, key := range open {
				reasons[key] = strings.TrimSpace(line)
			}
			open = nil
		default:
			open = append(open, line)
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%s: no reason after %q", path, open[len(open)-1])
	}
	return reasons, nil
}
