package shell

import (
	"path"
	"slices"
)

// fallbacks are the folders in which a line may also be, because a cd in it may fail or not run.
// Copies share the slices, which are never changed in place.
type fallbacks struct {
	dirs    []string // "" is where the line starts
	failed  []string // where it is if a cd of a statement that has not ended fails
	tooMany bool     // there are too many to follow
}

// Limits on the folders and failures that are followed.
const (
	maxFallbacks = 16
	maxFailed    = 64
)

// cd follows a cd that was made at a location.
func (f *fallbacks) cd(name string, args []word, at location) {
	if f.tooMany {
		return
	}
	f.failed = slices.Concat(f.failed, f.dirs, []string{at.dir})
	dirs := make([]string, len(f.dirs))
	for i, dir := range f.dirs {
		from := at
		from.dir = dir
		from.cd(name, args)
		dirs[i] = from.dir
	}
	f.dirs = dirs
	f.limit()
}

// settle ends a statement after which the line continues whether or not its cd failed. before is
// the number of failures when it began.
func (f *fallbacks) settle(before int, where location) {
	all := slices.Concat(f.dirs, f.failed[before:])
	slices.Sort(all)
	f.dirs = slices.DeleteFunc(slices.Compact(all), func(dir string) bool { return dir == where.dir })
	f.failed = f.failed[:before]
	f.limit()
}

func (f *fallbacks) limit() {
	if len(f.dirs) > maxFallbacks || len(f.failed) > maxFailed {
		*f = fallbacks{tooMany: true}
	}
}

// appendNames appends the files that a name may refer to in these folders.
func (f *fallbacks) appendNames(to []string, name string) []string {
	if name == "" || path.IsAbs(name) || name[0] == '~' {
		return to
	}
	for _, dir := range f.dirs {
		to = append(to, path.Join(dir, name))
	}
	return to
}
