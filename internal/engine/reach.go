package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/provider/deferred"
	"github.com/toolreg/toolreg/internal/registry"
)

// describing is a decider that allows every call, for tools that only describe others.
type describing struct{}

func (describing) Decide(context.Context, *registry.Tool, registry.Call) policy.Verdict {
	return policy.Verdict{Decision: policy.Allow, Reason: "it only describes tools", Origin: "default"}
}

// executor makes the calls of search_tools and describe_tools. Rules and hooks apply only
// to tools of the registry, and these two show only tools that are offered.
func (r *reach) executor() *exec.Executor {
	return &exec.Executor{Validate: r.registry.Validate, Decider: describing{}, Observe: r.audit.Call, Warn: r.deps.Warn, Wrap: []registry.Middleware{r.gate.runs.LimitOutput}}
}

func (r *reach) answer(ctx context.Context, call registry.Call) (registry.Result, error) {
	var a deferred.Answer
	var err error
	switch r.kind {
	case deferred.SearchTools:
		a, err = r.search(ctx, call.Params)
	case deferred.DescribeTools:
		a, err = r.describe(call.Params)
	default:
		err = errors.New("the tool to call was not resolved")
	}
	if err != nil {
		return registry.Result{}, err
	}
	a.Unavailable = failedSources(r.registry)
	text, err := a.Text()
	return registry.Result{Content: []registry.Content{registry.TextContent(text)}}, err
}

// checkQuery rejects a blank query, which the schema accepts.
func (r *reach) checkQuery(_ context.Context, call registry.Call) error {
	query, _ := jsonx.Text(jsonx.Get(call.Params, "query"))
	if strings.TrimSpace(query) == "" {
		return registry.Invalid(call.Tool, "/query", "is blank; describe in a few words what the tool should do")
	}
	return nil
}

// searchParams are the params of search_tools, and of a search that a provider
// leaves to its client.
type searchParams struct {
	Query string  `json:"query"`
	Limit float64 `json:"limit"` // an integer, perhaps written as 5.0
}

func readSearch(raw json.RawMessage) (searchParams, error) {
	p := searchParams{Limit: deferred.DefaultFound}
	return p, json.Unmarshal(raw, &p)
}

func (r *reach) search(ctx context.Context, raw json.RawMessage) (deferred.Answer, error) {
	p, err := readSearch(raw)
	if err != nil {
		return deferred.Answer{}, err
	}
	found, matched, err := r.Search(ctx, r.offered, p.Query, int(p.Limit))
	if err != nil {
		return deferred.Answer{}, err
	}
	a := deferred.Answer{Matched: &matched, Searched: len(r.offered)}
	for _, f := range found {
		a.Tools = append(a.Tools, deferred.Describe(r.nameOf(f.Tool), &f.Tool.Definition))
	}
	if len(found) == 0 {
		a.Notes = []string{"No tool matches. Try other words, or the name of a server."}
		return a, nil
	}
	a.Notes = []string{"Call these with " + r.names[deferred.CallTool] + ", unless they are declared to you."}
	a.Shorten(r.names[deferred.DescribeTools])
	return a, nil
}

// describe describes tools by the names that the model knows, or by any other name that
// they have.
func (r *reach) describe(raw json.RawMessage) (deferred.Answer, error) {
	var p struct{ Names []string }
	if err := json.Unmarshal(raw, &p); err != nil {
		return deferred.Answer{}, err
	}
	tools := make(map[string]*registry.Tool, len(r.offered))
	names := make([]string, len(r.offered))
	for i, t := range r.offered {
		names[i] = r.nameOf(t)
		tools[names[i]] = t
	}
	var a deferred.Answer
	for i, name := range p.Names {
		if slices.Contains(p.Names[:i], name) {
			continue
		}
		t := tools[name]
		if other, err := r.registry.Lookup(name); t == nil && err == nil && slices.Contains(r.offered, other) {
			t = other
		}
		if t != nil {
			a.Tools = append(a.Tools, deferred.Describe(name, &t.Definition))
		} else {
			a.Tools = append(a.Tools, deferred.Missing(name, registry.Near(name, names)))
		}
	}
	return a, nil
}

// nameOf returns the name by which the model knows a tool.
func (r *reach) nameOf(t *registry.Tool) string {
	if name := r.declared[t.Name]; name != "" {
		return name
	}
	return t.Name
}

// failedSources returns the names of the sources that failed.
func failedSources(reg *registry.Registry) []string {
	var failed []string
	for _, r := range reg.Reports() {
		if r.State == registry.StateFailed {
			failed = append(failed, r.Name)
		}
	}
	return failed
}

// SearchDeclarations answers a search that a provider leaves to its client, with the
// declarations of the tools that it finds, except those that are always declared. It is
// checked and logged as a call of search_tools. It also returns the registry. The error
// is a *registry.ArgsError if raw is invalid, an *InputError, or the cause of ctx.
func (s *Session) SearchDeclarations(ctx context.Context, format provider.Format, raw []byte) (whole *registry.Registry, tools []json.RawMessage, err error) {
	if whole, err = s.All(ctx); err != nil {
		return whole, nil, err
	}
	f, _, err := s.reaching(ctx, whole, deferred.SearchTools, format.Name)
	if err != nil {
		return whole, nil, err
	}
	f.Tool.Run = func(ctx context.Context, call registry.Call) (_ registry.Result, err error) {
		tools, err = f.reach.declarations(ctx, format, call.Params)
		return registry.Result{}, err
	}
	_, err = s.CallJSON(ctx, f, f.Tool.Name, raw)
	return whole, tools, err
}

// declarations declares the tools that a search finds.
func (r *reach) declarations(ctx context.Context, format provider.Format, raw json.RawMessage) ([]json.RawMessage, error) {
	p, err := readSearch(raw)
	if err != nil {
		return nil, err
	}
	always := r.alwaysDeclared()
	hidden := slices.DeleteFunc(slices.Clone(r.offered), func(t *registry.Tool) bool {
		said := t.Provider.DeferLoading
		return said != nil && !*said || always(&t.Definition)
	})
	found, _, err := r.Search(ctx, hidden, p.Query, int(p.Limit))
	tools := make([]*registry.Tool, len(found))
	for i := range found {
		tools[i] = found[i].Tool
	}
	return r.overview(r.offered).Found(format, Definitions(r.registry, tools), Names(r.registry)), err
}
