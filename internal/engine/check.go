package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/toolscan"
)

// Checked is what was found in the listings of servers. It is the JSON of servers check.
type Checked struct {
	Findings []toolscan.Finding `json:"findings"` // by server, the most severe first
	Silenced []SilencedFinding  `json:"silenced"` // findings that check.silence accepts
}

// SilencedFinding is a finding that the settings accept.
type SilencedFinding struct {
	toolscan.Finding
	Reason string `json:"reason"`
	Origin string `json:"origin"` // file:line of the entry of check.silence
}

// High reports whether a finding is of severity high.
func (c *Checked) High() bool {
	return slices.ContainsFunc(c.Findings, func(f toolscan.Finding) bool { return f.Severity == toolscan.High })
}

// Check scans what servers and APIs of the session have listed, which needs Options.Listed, and
// their prompts, resources and instructions. Names are also compared with the tools of known,
// which may be nil. A server that fails has an error, and the findings of what it listed
// before. The last error is a *settings.InputError about the settings or the lock file, or the cause
// of ctx.
func (s *Session) Check(ctx context.Context, known *registry.Registry,
	servers []*mcpclient.Source, apis ...*openapi.Source) (Checked, []error, error) {
	listed := s.listed
	out := Checked{Findings: []toolscan.Finding{}, Silenced: []SilencedFinding{}}
	if err := s.checkSilences(); err != nil {
		return out, nil, err
	}
	listings := make([]toolscan.Listing, len(servers), len(servers)+len(apis))
	failed := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, server := range servers {
		wg.Go(func() { listings[i], failed[i] = offersOf(ctx, server) })
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return out, nil, err
	}
	for _, api := range apis {
		listings = append(listings, toolscan.Listing{Server: api.Settings().Name})
	}
	changed, err := s.changes(ctx)
	if err != nil {
		return out, nil, err
	}
	for _, l := range listings {
		about := otherTools(known, listed, l.Server)
		for i := range listed.tools {
			if t := &listed.tools[i]; t.Server == l.Server {
				l.Tools = append(l.Tools, definitionOf(t))
				about.Changed[t.ServerTool] = changed(t)
			}
		}
		s.sortFindings(toolscan.Scan(l, about), &out)
	}
	return out, slices.DeleteFunc(failed, func(err error) bool { return err == nil }), nil
}

// offersOf returns what a server offers besides tools.
func offersOf(ctx context.Context, server *mcpclient.Source) (toolscan.Listing, error) {
	info := server.Info()
	l := toolscan.Listing{Server: info.Name, Instructions: info.Instructions}
	if info.State == mcpclient.StateFailed || info.State == mcpclient.StateNeedsLogin {
		return l, nil // reported with its tools
	}
	prompts, _, err := server.Prompts(ctx)
	if err != nil {
		return l, err
	}
	resources, templates, _, err := server.Resources(ctx)
	for _, p := range prompts {
		p.Server = "" // not the server's text
		l.Prompts = append(l.Prompts, encoded(p))
	}
	for _, r := range resources {
		r.Server = ""
		l.Resources = append(l.Resources, encoded(r))
	}
	for _, t := range templates {
		t.Server = ""
		l.Resources = append(l.Resources, encoded(t))
	}
	return l, err
}

// definitionOf returns a tool in the form of tools/list, as its source gave it.
func definitionOf(t *registry.Tool) json.RawMessage {
	d := t.Upstream().AsSent()
	return encoded(struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  json.RawMessage `json:"annotations,omitempty"`
		Icons        json.RawMessage `json:"icons,omitempty"`
		Execution    json.RawMessage `json:"execution,omitempty"`
		Meta         json.RawMessage `json:"_meta,omitempty"`
	}{t.ServerTool, d.Title(), d.Description, d.InputSchema, d.OutputSchema,
		d.Annotations, d.MCP.Icons, d.MCP.Execution, d.MCP.Meta})
}

