package guards

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// A log consists of the guards' record and the names that the program uses. If toolreg is killed,
// the next call uses it to clean up. toolreg holds a lock on the log while the program runs.

// unwritten is the age at which a log without a record is removed: toolreg was killed while
// it wrote it, before the program started.
const unwritten = time.Minute

// stored is the first line of a log.
type stored struct {
	record
	Others []record
}

// ending is how long the processes of a killed toolreg may take to end and its guard to record the
// time in the log. lateness is how old that time may be on a busy machine.
const (
	ending   = 200 * time.Millisecond
	lateness = 300 * time.Millisecond
)

// startLog creates the log of a program in the folder of the logs.
func (g *Guards) startLog() (err error) {
	s := stored{record: g.record}
	for _, other := range g.others {
		s.Others = append(s.Others, other.record)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if g.log, err = os.CreateTemp(g.tree.logs, "*.log"); err != nil {
		return err
	}
	if err = syscall.Flock(int(g.log.Fd()), syscall.LOCK_EX); err == nil {
		_, err = g.log.Write(append(data, '\n'))
	}
	if err != nil {
		g.endLog()
	}
	return err
}

func (g *Guards) endLog() {
	if g.log != nil {
		_ = os.Remove(g.log.Name())
		_ = g.log.Close()
		g.log = nil
	}
}

// keepLog closes the log without removing it, so that the next call uses it to clean up.
func (g *Guards) keepLog() {
	if g.log != nil {
		_ = g.log.Close()
		g.log = nil
	}
}

// cleanEarlier cleans up after programs whose toolreg was killed. beside is when the first of those
// that still run was started; zero if none runs.
func (t *Tree) cleanEarlier(ctx context.Context) (out Cleaned, beside time.Time, err error) {
	if t.logs == "" {
		return out, beside, nil
	}
	logs, err := filepath.Glob(filepath.Join(t.logs, "*.log"))
	for _, path := range logs {
		cleaned, running, failed := t.cleanAfter(ctx, path)
		out.add(cleaned)
		if beside.IsZero() || !running.IsZero() && running.Before(beside) {
			beside = running
		}
		if failed != nil {
			err = errors.Join(err,
				fmt.Errorf("cleaning after a sandboxed program that was interrupted (%s): %w", path, failed))
		}
	}
	return out, beside, err
}

// Uncleaned reports whether a folder has not yet been cleaned after a sandboxed program, which
// still runs or whose toolreg was killed. Until then it may contain files from which other programs
// run commands. Lasting programs do not count. logs is as in [New].
func Uncleaned(logs, folder string) bool {
	if logs == "" {
		return false
	}
	folder = git.ResolveLinks(folder)
	paths, err := filepath.Glob(filepath.Join(logs, "*.log"))
	return err != nil || slices.ContainsFunc(paths, func(path string) bool {
		f, err := os.Open(path)
		if err != nil {
			return unlessGone(err) != nil
		}
		defer f.Close()
		line, err := bufio.NewReader(f).ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return false // the program has not started
		}
		var s stored
		if err != nil || json.Unmarshal(line, &s) != nil {
			return true // it is not known which programs ran
		}
		return !s.Lasting && slices.ContainsFunc(append(s.Others, s.record), func(r record) bool {
			tree := git.ResolveLinks(r.Tree)
			return isWithin(tree, folder) || isWithin(folder, tree)
		})
	})
}

// cleanAfter cleans up with one log and removes it, unless its program still runs. running is then
// when that was started.
func (t *Tree) cleanAfter(ctx context.Context, path string) (cleaned Cleaned, running time.Time, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return cleaned, running, unlessGone(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		var s stored
		if line, err := bufio.NewReader(f).ReadBytes('\n'); err == nil && json.Unmarshal(line, &s) == nil {
			running = s.Started
		}
		return cleaned, running, nil
	} else if err != nil {
		return cleaned, running, err
	}
	cleaned, err = t.cleanWith(ctx, f)
	return cleaned, running, err
}

// cleanWith cleans up with a log that this process has locked.
func (t *Tree) cleanWith(ctx context.Context, f *os.File) (Cleaned, error) {
	select {
	case <-ctx.Done():
		return Cleaned{}, context.Cause(ctx)
	case <-time.After(ending):
	}
	info, err := f.Stat()
	if err != nil || info.Sys().(*syscall.Stat_t).Nlink == 0 { // another toolreg has already removed it
		return Cleaned{}, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return Cleaned{}, err
	}
	line, names, ok := bytes.Cut(data, []byte("\n"))
	if !ok || len(line) == 0 {
		if time.Since(info.ModTime()) > unwritten {
			return Cleaned{}, os.Remove(f.Name())
		}
		return Cleaned{}, nil
	}
	var s stored
	if err := json.Unmarshal(line, &s); err != nil {
		return Cleaned{}, err
	}
	used := sandbox.Logged(names)
	tree := New(s.Tree, t.user, t.logs)
	defer tree.Close()
	g := &Guards{record: s.record, tree: tree, opened: map[string]fs.FileMode{}, until: info.ModTime().Add(lateness)}
	for _, other := range s.Others {
		g.others = append(g.others,
			&Guards{record: other, tree: tree.other(other.Tree), opened: map[string]fs.FileMode{}, until: g.until})
		g.others[len(g.others)-1].tree.ofGit = other.OfGit
	}
	cleaned, err := g.cleanUnlessMoved(ctx, used.Has)
	if s.Tree != t.path {
		cleaned = cleaned.below(s.Tree)
	}
	if err != nil {
		return cleaned, err
	}
	return cleaned, unlessGone(os.Remove(f.Name()))
}

// cleanUnlessMoved cleans up. If another folder has taken the place of the tree, the record does
// not describe it, and nothing is removed.
func (g *Guards) cleanUnlessMoved(ctx context.Context, created created) (Cleaned, error) {
	for _, at := range append([]*Guards{g}, g.others...) {
		if err := at.tree.open(); err != nil {
			return Cleaned{}, unlessGone(err)
		}
		if self, err := at.tree.lookup("."); err != nil {
			return Cleaned{}, err
		} else if self.ID != at.ID {
			return Cleaned{}, nil
		}
	}
	return g.Clean(ctx, created)
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isChangedAfter reports whether the file at an absolute path, or its name, was changed after
// a time.
func isChangedAfter(path string, limit time.Time) bool {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return err == nil && time.Unix(st.Ctim.Unix()).After(limit)
}

// isBornBefore reports whether the file at an absolute path was created before a time. A
// program cannot change this time of a file. Some file systems do not record it.
func isBornBefore(path string, limit time.Time) bool {
	at, ok := birth(path)
	return ok && at.Before(limit)
}

// born returns the creation time of the file at an absolute path as text; "" if it is not recorded.
func born(path string) string {
	at, ok := birth(path)
	if !ok {
		return ""
	}
	return strconv.FormatInt(at.UnixNano(), 10)
}

func birth(path string) (at time.Time, ok bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)), err == nil && st.Mask&unix.STATX_BTIME != 0
}
