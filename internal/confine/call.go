package confine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

// maxListed is how many removed files a message names.
const maxListed = 20

// Call returns the tool with its program confined according to a policy
// decision.
func (c *Confiner) Call(t registry.Tool, confined policy.Confinement) registry.Tool {
	run, k := t.Run, c.kind(t.Program)
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		profile, clean, err := c.prepare(ctx, k, []string{t.Folder}, "", confined.Online)
		if err != nil {
			return registry.Result{}, err
		}
		call.Confine = &registry.Confinement{Profile: profile}
		r, err := run(ctx, call)
		if _, ok := errors.AsType[*process.StartError](err); ok {
			err = fmt.Errorf("%w (setting sandbox.%s.read)", err, k.name)
		}
		if call.Confine.Background {
			r.Confined = true
			return r, err
		}
		cleaned, failed := clean(context.WithoutCancel(ctx))
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("cleaning the workspace after the call: %w", failed))
		}
		r.Confined = true
		if note := c.denied(k, profile, call, &r); note != "" {
			r = noted(r, note)
		}
		if len(cleaned.Removed) > 0 {
			r = noted(r, "Deleted after the call, because other programs run commands from such files and a sandboxed program must not create them: "+listed(cleaned.Removed))
		}
		if len(cleaned.Kept) > 0 {
			r = noted(r, "Created or replaced during the call, perhaps not by it, and kept; check them, because other programs run commands from such files: "+listed(cleaned.Kept))
		}
		return r, err
	}
	return t
}

// noted adds a note for the model and the user.
func noted(r registry.Result, note string) registry.Result {
	if r = r.WithNote(note); r.Display.Text != "" {
		r.Display.Text = strings.TrimSuffix(r.Display.Text, "\n") + "\n[" + note + "]\n"
	}
	return r
}

func listed(names []string) string {
	if n := len(names) - maxListed; n > 0 {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}
