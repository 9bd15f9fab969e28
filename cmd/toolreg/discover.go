package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/registry"
)

type discoverOptions struct{ strict bool }

func newDiscoverCommand(a *app) *cobra.Command {
	o := &discoverOptions{}
	cmd := &cobra.Command{
		Use:   "discover [SERVER…]",
		Short: "Run discovery and report what each source gave",
		Long: `Run all sources, or only the MCP servers named, and report the state of each,
its tools, its time, and everything that was noticed. Input schemas are compiled
too, so that tools which could not be called are found.

With the setting cache.discovery a source that is kept is not run; its age is
shown, and --refresh runs it. --cached runs nothing and tells what is missing.

In a pipe each source is one line: name, state, tools, milliseconds, error and
the age of what was kept, separated by tabs.
Exit codes: 0, 2, 3 (no such server), 8 (with --strict, when a source failed).`,
		RunE: func(cmd *cobra.Command, argv []string) error { return runDiscover(cmd.Context(), a, o, argv) },
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "fail with exit code 8 when any source failed")
	return cmd
}

type sourceReport struct {
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	State      registry.State `json:"state"`
	Tools      int            `json:"tools"`
	DurationMs int64          `json:"durationMs"`
	Error      string         `json:"error,omitempty"`
	CachedAt   *time.Time     `json:"cachedAt,omitempty"` // of a source that was not asked
	AgeMs      int64          `json:"ageMs,omitempty"`    // likewise
}

func runDiscover(ctx context.Context, a *app, o *discoverOptions, names []string) error {
	a.thorough = !a.globals.Quiet
	a.reports = a.globals.JSON && a.jq == nil
	if err := a.setup(ctx); err != nil {
		return err
	}
	from, err := a.sources.named(names)
	if err != nil {
		return err
	}
	reg := a.load(ctx, from, false)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if len(names) == 0 {
		if err := a.checkComposites(reg); err != nil {
			return err
		}
	}
	diags := slices.Concat(reg.Diagnostics(), reg.CompileAll(ctx))
	reports := a.sourceReports(reg, names)
	if err := a.printReports(reg, reports, diags); err != nil {
		return err
	}
	return (&selection{strict: o.strict}).strictFailure(reg)
}

// named returns the sources to run: all, or the servers of these names.
func (s *sources) named(names []string) ([]registry.Source, error) {
	if len(names) == 0 {
		return s.all(), nil
	}
	var out []registry.Source
	for _, name := range names {
		found := false
		for _, server := range s.servers {
			if registry.MatchName(name, server.Info().Name) {
				out, found = append(out, server), true
			}
		}
		found = found || slices.ContainsFunc(s.off, func(o offServer) bool { return registry.MatchName(name, o.Name) })
		if !found {
			return nil, s.unknownServer(name)
		}
	}
	return slices.Compact(out), nil
}

func (s *sources) unknownServer(name string) error {
	var known []string
	for _, server := range s.servers {
		known = append(known, server.Info().Name)
	}
	for _, off := range s.off {
		known = append(known, off.Name)
	}
	return newNoServerError(name, known)
}

// noServerError tells that the settings have no server of a name. It counts as
// [registry.ErrNotFound].
type noServerError struct{ message string }

func newNoServerError(name string, known []string) error {
	message := fmt.Sprintf("no server named %q (%d in the settings)", name, len(known))
	if near := registry.Near(name, known); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return &noServerError{message}
}

func (e *noServerError) Error() string { return e.message }

func (e *noServerError) Is(target error) bool { return target == registry.ErrNotFound }

// sourceReports lists what became of each source, those that were not run at the end.
func (a *app) sourceReports(reg *registry.Registry, names []string) []sourceReport {
	out := []sourceReport{}
	for _, r := range reg.Reports() {
		s := sourceReport{Name: r.Name, Kind: kindOf(r.Name), State: r.State, Tools: r.Tools, DurationMs: r.Duration.Milliseconds()}
		if r.Err != nil {
			s.Error = r.Err.Error()
		}
		if at, kept := a.sources.memory.listings.Served(r.Name); kept {
			s.CachedAt, s.AgeMs = &at, a.sources.memory.listings.Age(r.Name).Milliseconds()
		}
		out = append(out, s)
	}
	for _, off := range a.sources.off {
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return registry.MatchName(n, off.Name) }) {
			out = append(out, sourceReport{Name: registry.MCPPrefix + off.Name, Kind: "mcp", State: registry.StateSkipped, Error: off.reason()})
		}
	}
	return out
}

func kindOf(source string) string {
	kind, _, _ := strings.Cut(source, ":")
	return kind
}

func (a *app) printReports(reg *registry.Registry, reports []sourceReport, diags []registry.Diagnostic) error {
	if !a.reports {
		a.diagnose(slices.DeleteFunc(slices.Clone(diags), func(d registry.Diagnostic) bool { return d.Code == "source_failed" }))
	}
	if a.globals.JSON {
		return a.printJSON(struct {
			Sources     []sourceReport        `json:"sources"`
			Tools       int                   `json:"tools"`
			Diagnostics []registry.Diagnostic `json:"diagnostics"`
		}{reports, reg.Len(), orEmpty(slices.Concat(a.early, diags))})
	}
	t := agedTable{table: table{header: []string{"SOURCE", "STATE", "TOOLS", "TIME", "ERROR"}}}
	for _, r := range reports {
		elapsed := strconv.FormatInt(r.DurationMs, 10)
		if a.outTTY {
			elapsed = (time.Duration(r.DurationMs) * time.Millisecond).String()
		}
		t.addAged(r.CachedAt, r.AgeMs, r.Name, string(r.State), strconv.Itoa(r.Tools), elapsed, r.Error)
	}
	return t.print(a)
}
