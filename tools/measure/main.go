// Measure prints the sizes that docs/ARCHITECTURE.md speaks of. It is a report
// for the eye: nothing fails. Run it at the root of the repository.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := measure(); err != nil {
		log.Fatal(err)
	}
}

// sized is something with a name and its lines, fields or methods.
type sized struct {
	name string
	size int
}

// report is what was found in all files.
type report struct {
	lines                                 map[string]int // by kind of file
	functions, files, structs, interfaces []sized
	folderFiles, folderLines              map[string]int
	forbidden                             []string // what internal/session must not use
}

func measure() error {
	r := report{lines: map[string]int{}, folderFiles: map[string]int{}, folderLines: map[string]int{}}
	for _, pattern := range []string{"*_test.go", "cmd/*/*.go", "internal/*/*.go", "internal/*/*/*.go", "testdata/script/*.txtar"} {
		paths, _ := filepath.Glob(pattern) // only a bad pattern is an error
		for _, path := range paths {
			if err := r.add(path); err != nil {
				return err
			}
		}
	}
	r.print()
	fmt.Println("files that use names of each other, by folder:")
	for _, dir := range slices.Sorted(maps.Keys(r.folderFiles)) {
		if err := printCycles(dir); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) add(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bytes.Count(text, []byte("\n"))
	switch {
	case strings.HasSuffix(path, ".txtar"):
		r.lines["scripts"] += lines
	case strings.HasPrefix(path, "internal/mcptest/"):
		r.lines["mcptest"] += lines
	case strings.HasSuffix(path, "_test.go"):
		r.lines["tests"] += lines
	case strings.HasSuffix(path, ".go"):
		r.lines["production"] += lines
		r.files = append(r.files, sized{path, lines})
		r.folderFiles[filepath.Dir(path)]++
		r.folderLines[filepath.Dir(path)] += lines
		for _, part := range []string{`/cobra"`, `internal/cli"`, `internal/terminal"`, `x/term"`, "os.Stdin"} {
			if strings.HasPrefix(path, "internal/session/") && bytes.Contains(text, []byte(part)) {
				r.forbidden = append(r.forbidden, path+": "+strings.Trim(part, `"`))
			}
		}
		return r.inspect(path, text)
	}
	return nil
}

// inspect looks into a source file for all that has a size of its own.
func (r *report) inspect(path string, text []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			lines := set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1
			r.functions = append(r.functions, sized{path + " " + n.Name.Name, lines})
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok && !strings.HasPrefix(path, "internal/settings/") {
				r.structs = append(r.structs, sized{path + " " + n.Name.Name, s.Fields.NumFields()})
			} else if i, ok := n.Type.(*ast.InterfaceType); ok {
				r.interfaces = append(r.interfaces, sized{path + " " + n.Name.Name, i.Methods.NumFields()})
			}
		}
		return true
	})
	return nil
}

func (r *report) print() {
	tests := r.lines["tests"] + r.lines["scripts"]
	fmt.Printf("production: %d lines (cmd and internal without internal/mcptest, which has %d)\n", r.lines["production"], r.lines["mcptest"])
	fmt.Printf("tests: %d lines (Go %d, scripts %d), %.2f of production\n", tests, r.lines["tests"], r.lines["scripts"], float64(tests)/float64(r.lines["production"]))
	printSpread("functions", r.functions)
	printSpread("files", r.files)
	var folders []sized
	for dir, files := range r.folderFiles {
		if lines := r.folderLines[dir]; files > 25 || lines > 3500 {
			folders = append(folders, sized{fmt.Sprintf("%s of %d files, in lines", dir, files), lines})
		}
	}
	printAbove("folders above 25 files or 3500 lines", folders, 0)
	printAbove("structs above 16 fields (internal/settings apart)", r.structs, 16)
	printAbove("interfaces above 3 methods", r.interfaces, 3)
	fmt.Printf("cmd/toolreg: %d lines; internal/session: %d, uses of cobra, terminals and os.Stdin: %q\n", r.folderLines["cmd/toolreg"], r.folderLines["internal/session"], r.forbidden)
}

func printSpread(title string, all []sized) {
	slices.SortFunc(all, func(a, b sized) int { return cmp.Compare(a.size, b.size) })
	last := all[len(all)-1]
	fmt.Printf("%s: %d, median %d and p90 %d lines; the longest: %d in %s\n",
		title, len(all), all[len(all)/2].size, all[len(all)*9/10].size, last.size, last.name)
}

func printAbove(title string, all []sized, limit int) {
	fmt.Println(title + ":")
	slices.SortFunc(all, func(a, b sized) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name)) })
	for _, s := range all {
		if s.size > limit {
			fmt.Printf("  %s: %d\n", s.name, s.size)
		}
	}
}
