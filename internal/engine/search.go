package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/toolsearch"
)

// Ranked is a tool that a search found.
type Ranked struct {
	Tool  *registry.Tool
	Score float64
}

// Search returns the tools that match a query, the best first and at most limit of them,
// and the number of all matches. If search.command fails, the order stays unchanged and
// there is a warning.
func (o *Offers) Search(ctx context.Context, tools []*registry.Tool, query string, limit int) (found []Ranked, matched int, err error) {
	descriptions := map[string]string{}
	for _, server := range o.set.Entries() {
		descriptions[server.Name] = server.Description
	}
	documents := make([]toolsearch.Document, len(tools))
	for i, t := range tools {
		documents[i] = toolsearch.Of(&t.Definition, descriptions[t.Server])
	}
	wanted := limit
	if len(o.set.Search.Command.Argv) > 0 {
		wanted = max(limit, toolsearch.Candidates)
	}
	hits, matched := toolsearch.New(documents).Rank(query, wanted)
	for _, h := range hits {
		found = append(found, Ranked{tools[h.Document], h.Score})
	}
	if len(o.set.Search.Command.Argv) > 0 && len(found) > 0 {
		if found, err = o.reordered(ctx, found, query, limit); err != nil {
			return nil, 0, err
		}
	}
	return found[:min(limit, len(found))], matched, nil
}

// reordered runs search.command to reorder the results. Tools that it does not
// name come last. The error is the cause of ctx.
func (o *Offers) reordered(ctx context.Context, found []Ranked, query string, limit int) ([]Ranked, error) {
	candidates := make([]toolsearch.Candidate, len(found))
	for i, f := range found {
		candidates[i] = toolsearch.Candidate{Name: f.Tool.Name, Description: f.Tool.Description, Server: f.Tool.Server, InputSchema: f.Tool.InputSchema, Score: f.Score}
	}
	argv, err := o.expander.Command(o.set.Search.Command)
	if err != nil {
		return o.unordered(found, err)
	}
	command := toolsearch.Command{Argv: argv, Dir: o.set.ProjectRoot, Env: o.envFor(o.set.Search.Command), Timeout: o.set.Search.Timeout,
		Confine: o.confiner.ProgramsOf(confine.Processor, o.set.Search.Command.Origin.Scope)}
	order, unknown, err := command.Order(ctx, query, limit, candidates)
	switch {
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return o.unordered(found, err)
	case len(unknown) > 0:
		o.notices.add(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "search_command_unknown_tool",
			Message: fmt.Sprintf("search.command named unknown tools, which are ignored: %s", text.Quote(strings.Join(unknown, ", ")))})
	}
	out := make([]Ranked, 0, len(found))
	for _, i := range order {
		out = append(out, found[i])
	}
	for i, f := range found {
		if !slices.Contains(order, i) {
			out = append(out, f)
		}
	}
	return out, nil
}

func (o *Offers) unordered(found []Ranked, err error) ([]Ranked, error) {
	o.notices.add(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "search_command_failed",
		Message: fmt.Sprintf("search.command failed: %v; tools are listed by score", err), Hint: "set at " + o.set.Search.Command.Origin.String()})
	return found, nil
}
