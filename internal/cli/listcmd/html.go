package listcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
	"github.com/toolreg/toolreg/internal/ui/page"
)

func runHTML(ctx context.Context, e *cli.Env, o *options) error {
	if e.IO.JSON {
		return cli.Usage("--html and --json cannot be used together", "remove one of them")
	}
	if _, err := provider.Lookup(o.costs.format); err != nil {
		return err
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{Options: engine.Options{Preset: o.preset, List: true}})
	if err != nil {
		return err
	}
	if err := o.CheckSource(s); err != nil {
		return err
	}
	reg, err := s.Tools.All(ctx) // all tools, because differences from the lock file concern all
	if err != nil {
		return err
	}
	if err := o.CheckCategory(reg); err != nil {
		return err
	}
	e.IO.Diagnose(s.Tools.Diagnostics(reg))
	p, err := newPage(ctx, e, s, reg, o)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page.Write(&b, p); err != nil {
		return err
	}
	if err := e.Config.WriteFile(s.Settings.ProjectRoot, o.html, b.Bytes()); err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--html: %w", err), Hint: "name a file that can be written"}
	}
	e.IO.Notef("%s written to %s", text.Count(len(p.Tools), "tool"), o.html)
	return o.StrictFailure(reg)
}

// Page returns the page of list --html for the tools of a session.
func Page(ctx context.Context, e *cli.Env, s *engine.Session, reg *registry.Registry) ([]byte, error) {
	p, err := newPage(ctx, e, s, reg, &options{costs: costOptions{format: provider.DefaultFormat}})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = page.Write(&b, p)
	return b.Bytes(), err
}

func newPage(ctx context.Context, e *cli.Env, s *engine.Session,
	reg *registry.Registry, o *options) (*page.Page, error) {
	decider, err := s.Calls.Policy(reg)
	if err != nil {
		return nil, err
	}
	tools, denied, err := s.Offers.Split(ctx, reg, o.Sorted(reg))
	if err != nil {
		return nil, err
	}
	if tools, err = unusedTools(ctx, e.Config, tools, o.inactive); err != nil {
		return nil, err
	}
	slices.SortStableFunc(tools, func(a, b *registry.Tool) int { return strings.Compare(a.Name, b.Name) })
	format, formats, err := o.costs.formats(s.Settings.View)
	if err != nil {
		return nil, err
	}
	p := &page.Page{Title: filepath.Base(s.Settings.ProjectRoot),
		Version: e.Version, Made: time.Now(), Format: format.Name}
	for _, d := range s.Tools.Diagnostics(reg) {
		p.Notices = append(p.Notices,
			page.Notice{Severity: string(d.Severity), Message: cli.NamingTool(d), Hint: d.Hint})
	}
	defer shortenPaths(p, s.Settings.ProjectRoot, expand.NewEnviron(e.Config.Environ).Home())
	changes := lockPage(p, s, reg)
	for _, t := range tools {
		p.Tools = append(p.Tools,
			pageTool(ctx, t, engine.Definition(reg, t).Name, decider.DecideTool(ctx, t),
				changes[lockKey{t.Source, t.OriginalName(), t.Version}]))
	}
	pageCosts(p, formats, reg, tools)
	if o.All {
		for _, h := range o.Hidden(slices.Concat(reg.Hidden(), denied)) {
			p.Hidden = append(p.Hidden,
				page.Hidden{Name: h.Name, Source: h.Source, Reason: h.Reason, Setting: h.Setting})
		}
	}
	return p, nil
}

