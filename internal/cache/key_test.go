package cache

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestKeyDependsOnBoundaries(t *testing.T) {
	if NewKey("ab", "c").String() == NewKey("a", "bc").String() || NewKey("a").String() == NewKey("a", "").String() {
		t.Error("different parts have the same key")
	}
	if one, again := NewKey("a", "b"), NewKey("a", "b"); one.String() != again.String() {
		t.Error("equal parts have different keys")
	}
}

// project is a folder with a script, and a program outside it.
type project struct {
	t       *testing.T
	root    string
	outside string
}

func newProject(t *testing.T) *project {
	if runtime.GOOS == "windows" {
		t.Skip("needs scripts")
	}
	p := &project{t, t.TempDir(), t.TempDir()}
	p.write(filepath.Join(p.root, "server.js"), "one")
	p.write(filepath.Join(p.outside, "node"), "#!/bin/sh")
	p.write(filepath.Join(p.outside, "other.js"), "one")
	return p
}

func (p *project) write(path, text string) {
	p.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) program() Program {
	return Program{Root: p.root, Dir: p.root, Argv: []string{"node", "server.js", filepath.Join(p.outside, "other.js")},
		Env: []string{"PATH=" + p.outside, "LANG=C"}, Given: []string{"A=1", "B=2"}}
}

func (p *project) key(program Program) string {
	p.t.Helper()
	k := NewKey()
	if err := k.AddProgram(program); err != nil {
		p.t.Fatal(err)
	}
	if err := k.AddFiles(program); err != nil {
		p.t.Fatal(err)
	}
	return k.String()
}

func TestWhatAKeyDependsOn(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(p *project, x *Program)
		changes bool
	}{
		{"nothing", func(*project, *Program) {}, false},
		{"the script", func(p *project, _ *Program) { p.write(filepath.Join(p.root, "server.js"), "two") }, true},
		{"the script's times alone", func(p *project, _ *Program) {
			if err := os.Chtimes(filepath.Join(p.root, "server.js"), time.Now(), time.Now().Add(time.Hour)); err != nil {
				p.t.Fatal(err)
			}
		}, false},
		{"the program", func(p *project, _ *Program) { p.write(filepath.Join(p.outside, "node"), "#!/bin/bash") }, true},
		{"a file outside", func(p *project, _ *Program) { p.write(filepath.Join(p.outside, "other.js"), "2") }, true},
		{"another file", func(p *project, _ *Program) { p.write(filepath.Join(p.root, "readme"), "x") }, false},
		{"a word", func(_ *project, x *Program) { x.Argv = append(x.Argv, "--all") }, true},
		{"a variable of the settings", func(_ *project, x *Program) { x.Given = append(x.Given, "TOKEN=x") }, true},
		{"the order of variables", func(_ *project, x *Program) { x.Given = []string{"B=2", "A=1"} }, false},
		{"LANG of the session", func(_ *project, x *Program) { x.Env = append(x.Env, "LANG=de", "TMPDIR=/var/tmp", "SHLVL=7") }, false},
		{"PATH of the session", func(p *project, x *Program) { x.Env[0] = "PATH=" + p.root + ":" + p.outside }, false},
		{"the folder", func(p *project, x *Program) { x.Dir = p.outside }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProject(t)
			x := p.program()
			was := p.key(x)
			tt.change(p, &x)
			if got := p.key(x) != was; got != tt.changes {
				t.Errorf("the key changed: %v", got)
			}
		})
	}
}

// A replacement of a program with the same size and times has another key.
func TestReplacedProgramHasAnotherKey(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs inode numbers")
	}
	p := newProject(t)
	was := p.key(p.program())
	path := filepath.Join(p.outside, "node")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	p.write(path, "#!/bin/ss")
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if p.key(p.program()) == was {
		t.Error("the replacement has the same key")
	}
}

func TestTreeKeys(t *testing.T) {
	p := newProject(t)
	tree := func() string {
		k := NewKey()
		if err := k.AddTree(p.root); err != nil {
			t.Fatal(err)
		}
		return k.String()
	}
	was := tree()
	if err := os.Symlink("nowhere", filepath.Join(p.root, "link")); err != nil {
		t.Fatal(err)
	}
	if tree() == was {
		t.Error("a new file does not change the key")
	}
	for i := range maxTree {
		p.write(filepath.Join(p.root, "f"+string(rune('a'+i%26))+time.Duration(i).String()), "")
	}
	if err := NewKey().AddTree(p.root); err == nil {
		t.Error("a folder with too many files is accepted")
	}
}

func TestMissingProgramHasNoKey(t *testing.T) {
	p := newProject(t)
	x := p.program()
	x.Argv[0] = "no-such-program"
	if err := NewKey().AddProgram(x); err == nil {
		t.Error("no error")
	}
}
