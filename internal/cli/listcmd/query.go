package listcmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// listed is one tool in the JSON of list.
type listed struct {
	*registry.Definition
	Fingerprint string        `json:"fingerprint"`        // hash of the definition and of what provides it
	Override    *cli.Override `json:"override,omitempty"` // with --all
}

// Document is the JSON of list.
type Document struct {
	Tools       []listed              `json:"tools"`
	Hidden      []registry.Hidden     `json:"hidden,omitempty"` // with --all: tools that are not in the registry
	Diagnostics []registry.Diagnostic `json:"diagnostics"`
}

// Query is what to list.
type Query struct {
	cli.Selection
	Tool string // a name or a glob; "" for all tools
	All  bool   // also hidden tools, and overrides
}

// Document lists tools of a session.
func (q *Query) Document(ctx context.Context, s *engine.Session) (Document, error) {
	f, err := q.findTools(ctx, s)
	if err != nil {
		return Document{}, err
	}
	d := q.document(f)
	d.Tools = listedTools(f.tools, q.All)
	return d, nil
}

type found struct {
	reg          *registry.Registry
	tools        []*registry.Tool // in the order of listings
	hidden       func() []registry.Hidden
	noticed, off []registry.Diagnostic // off: one for each server that a setting turns off
}

// document returns the document without the tools.
func (q *Query) document(f found) Document {
	d := Document{Diagnostics: cli.OrEmpty(slices.Concat(f.noticed, f.off))}
	if q.All {
		d.Hidden = f.hidden()
	}
	return d
}

// findTools finds the tools, and what is known of hidden ones. If ctx ends, it returns what was
// loaded before. With an error it returns the registry, if there is one, and its diagnostics.
func (q *Query) findTools(ctx context.Context, s *engine.Session) (found, error) {
	reg, tools, err := q.tools(ctx, s)
	if reg == nil {
		return found{}, err
	}
	f := found{reg: reg, noticed: s.Tools.Diagnostics(reg), hidden: func() []registry.Hidden { return nil }}
	if err != nil && context.Cause(ctx) == nil {
		return f, err
	}
	if q.All && q.Tool == "" {
		if f.off, err = q.disabledServers(s); err != nil {
			return f, err
		}
	}
	if q.named() {
		f.tools = tools
		return f, nil
	}
	var denied []registry.Hidden
	if f.tools, denied, err = s.Offers.Split(ctx, reg, tools); err != nil {
		return f, err
	}
	if q.Tool != "" {
		f.hidden = func() []registry.Hidden { return denied }
		return f, nil
	}
	if q.All || s.Settings.Script.Declared() { // its name depends on those of all tools
		script, hidden, listErr := s.Scripts.Listed(ctx, reg)
		if err = listErr; script != nil {
			f.tools = append(f.tools, q.Apply([]*registry.Tool{script})...)
		} else if hidden != nil && q.All {
			denied = append(denied, *hidden)
		}
	}
	f.hidden = func() []registry.Hidden { return q.Hidden(append(reg.Hidden(), denied...)) } // it is seldom shown
	return f, err
}

// named reports whether one tool is wanted, which is listed even if every call of it is
// denied.
func (q *Query) named() bool { return q.Tool != "" && !text.IsGlob(q.Tool) }

// tools returns the selected tools in the order of listings, limited to those with the name if
// there is one.
func (q *Query) tools(ctx context.Context, s *engine.Session) (*registry.Registry, []*registry.Tool, error) {
	if q.named() {
		f, err := s.Tools.Find(ctx, q.Tool, engine.Query{Script: true})
		if err != nil {
			return f.Registry, nil, err
		}
		return f.Registry, q.Apply([]*registry.Tool{f.Tool}), nil
	}
	reg, err := q.Load(ctx, s)
	if reg == nil {
		return nil, nil, err
	}
	tools := q.Sorted(reg)
	if q.Tool == "" || err != nil {
		return reg, tools, err
	}
	matched, err := s.Tools.Matching(reg, q.Tool)
	return reg, slices.DeleteFunc(tools, func(t *registry.Tool) bool { return !slices.Contains(matched, t) }), err
}

// disabledServers returns a diagnostic for each server that a setting turns off. The tools of
// such a server are not known.
func (q *Query) disabledServers(s *engine.Session) ([]registry.Diagnostic, error) {
	_, off, err := s.Servers.Named()
	if err != nil {
		return nil, err
	}
	var out []registry.Diagnostic
	for _, server := range off {
		if q.MatchesServer(server.Name) {
			out = append(out, registry.Diagnostic{Severity: registry.SeverityInfo, Code: "server_disabled",
				Source: server.Source(), Message: fmt.Sprintf("server %q is %s", server.Name, server.Reason())})
		}
	}
	return out, nil
}

func listedTools(tools []*registry.Tool, all bool) []listed {
	out := make([]listed, len(tools))
	var prints registry.Fingerprinter
	for i, t := range tools {
		out[i] = listed{Definition: t.AsSent(), Fingerprint: prints.Of(t)}
		if all {
			out[i].Override = cli.NewOverride(t)
		}
	}
	return out
}
