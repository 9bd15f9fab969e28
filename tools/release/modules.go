package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// module is a module with packages in the program; the one named "std" is Go's
// standard library.
type module struct {
	Path, Version string
	License       string // an SPDX expression
	Texts         []text // its licenses and notices

	folders []string // folders of its packages and their parents
}

type text struct{ Name, Content string }

// linkedModules returns the modules that are linked into toolreg on any of the systems,
// sorted by path. They do not depend on the processor architecture.
func linkedModules(systems ...string) ([]*module, error) {
	byPath := map[string]*module{}
	for _, system := range systems {
		if err := addPackages(byPath, system); err != nil {
			return nil, err
		}
	}
	classify, err := newClassifier()
	if err != nil {
		return nil, err
	}
	var modules []*module
	for _, m := range byPath {
		if err := m.readTexts(); err != nil {
			return nil, err
		}
		if m.License, err = classify(m); err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *module) int { return strings.Compare(a.Path, b.Path) })
	return modules, nil
}

// listed is a package as go list prints it.
type listed struct {
	Dir, Root string
	Standard  bool
	Module    struct {
		Path, Version, Dir string
		Main               bool
	}
}

// addPackages adds the modules of the packages that toolreg consists of on one
// system.
func addPackages(modules map[string]*module, system string) error {
	cmd := exec.Command("go", "list", "-deps", "-json=Dir,Root,Standard,Module",
		"github.com/toolreg/toolreg/cmd/toolreg")
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("listing the packages for %s: %w", system, err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading what go list prints: %w", err)
		case !p.Module.Main:
			p.addTo(modules)
		}
	}
}

// addTo records the folders that may contain the licenses of a package.
func (p listed) addTo(modules map[string]*module) {
	path, version, top, dir := p.Module.Path, p.Module.Version, p.Module.Dir, p.Dir
	if p.Standard {
		path, version, top, dir = "std", strings.TrimPrefix(runtime.Version(), "go"), p.Root, p.Root
	}
	m := modules[path]
	if m == nil {
		m = &module{Path: path, Version: version, folders: []string{top}}
		modules[path] = m
	}
	for ; dir != top && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if !slices.Contains(m.folders, dir) {
			m.folders = append(m.folders, dir)
		}
	}
}
