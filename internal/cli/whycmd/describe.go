package whycmd

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// describeCall describes in one line what a call would do, and which files it names
// or in which folder a command would run, as far as this is known without
// making the call.
func describeCall(ctx context.Context, t *registry.Tool, call registry.Call, workspace string) (string, []registry.Location) {
	var subject registry.Subject
	if t.Subject != nil {
		subject, _ = t.Subject(call) // omit what is unknown
	}
	var at []registry.Location
	for _, path := range subject.Paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(workspace, filepath.FromSlash(path))
		}
		at = append(at, registry.Location{Path: path})
	}
	if t.Preview != nil {
		p, err := t.Preview(ctx, call)
		if failed, ok := errors.AsType[*registry.FailedError](err); ok {
			return "fail: " + failed.Result.Text(), at
		}
		if err == nil && p.Directory != "" {
			at = append(at, registry.Location{Path: p.Directory})
		}
		if err == nil && p.Title != "" {
			if more := cmp.Or(p.Command, strings.Join(p.URLs, ", ")); more != "" {
				return p.Title + ": " + more, at
			}
			return p.Title, at
		}
	}
	if t.OfServer() {
		return "call " + t.ServerTool + " of server " + t.Server, at
	}
	what := cmp.Or(subject.Command, strings.Join(subject.URLs, ", "), strings.Join(subject.Paths, ", "))
	return strings.TrimSpace("call " + t.Name + " " + what), at
}
