package file

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

//go:embed apply_patch.md
var patchDescription string

const patchMaxBytes = 10 << 20

const patchSchema = `{
  "type": "object",
  "properties": {
    "patch": {"type": "string", "minLength": 1, "description": "The unified diff. Names are relative to the workspace."}
  },
  "required": ["patch"],
  "additionalProperties": false
}`

type patchParams struct {
	Patch string `json:"patch"`
}

// NewApplyPatch returns the tool apply_patch, which applies a unified diff to
// any number of files, all or none.
func NewApplyPatch(w *workspace.Editor) registry.Tool {
	a := &applyPatch{workspace: w}
	return tool.New(registry.Definition{
		Name:        patchName,
		Description: patchDescription,
		Category:    registry.CategoryWrite,
		Tags:        []string{"files"},
		Icon:        "pencil",
		Permissions: []string{"filesystem"},
		InputSchema: json.RawMessage(patchSchema),
		Examples: []registry.Example{
			{Description: "Change one line",
				Params: json.RawMessage(`{"patch":"--- a/port.txt\n+++ b/port.txt\n@@ -1 +1 @@\n-80\n+8080\n"}`)},
		},
	}, tool.Handlers[[]filePatch]{
		Prepare: a.parse,
		Run:     a.run,
		Paths:   func(list []filePatch) ([]string, error) { return a.workspace.ChangedPaths(patchNames(list)...) },
		Preview: a.preview,
	})
}

type applyPatch struct {
	workspace *workspace.Editor
	shown     previews
}

// parse decodes the params and checks that every file may be changed.
func (a *applyPatch) parse(call registry.Call) ([]filePatch, error) {
	p, err := tool.Decode[patchParams](patchName, call)
	if err != nil {
		return nil, err
	}
	if len(p.Patch) > patchMaxBytes {
		return nil, registry.Invalid(patchName, "/patch", "is larger than %s", tool.Size(patchMaxBytes))
	}
	list, err := parsePatch(p.Patch)
	if err != nil {
		return nil, registry.Invalid(patchName, "/patch", "%v", err)
	}
	for _, name := range patchNames(list) {
		if _, err := a.workspace.Changeable(patchName, "/patch", name); err != nil {
			return nil, err
		}
		if _, err := a.workspace.Creatable(patchName, "/patch", name); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// patchNames returns every name in a patch once.
func patchNames(list []filePatch) []string {
	var out []string
	for _, p := range list {
		for _, name := range []string{p.old, p.new} {
			if name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func (a *applyPatch) preview(_ context.Context, call registry.Call, list []filePatch) (registry.Preview, error) {
	plan, err := newPlan(a.workspace, list, call.Hides)
	if err != nil {
		return registry.Preview{},
			&registry.FailedError{Result: failedResult(fmt.Sprintf("%v; nothing was changed", err), err)}
	}
	a.shown.remember(call, plan.sum())
	d := plan.display()
	preview := registry.Preview{
		Kind:       registry.PreviewEdit,
		Title:      "Change " + d.FileName,
		Diff:       d.FileDiff,
		FileName:   d.FileName,
		NewContent: d.NewContent,
		Basis:      fmt.Sprintf("%x", plan.sum()),
	}
	if d.OriginalContent != nil {
		preview.OriginalContent = *d.OriginalContent
	}
	return preview, nil
}

func (a *applyPatch) run(ctx context.Context, call registry.Call, list []filePatch) (registry.Result, error) {
	return a.workspace.Locked(ctx, func() registry.Result {
		plan, err := newPlan(a.workspace, list, call.Hides)
		if err != nil {
			return failedResult(fmt.Sprintf("%v; nothing was changed", err), err)
		}
		if r, moved := tool.Moved(call, plan.rels()...); moved {
			return r
		}
		if a.shown.changed(call, plan.sum()) {
			return tool.Failed("the files were modified after the patch was shown; nothing was written. Read them again and repeat the call")
		}
		if err := plan.write(); err != nil {
			return tool.Failed(fmt.Sprintf("%v; the patch was not applied", err))
		}
		return plan.result()
	})
}

// rels returns the paths of all files.
func (p *patchPlan) rels() []string {
	var out []string
	for _, f := range p.order {
		out = append(out, f.rel)
	}
	return out
}

// sum identifies the states of all files.
func (p *patchPlan) sum() [sha256.Size]byte {
	h := sha256.New()
	for _, f := range p.order {
		sum := f.before.sum()
		fmt.Fprintf(h, "%q %x\n", f.rel, sum)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// display returns the whole change as one diff.
func (p *patchPlan) display() *registry.FileDiff {
	d := &registry.FileDiff{}
	var names []string
	for _, f := range p.order {
		if !f.changes() {
			continue
		}
		names = append(names, f.rel)
		if f.gone {
			continue // shown with the file it was renamed to
		}
		c := f.diff()
		d.FileDiff += c.shown
		d.OriginalContent, d.NewContent = c.original(), c.new
	}
	d.FileName = strings.Join(names, ", ")
	if len(names) > 1 {
		d.OriginalContent, d.NewContent = new(string), ""
	}
	return d
}

func (p *patchPlan) result() registry.Result {
	var did []string
	var where []registry.Location
	added, removed := 0, 0
	for _, f := range p.order {
		if !f.changes() || f.gone {
			continue
		}
		c := f.diff()
		text, more, less := f.outcome(c)
		added, removed = added+more, removed+less
		did = append(did, text)
		if f.exists {
			where = append(where, registry.Location{Path: f.rel, Line: c.diff.firstLine()})
		}
	}
	summary := fmt.Sprintf("changed %s (+%d -%d)", text.Count(len(did), "file"), added, removed)
	r := registry.TextResult(strings.Join(slices.Concat([]string{"Applied the patch:"}, did, p.notes), "\n") + "\n")
	r.Summary = summary
	r.Display.Diff = p.display()
	r.Locations = where
	return r
}

// outcome describes what happened to one file.
func (f *patched) outcome(c *fileChange) (text string, added, removed int) {
	added, removed = c.diff.counts()
	did := fmt.Sprintf("changed %q", f.rel)
	switch {
	case f.origin != nil && f.renamed():
		did = fmt.Sprintf("renamed %q to %q", f.origin.rel, f.rel)
	case f.origin != nil:
		did = fmt.Sprintf("copied %q to %q", f.origin.rel, f.rel)
	case !f.exists:
		did = fmt.Sprintf("deleted %q", f.rel)
	case !f.before.exists:
		did = fmt.Sprintf("created %q", f.rel)
	case f.mode != 0 && f.mode != f.before.mode && f.text == f.old:
		return fmt.Sprintf("changed the mode of %q to %03o", f.rel, f.mode), 0, 0
	}
	return fmt.Sprintf("%s (+%d -%d)", did, added, removed), added, removed
}
