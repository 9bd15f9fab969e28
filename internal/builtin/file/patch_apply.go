package file

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/text"
)

const patchName = "apply_patch"

type patched struct {
	rel      string
	before   *fileState
	old      string // the text before the patch
	text     string
	encoding textfile.Encoding
	exists   bool
	mode     fs.FileMode // the mode to set; 0 means unchanged
	gone     bool        // it was renamed to another file
	origin   *patched    // the file it was renamed or copied from
	base     string      // the content of origin at that point
	moved    bool        // renamed, not copied
}

func (f *patched) changes() bool {
	return f.exists != f.before.exists || f.exists && (f.text != f.old || f.mode != 0 && f.mode != f.before.mode)
}

// renamed reports whether the file was renamed. If the patch creates the old
// name again, the rename is in effect a copy.
func (f *patched) renamed() bool { return f.moved && !f.origin.exists }

// patchPlan is a patch that is applied in memory, file by file.
type patchPlan struct {
	workspace *workspace.Editor
	hides     func(string) bool
	files     map[string]*patched
	order     []*patched
	notes     []string
	compared  int // see [maxCompared]
}

// newPlan computes the patch's changes to the current files without writing
// anything.
func newPlan(w *workspace.Editor, list []filePatch, hides func(string) bool) (*patchPlan, error) {
	p := &patchPlan{workspace: w, hides: hides, files: map[string]*patched{}}
	for i := range list {
		if err := p.add(&list[i]); err != nil {
			return nil, err
		}
	}
	changes := false
	for _, f := range p.order {
		changes = changes || f.changes()
		for dir := path.Dir(f.rel); f.exists && dir != "."; dir = path.Dir(dir) {
			if folder := p.files[dir]; folder != nil && folder.exists {
				return nil, mismatchError{
					fmt.Errorf("%s cannot be written: a part of the path is a file of the patch", text.Quote(f.rel)),
				}
			}
		}
	}
	if !changes {
		return nil, mismatchError{errors.New("the patch changes nothing")}
	}
	return p, nil
}

// file returns the file with that name, as changed by the patch so far. If it is to
// be created, a file whose name only looks the same is another one.
func (p *patchPlan) file(name string, created bool) (*patched, error) {
	rel, err := p.workspace.Creatable(patchName, "/patch", name)
	if _, known := p.files[rel]; err == nil && !known && !created {
		rel, err = p.workspace.Changeable(patchName, "/patch", name)
	}
	if err != nil {
		return nil, err
	}
	if f, ok := p.files[rel]; ok {
		return f, nil
	}
	before, err := stateOf(p.workspace.Dir, rel)
	if err == nil && before.tooBig {
		err = errTooBig
	}
	f := &patched{rel: rel, before: before}
	if err == nil {
		f.old, f.encoding, err = textfile.Decode(before.data)
	}
	if err != nil {
		return nil, errors.New(explainWrite(name, err))
	}
	f.text, f.exists = f.old, before.exists
	p.files[rel] = f
	p.order = append(p.order, f)
	return f, nil
}

// existing returns the file with that name; it must exist.
func (p *patchPlan) existing(name string) (*patched, error) {
	f, err := p.file(name, false)
	if err == nil && !f.exists {
		err = mismatchError{errors.New(p.workspace.Explain(f.rel, name, fs.ErrNotExist, p.hides))}
	}
	return f, err
}

// absent returns the file with that name; it must not exist.
func (p *patchPlan) absent(name string) (*patched, error) {
	f, err := p.file(name, true)
	if err == nil && f.exists {
		err = mismatchError{fmt.Errorf("the patch creates %s, which already exists", text.Quote(name))}
	}
	return f, err
}

func (p *patchPlan) add(fp *filePatch) error {
	switch {
	case fp.old == "":
		return p.create(fp)
	case fp.new == "":
		return p.remove(fp)
	}
	if !fp.git && fp.old != fp.new { // such as diff -u f.orig f
		if f, err := p.file(fp.new, false); err == nil && f.exists {
			fp.old = fp.new
		}
	}
	source, err := p.existing(fp.old)
	if err != nil {
		return err
	}
	base := source.text
	if fp.copied {
		base = source.old // in git's format, the source is the file before the patch
	}
	text, err := p.patch(fp.old, base, fp)
	if err != nil {
		return err
	}
	target := source
	if fp.old != fp.new {
		if target, err = p.absent(fp.new); err != nil {
			return err
		}
		target.origin, target.base, target.moved = source, base, !fp.copied
		target.encoding, target.mode = source.encoding, source.before.mode
		source.exists, source.gone = fp.copied, !fp.copied
	}
	target.text, target.exists = text, true
	target.setMode(fp.mode)
	return nil
}

func (p *patchPlan) create(fp *filePatch) error {
	f, err := p.absent(fp.new)
	if err != nil {
		return err
	}
	f.text, err = p.patch(fp.new, "", fp)
	f.exists, f.gone = true, false
	f.setMode(fp.mode)
	return err
}

func (p *patchPlan) remove(fp *filePatch) error {
	f, err := p.existing(fp.old)
	if err != nil {
		return err
	}
	rest, err := p.patch(fp.old, f.text, fp)
	if err != nil {
		return err
	}
	if rest != "" {
		return mismatchError{fmt.Errorf(
			"the patch deletes %s but leaves %s of it; to delete a file, remove every line in a hunk",
			text.Quote(fp.old), text.Count(len(splitLines(rest)), "line"))}
	}
	f.text, f.exists = "", false
	return nil
}

