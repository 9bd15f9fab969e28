package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// printCycles prints the sets of files of one folder in which each uses names of
// each other, through further ones or not.
func printCycles(dir string) error {
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		file, _ := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.SkipObjectResolution) // it was parsed before
		files = append(files, file)
	}
	// Nothing is imported, so what other packages declare stays unknown: errors are expected.
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked, _ := (&types.Config{Error: func(error) {}}).Check(dir, set, files, &info)
	fileOf := func(p token.Pos) string { return filepath.Base(set.Position(p).Filename) }
	type pair struct{ from, to string }
	reaches := map[pair]bool{}
	for id, object := range info.Uses {
		if object.Pkg() == checked {
			reaches[pair{fileOf(id.Pos()), fileOf(object.Pos())}] = true
		}
	}
	for _, over := range pkg.GoFiles {
		for _, from := range pkg.GoFiles {
			for _, to := range pkg.GoFiles {
				reaches[pair{from, to}] = reaches[pair{from, to}] || reaches[pair{from, over}] && reaches[pair{over, to}]
			}
		}
	}
	for _, first := range pkg.GoFiles { // a set is printed at its first file
		circle := slices.DeleteFunc(slices.Clone(pkg.GoFiles), func(other string) bool {
			return !reaches[pair{first, other}] || !reaches[pair{other, first}]
		})
		if len(circle) > 1 && circle[0] == first {
			fmt.Printf("  %s: %d of %d: %s\n", dir, len(circle), len(pkg.GoFiles), strings.Join(circle, " "))
		}
	}
	return nil
}
