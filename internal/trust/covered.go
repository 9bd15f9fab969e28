package trust

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
)

// Cover returns all files that a grant for the project at root covers: the
// settings files, the files of the project that the programs may run, and all
// files in the trees, which are absolute paths of plugin folders and need not
// exist. The result is sorted by name. If Cover returns an error, the project
// cannot be trusted in its current state.
func Cover(root string, settings []File, programs []Program, trees []string) ([]File, error) {
	c := newCover(root)
	for _, f := range settings {
		c.files[f.Name] = f
		c.links(filepath.Join(c.root, filepath.FromSlash(f.Name)))
	}
	for _, p := range programs {
		if err := c.program(p); err != nil {
			return nil, err
		}
	}
	for _, tree := range trees {
		c.links(tree)
		if err := c.tree(tree); err != nil {
			return nil, err
		}
	}
	out := make([]File, 0, len(c.files))
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		out = append(out, c.files[name])
	}
	return out, nil
}

// Executable returns an entry of a grant that says that a file may be executed. [Cover] does
// not look at modes; for a file that is run because of its mode alone, such as a plugin of
// one file, this entry keeps a later chmod from adding a program that nobody saw.
func Executable(root, path string) File {
	root, real := Real(root), filepath.Join(Real(filepath.Dir(path)), filepath.Base(path))
	const what = "as a program"
	f := newFile("", []byte(what))
	return File{Name: Name(root, real) + mark + what, Sum: f.Sum, Outside: !Within(real, root)}
}

// Scripts returns the absolute paths of the programs and scripts in the folder root that
// the words of the programs name, and what these load by a literal name, sorted. It covers
// less than [Cover]: no data, nothing in node_modules or a virtual environment, and nothing
// that is found by a runner's rule or PATH, because the tools of a project change those.
// With an error, which names a program that was not searched in full, the result has
// what was found.
func Scripts(root string, programs []Program) ([]string, error) {
	c := newCover(root)
	c.scripts = true
	var failed error
	for _, p := range programs {
		failed = errors.Join(failed, c.program(Program{Argv: p.Argv, Dir: p.Dir}))
	}
	return c.paths(), failed
}

// Started returns the absolute paths of the files in the folder root that a command starts with:
// those of [Scripts], the programs that PATH finds there, the files that tell a runner what to
// do, such as a Makefile or package.json, and what a package.json names. Its words are the
// program and those arguments that may name code. With an error the result has what was found.
func Started(root string, p Program) ([]string, error) {
	c := newCover(root)
	c.scripts, c.started = true, true
	err := c.program(p)
	return c.paths(), err
}

// Missing returns the absolute paths of files that are not in the folder root, but that the programs
// might run or load if they were.
func Missing(root string, programs []Program) map[string]bool {
	c := newCover(root)
	c.scripts, c.absent = true, map[string]bool{}
	for _, p := range programs {
		_ = c.program(p) // as far as they are known
	}
	return c.absent
}
