package confine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// maxListed is the maximum number of removed files that a message names.
const maxListed = 20

// Call returns the tool with its program confined according to a policy
// decision.
func (c *Confiner) Call(t registry.Tool, confined policy.Confinement) registry.Tool {
	run, k := t.Run, c.kind(t.Program)
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		profile := c.profile(k, sandbox.Place{Own: []string{t.Folder}}, confined.Online) // it collects the names of this call
		guarded, err := c.protect(ctx, k, &profile)
		if err != nil {
			return registry.Result{}, err
		}
		confinement := &process.Confinement{Profile: &profile, Logs: c.logs(), Private: c.private()}
		r, err := run(process.WithConfinement(ctx, confinement), call)
		if _, ok := errors.AsType[*process.StartError](err); ok {
			err = fmt.Errorf("%w (setting sandbox.%s.read)", err, k.name)
		}
		if confinement.Background {
			guarded.Forget() // the process that runs the program has its own
			r.Confined = true
			if c.mentionsTemporary(call.Params) {
				r = r.WithShownNote("The command has a /tmp, /var/tmp and /dev/shm of its own, which other commands do not see and which are deleted when it ends; keep in the workspace what they need.")
			}
			return r, err
		}
		cleaned, failed := guarded.Clean(context.WithoutCancel(ctx), profile.Created.Has)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("cleaning the workspace after the call: %w", failed))
		}
		r.Confined = true
		if r.IsError || err != nil {
			r.Denied = c.denied(k, confinement, &r)
		}
		if len(r.Denied) > 0 {
			r = r.WithShownNote("The sandbox denied: " + strings.Join(r.Denied, "; "))
		}
		if k.name == Shell && c.mentionsTemporary(call.Params) {
			r = r.WithShownNote("The command had a /tmp, /var/tmp and /dev/shm of its own, which are deleted by now; keep in the workspace what later commands need.")
		}
		if len(cleaned.Removed) > 0 {
			r = r.WithShownNote("Deleted after the call, because other programs run commands from such files and a sandboxed program must not create them: " +
				listed(cleaned.Removed))
		}
		if len(cleaned.Kept) > 0 {
			r = r.WithShownNote("Created or replaced during the call, perhaps not by it, and kept; check them, because other programs run commands from such files: " +
				listed(cleaned.Kept))
		}
		return r, err
	}
	return t
}

// mentionsTemporary reports whether the params of a call name a folder for temporary files, which is
// deleted when the call ends.
func (c *Confiner) mentionsTemporary(params []byte) bool {
	text := strings.ReplaceAll(string(params), c.opts.Settings.Workspace, ".")
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r != '/' && r != '.' && r != '-' && r != '_' && r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.ContainsFunc([]string{"/tmp", "/var/tmp", "/dev/shm"},
			func(folder string) bool { return word == folder || strings.HasPrefix(word, folder+"/") })
	})
}

func listed(names []string) string {
	if n := len(names) - maxListed; n > 0 {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}