// encoded returns a value as JSON, or in Go's form if it has parts that are not JSON.
func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Appendf(nil, "%s", v)
	}
	return data
}

// otherTools returns the tools that those of a server could be mistaken for or refer to: tools of
// other servers and built-in ones.
func otherTools(known *registry.Registry, listed *Listed, server string) toolscan.Known {
	out := toolscan.Known{Changed: map[string][]string{}}
	add := func(t *registry.Tool) {
		if t.Server == server || !t.OfServer() && t.Source != registry.SourceBuiltin {
			return
		}
		out.Others = append(out.Others, t.OriginalName())
		if t.OfServer() && !slices.Contains(out.Servers, t.Server) {
			out.Servers = append(out.Servers, t.Server)
		}
	}
	if known != nil {
		for _, t := range known.Tools() {
			add(t)
		}
	}
	for i := range listed.tools {
		add(&listed.tools[i])
	}
	return out
}

// changes returns a function that names the parts of a tool's definition that differ from what was
// approved or locked.
func (s *Session) changes(ctx context.Context) (func(*registry.Tool) []string, error) {
	approvals := s.policies.approvals()
	locks, err := findLock(s.Settings, s.programs.Environ)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &settings.InputError{Err: err, Hint: registry.HintOf(err)}
	}
	return func(t *registry.Tool) []string {
		parts := approvals.Changed(ctx, t)
		if locks != nil && len(parts) == 0 {
			parts = locks.Changed(t)
		}
		return slices.DeleteFunc(parts,
			func(part string) bool { return part == "behind" || part == "values" || part == registry.PartOverride })
	}, nil
}

// Instructions are what a server says to models about itself.
type Instructions struct {
	Server string
	Text   string // "" if they are withheld
	// Withheld is the gravest finding in them, of severity high; nil if there is none.
	Withheld *toolscan.Finding
}

// Instructions returns the instructions of the servers that have some. They are scanned as in
// [Session.Check].
func (s *Session) Instructions(reg *registry.Registry, servers []*mcpclient.Source) (out []Instructions) {
	for _, server := range servers {
		info := server.Info()
		if strings.TrimSpace(info.Instructions) == "" {
			continue
		}
		one, checked := Instructions{Server: info.Name, Text: info.Instructions}, Checked{}
		s.sortFindings(toolscan.Scan(toolscan.Listing{Server: info.Name, Instructions: info.Instructions},
			otherTools(reg, &Listed{}, info.Name)), &checked)
		if checked.High() {
			one.Text, one.Withheld = "", &checked.Findings[0]
		}
		out = append(out, one)
	}
	return out
}

// checkSilences rejects entries of check.silence for rules that do not exist.
func (s *Session) checkSilences() error {
	rules := toolscan.Rules()
	for _, entry := range s.Settings.Silences {
		if !slices.Contains(rules, entry.Rule) {
			hint := "the rules are " + strings.Join(rules, ", ")
			if near := registry.Near(entry.Rule, rules); len(near) > 0 {
				hint = "did you mean " + near[0] + "?"
			}
			return &settings.InputError{
				Err: fmt.Errorf("%s: check.silence: no rule is named %q", entry.Origin, entry.Rule), Hint: hint,
			}
		}
	}
	return nil
}

// sortFindings adds findings to out: to the silenced ones or to the others.
func (s *Session) sortFindings(found []toolscan.Finding, out *Checked) {
	for _, f := range found {
		about := f.Tool + f.Prompt + f.Resource // one of them
		i := slices.IndexFunc(s.Settings.Silences, func(entry settings.Silence) bool {
			return entry.Rule == f.Rule && (entry.Server == "" || text.MatchName(entry.Server, f.Server)) &&
				(entry.Tool == "" || text.MatchName(entry.Tool, about))
		})
		if i < 0 {
			out.Findings = append(out.Findings, f)
			continue
		}
		entry := s.Settings.Silences[i]
		out.Silenced = append(out.Silenced, SilencedFinding{f, entry.Reason, entry.Origin.String()})
	}
}
