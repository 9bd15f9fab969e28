package file

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// maxChanged limits the size of the files that write_file, edit and apply_patch
// read to change or compare, in bytes.
const maxChanged = 20 << 20

var errTooBig = errors.New("too large to change")

// fileState is the content and mode of a file at one moment.
type fileState struct {
	exists bool
	data   []byte
	mode   fs.FileMode // permission bits
	tooBig bool        // larger than maxChanged; data is empty
}

// sum returns a hash that identifies the state.
func (s *fileState) sum() [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%t %t %v\n", s.exists, s.tooBig, s.mode)
	h.Write(s.data)
	return [sha256.Size]byte(h.Sum(nil))
}

// stateOf reads the file at rel. A missing file is not an error.
func stateOf(w *workspace.Dir, rel string) (*fileState, error) {
	data, info, err := w.ReadFile(rel, maxChanged)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &fileState{}, nil
	case err == nil:
		return &fileState{exists: true, data: data, mode: info.Mode().Perm()}, nil
	}
	f, info, openErr := w.OpenFile(rel)
	if openErr != nil {
		return nil, err
	}
	f.Close()
	if info.Mode().IsRegular() && info.Size() > maxChanged {
		return &fileState{exists: true, mode: info.Mode().Perm(), tooBig: true}, nil
	}
	return nil, err
}

// fileChange is a change to one file that has been computed but not made.
type fileChange struct {
	rel      string
	before   *fileState
	old, new string // as text; old is "" if it cannot be shown
	shown    string // unified diff
	diff     *fileDiff
	data     []byte // the new content
	note     string // sentences for the result, each after a space
}

// newChange computes the diff of a change. reason replaces the diff if the old
// content cannot be shown.
func newChange(rel string, before *fileState, old, new, reason string, data []byte) *fileChange {
	c := &fileChange{rel: rel, before: before, old: old, new: new, data: data}
	from := diffLabel("a", rel)
	if !before.exists {
		from = devNull
	}
	c.diff = diffLines(old, new)
	switch {
	case reason != "":
		c.shown = fmt.Sprintf("The whole file %q, which %s, is replaced by %s of text.\n",
			rel, reason, tool.Size(int64(len(data))))
	case !before.exists && new == "":
		c.shown = fmt.Sprintf("--- %s\n+++ %s\n", devNull, diffLabel("b", rel))
	default:
		c.shown = c.diff.unified(from, diffLabel("b", rel))
	}
	return c
}

// sum returns a hash that identifies the file and its state before the change.
func (c *fileChange) sum() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%q %x", c.rel, c.before.sum()))
}

// isUnchanged reports whether the file already has the new content.
func (c *fileChange) isUnchanged() bool {
	return c.before.exists && !c.before.tooBig && string(c.before.data) == string(c.data)
}

// preview returns what the user is shown before the change.
func (c *fileChange) preview() registry.Preview {
	title := "Change " + c.rel
	if !c.before.exists {
		title = "Create " + c.rel
	}
	return registry.Preview{
		Kind:            registry.PreviewEdit,
		Title:           title,
		Diff:            c.shown,
		FileName:        c.rel,
		OriginalContent: c.old,
		NewContent:      c.new,
		Basis:           fmt.Sprintf("%x", c.sum()),
		Unchanged:       c.isUnchanged(),
	}
}

// original returns the previous content of the file, or nil if there was no
// file.
func (c *fileChange) original() *string {
	if !c.before.exists {
		return nil
	}
	return &c.old
}

// result returns the result of a change that was made. done says what was done.
func (c *fileChange) result(done string) registry.Result {
	added, removed := c.diff.counts()
	text := fmt.Sprintf("%s %q (%s, +%d -%d)", done, c.rel, text.Count(len(splitLines(c.new)), "line"), added, removed)
	r := registry.TextResult(text + "." + c.note)
	r.Summary = strings.ToLower(text[:1]) + text[1:]
	r.Display.Diff = &registry.FileDiff{FileDiff: c.shown,
		FileName: c.rel, OriginalContent: c.original(), NewContent: c.new}
	r.Locations = []registry.Location{{Path: c.rel, Line: c.diff.firstLine()}}
	return r
}