func (p *patchPlan) patch(name, text string, fp *filePatch) (string, error) {
	out, notes, err := patchText(name, text, fp.hunks, &p.compared)
	p.notes = append(p.notes, notes...)
	if err != nil {
		return "", mismatchError{err}
	}
	return out, nil
}

// setMode sets or clears the execute permission for all users with read
// permission. A new file that is not executable gets the default mode.
func (f *patched) setMode(mode fs.FileMode) {
	base := cmp.Or(f.mode, f.before.mode)
	switch {
	case mode == 0o755 && base == 0:
		f.mode = mode
	case mode == 0o755:
		f.mode = base | base&0o444>>2
	case mode == 0o644:
		f.mode = base &^ 0o111
	}
}

// diff returns the change to one file as git shows it.
func (f *patched) diff() *fileChange {
	data, _ := f.encoding.Bytes(f.text) // stagePatched reports the error
	var head strings.Builder
	var c *fileChange
	switch {
	case f.origin != nil:
		verb := map[bool]string{true: "rename", false: "copy"}[f.renamed()]
		fmt.Fprintf(&head, "%s from %s\n%s to %s\n", verb, plainLabel(f.origin.rel), verb, plainLabel(f.rel))
		c = newChange(f.rel, f.before, f.base, f.text, "", data)
		c.shown = c.diff.unified(diffLabel("a", f.origin.rel), diffLabel("b", f.rel))
	case !f.exists:
		c = newChange(f.rel, f.before, f.old, "", "", nil)
		if c.shown = c.diff.unified(diffLabel("a", f.rel), devNull); c.shown == "" {
			c.shown = fmt.Sprintf("--- %s\n+++ %s\n", diffLabel("a", f.rel), devNull)
		}
	default:
		c = newChange(f.rel, f.before, f.old, f.text, "", data)
	}
	if f.exists && f.mode != 0 && f.mode != f.before.mode && f.origin == nil {
		if f.before.exists {
			fmt.Fprintf(&head, "old mode 100%03o\nnew mode 100%03o\n", f.before.mode, f.mode)
		} else {
			fmt.Fprintf(&head, "new file mode 100%03o\n", f.mode)
		}
	}
	if head.Len() > 0 {
		from := f.rel
		if f.origin != nil {
			from = f.origin.rel
		}
		c.shown = fmt.Sprintf("diff --git %s %s\n", gitLabel("a", from), gitLabel("b", f.rel)) + head.String() + c.shown
	}
	return c
}

func gitLabel(side, rel string) string { return strings.TrimSuffix(diffLabel(side, rel), "\t") }

func plainLabel(rel string) string {
	if needsQuotes(rel) {
		return quoteName(rel)
	}
	return rel
}

// write makes all the changes or none: all new content is written next to its
// destination before the first file is changed, and if a step fails, the earlier
// ones are undone. Changing the files takes only renames, so a killed run is
// very unlikely to leave the patch half applied.
func (p *patchPlan) write() (err error) {
	var staged []*atomicfile.File
	var folders []string
	parents := map[string]*os.Root{}
	defer func() {
		for _, s := range staged {
			s.Close()
		}
		for _, dir := range parents {
			_ = atomicfile.SyncFolder(dir)
			dir.Close()
		}
		if err != nil {
			p.workspace.RemoveFolders(folders)
		}
	}()
	var writes []*patched
	for _, f := range p.order {
		if !f.exists || !f.changes() {
			continue
		}
		folders = append(folders, p.workspace.MissingFolders(f.rel)...)
		s, err := stagePatched(p.workspace, parents, f)
		if err != nil {
			return errors.New(explainWrite(f.rel, err))
		}
		staged, writes = append(staged, s), append(writes, f)
	}
	for i, f := range writes {
		if err := staged[i].Commit(); err != nil {
			return p.undo(writes[:i], nil, f.rel, err)
		}
	}
	var removed []*patched
	for _, f := range p.order {
		if f.exists || !f.before.exists {
			continue
		}
		if err := p.workspace.RemoveFile(f.rel); err != nil {
			return p.undo(writes, removed, f.rel, err)
		}
		removed = append(removed, f)
	}
	return nil
}

// stagePatched stages the new content of a file. Each folder is opened once and
// stored in parents, which the caller closes.
func stagePatched(w *workspace.Editor, parents map[string]*os.Root, f *patched) (*atomicfile.File, error) {
	data, err := f.encoding.Bytes(f.text)
	if err == nil {
		err = w.Protect(f.rel)
	}
	if err != nil {
		return nil, err
	}
	dir := path.Dir(f.rel)
	if parents[dir] == nil {
		parent, err := w.Parent(f.rel)
		if err != nil {
			return nil, err
		}
		parents[dir] = parent
	}
	return workspace.Stage(parents[dir], path.Base(f.rel), data, f.mode)
}

// undo restores the previous state after a step has failed.
func (p *patchPlan) undo(written, removed []*patched, rel string, cause error) error {
	problem := errors.New(explainWrite(rel, cause))
	for _, f := range append(written, removed...) {
		var err error
		if f.before.exists {
			err = p.workspace.WriteFile(f.rel, f.before.data, f.before.mode)
		} else {
			err = p.workspace.RemoveFile(f.rel)
		}
		if err != nil {
			problem = fmt.Errorf("%w; and %s could not be restored: %w", problem, text.Quote(f.rel), err)
		}
	}
	return problem
}