// shortenPaths makes paths in the project relative to its root and replaces the home
// folder by ~, because the page may be shown to people who should not see full paths.
func shortenPaths(p *page.Page, root, home string) {
	var pairs []string
	for _, dir := range []struct{ path, short string }{{root, ""}, {home, "~" + string(filepath.Separator)}} {
		if filepath.IsAbs(dir.path) && filepath.Dir(dir.path) != dir.path {
			pairs = append(pairs, dir.path+string(filepath.Separator), dir.short)
		}
	}
	short := strings.NewReplacer(pairs...)
	each := func(texts ...*string) {
		for _, t := range texts {
			*t = short.Replace(*t)
		}
	}
	for i := range p.Notices {
		each(&p.Notices[i].Message, &p.Notices[i].Hint)
	}
	for i := range p.Hidden {
		each(&p.Hidden[i].Reason, &p.Hidden[i].Setting)
	}
	for i := range p.Tools {
		each(&p.Tools[i].Reason, &p.Tools[i].Origin)
		for j := range p.Tools[i].Facts {
			each(&p.Tools[i].Facts[j].Value)
		}
	}
}

type lockKey struct{ source, name, version string }

// lockPage compares all tools with the lock file in the same way as lock --check, if
// there is a readable one, and returns the changes by tool.
func lockPage(p *page.Page, s *engine.Session, reg *registry.Registry) map[lockKey]*page.Change {
	set := s.Settings
	was, err := lock.Read(set.ProjectRoot)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			p.Notices = append(p.Notices, page.Notice{Severity: string(registry.SeverityError), Message: err.Error()})
		}
		return nil
	}
	recorder := &lock.Recorder{Was: was}
	for _, t := range reg.Tools() {
		for _, v := range reg.Versions(t.Name) {
			if !ownServer(set, was, v) {
				recorder.Filter(v)
				recorder.Override(v, v.OriginalName())
			}
		}
	}
	now := recorder.File()
	if !s.Tools.ReadsProject() {
		now.KeepOverrides(was)
	}
	changes := slices.DeleteFunc(lock.Compare(was, now), func(c lock.Change) bool {
		return c.Kind == lock.Removed && s.Tools.Unasked(reg, c.Source).Reason != ""
	})
	p.Lock = &page.Lock{File: lock.Name, Changes: make([]page.Change, len(changes))}
	byTool := map[lockKey]*page.Change{}
	for i, c := range changes {
		p.Lock.Changes[i] = page.Change{Kind: c.Kind, Source: c.Source, Name: c.Name, Parts: c.Parts, Diff: c.Diff}
		byTool[lockKey{c.Source, c.Name, c.Version}] = &p.Lock.Changes[i]
	}
	return byTool
}

// ownServer reports whether a tool belongs to a server in the user's own
// settings that the lock file leaves out.
func ownServer(set *settings.Settings, was *lock.File, t *registry.Tool) bool {
	entry := set.Entry(t.Server)
	return entry != nil && entry.Origin.Scope == settings.ScopeUser &&
		!slices.ContainsFunc(was.Tools, func(e lock.Entry) bool { return e.Source == t.Source })
}

func pageTool(ctx context.Context, t *registry.Tool, callAs string, v policy.Verdict, change *page.Change) page.Tool {
	out := page.Tool{Name: callAs, DisplayName: t.DisplayName,
		Description: t.Description, Source: t.Source, Category: string(t.Category),
		Decision: v.Decision.String(), Reason: v.Reason, Origin: v.Origin, Change: change, Facts: pageFacts(t)}
	for _, p := range args.WithoutInvalidExamples(ctx, &t.Definition, args.Describe(&t.Definition)) {
		out.Params = append(out.Params, page.Param{
			Name: p.Name, Type: p.Type, Required: p.Required, Default: p.Default, Allowed: p.Allowed,
			Example: cli.QuoteWords(p.Example), Description: p.Description,
		})
	}
	for _, x := range t.Examples {
		out.Examples = append(out.Examples,
			page.Example{Description: x.Description, Command: cli.CallLine(callAs, &t.Definition, x.Params)})
	}
	var schema bytes.Buffer
	if json.Indent(&schema, t.InputSchema, "", "  ") == nil {
		out.Schema = schema.String()
	}
	return out
}