// explainWrite returns why a file could not be changed and what to do next.
// name is the path as the caller wrote it.
func explainWrite(name string, err error) string {
	if m, ok := errors.AsType[mismatchError](err); ok {
		return m.Error()
	}
	switch {
	case errors.Is(err, workspace.ErrIsDir):
		return fmt.Sprintf("%s is a directory; give the path of a file", text.Quote(name))
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Sprintf("%s cannot be written: a part of the path is a file, not a folder", text.Quote(name))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%s cannot be written: %v", text.Quote(name), err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Sprintf("%s cannot be written: the disk is full; nothing was changed", text.Quote(name))
	case errors.Is(err, textfile.ErrNotText):
		return fmt.Sprintf("%s %v; edit only changes text", text.Quote(name), err)
	case errors.Is(err, errTooBig):
		return fmt.Sprintf("%s is larger than %s; change it with a command", text.Quote(name), tool.Size(maxChanged))
	case errors.Is(err, workspace.ErrKind), errors.Is(err, textfile.ErrRoundTrip), errors.Is(err, textfile.ErrEncoding):
		return fmt.Sprintf("%s %v", text.Quote(name), err)
	}
	return fmt.Sprintf("%s: %v", text.Quote(name), err)
}

// previews remembers the state of files at the time a change to them was shown to
// the user, to detect later changes. The zero value is ready to use.
type previews struct {
	mu     sync.Mutex
	states map[[sha256.Size]byte][sha256.Size]byte
	order  [][sha256.Size]byte
}

// maxShown limits how many previews are remembered whose calls never run,
// because the user rejected them.
const maxShown = 256

// remember stores the state with the params of the call.
func (s *previews) remember(call registry.Call, state [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states == nil {
		s.states = map[[sha256.Size]byte][sha256.Size]byte{}
	}
	key := sha256.Sum256(call.Params)
	if _, ok := s.states[key]; !ok {
		s.order = append(s.order, key)
	}
	s.states[key] = state
	if len(s.order) > maxShown {
		delete(s.states, s.order[0])
		s.order = s.order[1:]
	}
}

// changed reports whether the call was previewed with another state. It forgets
// the previewed state, because a call runs only once.
func (s *previews) changed(call registry.Call, state [sha256.Size]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sha256.Sum256(call.Params)
	before, ok := s.states[key]
	delete(s.states, key)
	return ok && before != state
}

// mismatchError reports that the params do not match the current files.
type mismatchError struct{ error }

// failedResult returns the result of a change that could not be computed.
func failedResult(text string, err error) registry.Result {
	if _, ok := errors.AsType[mismatchError](err); ok {
		return tool.Mismatch(text)
	}
	return tool.Failed(text)
}

// changes makes a tool's changes to single files. Each change is computed twice,
// for the preview and for the call; err is the error of that computation.
type changes struct {
	workspace *workspace.Editor
	shown     previews
}

// preview returns what the user is shown of a change, and remembers the state
// of the file.
func (x *changes) preview(call registry.Call, name string, c *fileChange, err error) (registry.Preview, error) {
	if err != nil {
		return registry.Preview{}, &registry.FailedError{Result: failedResult(explainWrite(name, err), err)}
	}
	x.shown.remember(call, c.sum())
	return c.preview(), nil
}

// refusal returns the result of a call whose change cannot be made.
func (x *changes) refusal(call registry.Call, name string, c *fileChange, err error) (r registry.Result, refused bool) {
	switch {
	case err != nil:
		return failedResult(explainWrite(name, err), err), true
	case x.shown.changed(call, c.sum()):
		return tool.Failed(text.Quote(name) +
			" was modified after the change was shown; nothing was written. Read it again and repeat the call"), true
	}
	return r, false
}

// writeChange makes a change. done describes a change to an existing file, such as
// "Edited".
func (x *changes) writeChange(name, rel string, c *fileChange, done string) registry.Result {
	if err := x.workspace.WriteFile(rel, c.data, 0); err != nil {
		return tool.Failed(explainWrite(name, err))
	}
	if c.before.exists {
		return c.result(done)
	}
	return c.result("Created")
}
