package file

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/text"
)

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