// pageFacts returns other properties of a tool that have short values.
func pageFacts(t *registry.Tool) []page.Fact {
	optional := ""
	if t.Optional {
		optional = "yes"
	}
	var out []page.Fact
	for _, f := range []page.Fact{
		{Name: "Server tool", Value: t.ServerTool}, {Name: "Declared in", Value: t.Declared},
		{Name: "Version", Value: t.Version}, {Name: "Author", Value: t.Author},
		{Name: "Tags", Value: strings.Join(t.Tags, ", ")}, {Name: "Aliases", Value: strings.Join(t.Aliases, ", ")},
		{Name: "Permissions", Value: strings.Join(t.Permissions, ", ")},
		{Name: "Annotations", Value: string(t.Annotations)},
		{Name: "Optional", Value: optional}, {Name: "Fingerprint", Value: t.Fingerprint()},
	} {
		if f.Value != "" {
			out = append(out, f)
		}
	}
	return out
}

func pageCosts(p *page.Page, formats []provider.Format, reg *registry.Registry, tools []*registry.Tool) {
	defs, names := engine.Definitions(reg, tools), engine.Names(reg)
	at := make(map[string]int, len(defs))
	for i := range defs {
		at[defs[i].Name] = i
	}
	for _, f := range formats {
		out, _ := f.Encode(defs, provider.Options{Registered: names})
		for _, d := range out.Declarations {
			t := &p.Tools[at[d.Tool]]
			t.Costs = append(t.Costs, page.Cost{Format: f.Name, Bytes: len(d.Data), Tokens: f.Tokens(d.Data)})
		}
		p.Costs = append(p.Costs, page.Cost{Format: f.Name, Bytes: len(out.Data), Tokens: f.Tokens(out.Data)})
	}
}

func showTool(ctx context.Context, p *cli.Page, t *registry.Tool, callAs string) {
	p.Field("name", t.Name, ui.Bold)
	if t.DisplayName != t.Name {
		p.Field("display name", t.DisplayName, 0)
	}
	p.Field("title", t.MCP.Title, 0)
	p.Field("source", t.Source, 0)
	p.Field("server tool", t.ServerTool, 0)
	p.Field("declared in", t.Declared, 0)
	if o := cli.NewOverride(t); o != nil {
		p.Field("override", o.Origin, 0)
	}
	p.Field("category", string(t.Category), 0)
	p.Field("tags", strings.Join(t.Tags, ", "), 0)
	p.Field("version", t.Version, 0)
	p.Field("author", t.Author, 0)
	p.Field("icon", t.Icon, 0)
	if t.Optional {
		p.Field("optional", "yes", 0)
	}
	p.Field("aliases", strings.Join(t.Aliases, ", "), 0)
	p.Field("permissions", strings.Join(t.Permissions, ", "), 0)
	p.Field("annotations", string(t.Annotations), 0)
	p.Field("fingerprint", t.Fingerprint(), ui.Dim)
	if t.Description != "" {
		p.Title("description")
		p.Block(t.Description)
	}
	p.Params(ctx, t)
	p.JSON("output schema", t.OutputSchema)
	p.Examples(t, callAs)
}

func showUpstream(ctx context.Context, p *cli.Page, t *registry.Tool) {
	o := cli.NewOverride(t)
	if o == nil {
		return
	}
	p.JSON("override", o.Entry)
	p.Space()
	p.Title("without the override")
	p.Field("name", o.Upstream.Name, ui.Bold)
	p.Field("display name", o.Upstream.DisplayName, 0)
	p.Field("category", string(o.Upstream.Category), 0)
	p.Field("tags", strings.Join(o.Upstream.Tags, ", "), 0)
	if o.Upstream.Description != "" {
		p.Title("description")
		p.Block(o.Upstream.Description)
	}
	p.Params(ctx, &registry.Tool{Definition: *o.Upstream})
	p.JSON("output schema", o.Upstream.OutputSchema)
}
