package guards

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
)

// Which files sandboxed programs may have changed follows from the times at which they ran: a
// file's last change according to the kernel (ctime) cannot be set by anyone. This costs nothing
// while they run, however many files they change.

// changesName is the file with the changes in the folder of the logs, and maxRuns the maximum
// number of runs in it. Beyond that, the two runs with the least time between them become one,
// which then includes the files changed in that time.
const (
	changesName = "changes.json"
	maxRuns     = 100

	// unrecordedName is an empty file whose time is the start of the first program that could not
	// be recorded: a full disk often still has room for a name. Every file changed since then
	// counts as changed.
	unrecordedName = "unrecorded"
)

// Changes says which files sandboxed programs may have changed. The zero value contains none.
type Changes struct {
	Runs     []run
	Accepted map[string]time.Time // by real path: changes until then are accepted

	damaged bool
}

// run is a time in which sandboxed programs ran.
type run struct {
	Trees    []string // what they could write, real
	From, To time.Time
	Lasting  bool `json:",omitempty"` // see [Scope]: only programs count
}

// clock returns a time that no later change precedes: the clock of file systems may be a tick
// behind.
func clock() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
		return time.Now()
	}
	return time.Unix(now.Unix())
}

// noteRun records when the program ran. The program must have ended.
func (g *Guards) noteRun(ctx context.Context) error {
	if g.tree.logs == "" {
		return nil
	}
	r := run{Trees: []string{g.tree.real}, From: g.Started, To: g.until, Lasting: g.Lasting}
	if r.To.IsZero() {
		r.To = time.Now()
	}
	for _, other := range g.others {
		r.Trees = append(r.Trees, other.tree.real)
	}
	return update(ctx, g.tree.logs, func(c *Changes) {
		if c.Runs = append(c.Runs, r); len(c.Runs) > maxRuns {
			c.join()
		}
	})
}

// join merges two runs into one.
func (c *Changes) join() {
	slices.SortFunc(c.Runs, func(a, b run) int { return a.From.Compare(b.From) })
	at := 1
	for i := range c.Runs[1:] {
		if c.Runs[i+1].From.Sub(c.Runs[i].To) < c.Runs[at].From.Sub(c.Runs[at-1].To) {
			at = i + 1
		}
	}
	first, second := &c.Runs[at-1], c.Runs[at]
	for _, tree := range second.Trees {
		first.Trees = text.AppendNew(first.Trees, tree)
	}
	if second.To.After(first.To) {
		first.To = second.To
	}
	first.Lasting = first.Lasting && second.Lasting
	c.Runs = slices.Delete(c.Runs, at, at+1)
}

func update(ctx context.Context, logs string, change func(*Changes)) error {
	dir, err := state.OpenDir(logs)
	if err != nil {
		return err
	}
	err = dir.Update(ctx, changesName, func(old []byte) ([]byte, error) {
		var c Changes
		_ = json.Unmarshal(old, &c) // a damaged file is replaced
		c.addUnrecorded(logs)
		change(&c)
		return json.Marshal(c)
	})
	if err != nil {
		return err
	}
	return unlessGone(os.Remove(filepath.Join(logs, unrecordedName)))
}

// mark records, without writing data, that the program could not be recorded.
func (g *Guards) mark() error {
	if g.tree.logs == "" {
		return nil
	}
	path := filepath.Join(g.tree.logs, unrecordedName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.ModTime().Before(g.Started) {
		return err // that of an earlier program
	}
	return os.Chtimes(path, g.Started, g.Started)
}

// ReadChanges returns the record in the folder of the logs; see [New].
func ReadChanges(logs string) Changes {
	var c Changes
	dir, err := state.OpenDir(logs)
	if err != nil {
		return c
	}
	data, err := dir.Read(changesName)
	if !errors.Is(err, fs.ErrNotExist) && (err != nil || json.Unmarshal(data, &c) != nil) {
		c.damaged = true
	}
	c.addUnrecorded(logs)
	return c
}

// addUnrecorded adds the time of programs that could not be recorded.
func (c *Changes) addUnrecorded(logs string) {
	if info, err := os.Lstat(filepath.Join(logs, unrecordedName)); err == nil {
		c.Runs = append(c.Runs, run{Trees: []string{"/"}, From: info.ModTime(), To: time.Now()})
	}
}

// Accept records that a person accepts files, or everything in folders, as they were at a time.
func Accept(ctx context.Context, logs string, paths []string, at time.Time) error {
	return update(ctx, logs, func(c *Changes) {
		if c.Accepted == nil {
			c.Accepted = map[string]time.Time{}
		}
		maps.DeleteFunc(c.Accepted, func(path string, _ time.Time) bool { _, err := os.Lstat(path); return err != nil })
		for _, path := range paths {
			c.Accepted[resolveFolder(path)], c.Accepted[git.ResolveLinks(path)] = at, at
		}
	})
}

// None reports whether no sandboxed program that could write in a folder has run.
func (c Changes) None(folder string) bool {
	folder = git.ResolveLinks(folder)
	return !c.damaged && !slices.ContainsFunc(c.Runs, func(r run) bool {
		return slices.ContainsFunc(r.Trees,
			func(tree string) bool { return isWithin(tree, folder) || isWithin(folder, tree) })
	})
}

// Has reports whether a sandboxed program may have been the last to change the file at an absolute
// path, or the target of a link there. program is set if the file is a program, which lasting
// programs must not change unnoticed either.
func (c Changes) Has(path string, program bool) bool {
	path = resolveFolder(path)
	return c.has(path, program) || c.has(git.ResolveLinks(path), program)
}

// HasBelow is Has for everything in a folder.
func (c Changes) HasBelow(folder string) bool {
	found := errors.New("found")
	return filepath.WalkDir(git.ResolveLinks(folder), func(path string, e fs.DirEntry, err error) error {
		if err == nil && c.has(path, false) {
			return found
		}
		return nil
	}) == found
}

func (c Changes) has(path string, program bool) bool {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return false
	}
	if c.damaged {
		return true // this is unknown, so it may be
	}
	changed := time.Unix(st.Ctim.Unix())
	if !slices.ContainsFunc(c.Runs, func(r run) bool {
		return (program || !r.Lasting) && !changed.Before(r.From) && !changed.After(r.To) &&
			slices.ContainsFunc(r.Trees, func(tree string) bool { return isWithin(path, tree) })
	}) {
		return false
	}
	for at := path; ; at = filepath.Dir(at) {
		if accepted, ok := c.Accepted[at]; ok && !changed.After(accepted) {
			return false
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

// resolveFolder resolves the links in the folder of a path.
func resolveFolder(path string) string {
	return filepath.Join(git.ResolveLinks(filepath.Dir(path)), filepath.Base(path))
}
