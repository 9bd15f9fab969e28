package serverscmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/cli/settingsfile"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/install"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpregistry"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
	"github.com/toolreg/toolreg/internal/toolscan"
	"github.com/toolreg/toolreg/internal/ui"
)

func newUpgradeCommand(e *cli.Env) *cobra.Command {
	o := &describedOptions{}
	cmd := &cobra.Command{
		Use:   "upgrade NAME…",
		Short: "Upgrade servers to the latest version in their registry",
		Long: editHelp(`Upgrade servers that were added from a registry to their latest versions there.

toolreg shows how the command changes, asks, starts the new version beside the old
one, shows how the definitions of tools change, and asks again. What you have changed
in the entry is kept. A version is never replaced by a lower one, and an entry whose
new version cannot be started stays as it is.

Without a terminal --yes agrees to both, unless servers check has a finding of
severity high in the new version; then the exit code is 9. Values that only the new
version needs are asked for, or given by --set.`, describedCodes),
		Example:           `  toolreg servers upgrade github-mcp-server`,
		Args:              cli.ArgsBetween(1, -1, "the NAME of a server"),
		ValidArgsFunction: complete.Args(e.Complete().Servers()),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if len(argv) > 1 && len(o.set) > 0 {
				return cli.Usage("--set is for one server", "")
			}
			return runUpgrade(cmd.Context(), e, o, argv)
		},
	}
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "`NAME=VALUE`: a value of the new version (repeatable)")
	return cmd
}

// upgradedServer is the result of upgrading a server, as JSON.
type upgradedServer struct {
	Name    string        `json:"name"`
	Action  string        `json:"action"`  // upgraded, unchanged
	Version string        `json:"version"` // of the entry now
	Was     string        `json:"was,omitempty"`
	Runs    string        `json:"runs,omitempty"`    // command or address of the new version
	Changes []lock.Change `json:"changes,omitempty"` // of the definitions of its tools
}

func runUpgrade(ctx context.Context, e *cli.Env, o *describedOptions, names []string) error {
	given, err := parseGiven(o.set)
	if err != nil {
		return err
	}
	upgraded := []upgradedServer{}
	for _, name := range names {
		s, err := beforeChange(ctx, e.Config) // the last upgrade has changed the file
		if err != nil {
			return err
		}
		u := &upgrade{settings: s, set: given}
		result, err := u.run(ctx, e, name)
		if err != nil {
			return err
		}
		upgraded = append(upgraded, result)
	}
	return e.IO.Report(map[string][]upgradedServer{"servers": upgraded})
}

// upgrade replaces one version of a server by the latest.
type upgrade struct {
	settings *settings.Settings
	server   *settings.Server
	set      serverjson.Given // values of the command line
	found    engine.Checked   // what the new version says to steer a model
}

func (u *upgrade) run(ctx context.Context, e *cli.Env, name string) (upgradedServer, error) {
	file, err := u.findServer(e, name)
	if err != nil {
		return upgradedServer{}, err
	}
	from, i := u.server.From, installer(e, u.settings)
	known, err := i.Registries(ctx)
	if err != nil {
		return upgradedServer{}, err
	}
	r, err := install.RegistryAt(known, from.Registry)
	if err != nil {
		return upgradedServer{}, err
	}
	latest, err := install.FindIn(ctx, []*mcpregistry.Registry{r}, from.Name, mcpregistry.Latest)
	if err != nil {
		return upgradedServer{}, err
	}
	unchanged := upgradedServer{Name: name, Action: "unchanged", Version: from.Version}
	switch compared := install.CompareVersions(latest.Server.Version, from.Version); {
	case compared < 0:
		e.IO.Notef("server %q stays at version %s, because the registry has only the lower version %s",
			name, from.Version, latest.Server.Version)
		return unchanged, nil
	case compared == 0:
		e.IO.Notef("server %q is up to date (%s)", name, from.Version)
		return unchanged, nil
	}
	defer latest.Close()
	next, err := i.Upgrade(ctx, u.server, r, latest)
	if err != nil {
		return upgradedServer{}, err
	}
	maps.Copy(next.Given, u.set)
	q := &questions{Installation: next.Installation, verb: "upgrading"}
	if err := q.choose(ctx, e, next.Runtime()); err != nil {
		return upgradedServer{}, err
	}
	if q.Plan == nil {
		return upgradedServer{}, q.confirm(ctx, e, q.about(false), "") // it reports what is missing
	}
	sets, err := next.Changes(u.set)
	if changed, ok := errors.AsType[*install.ChangedError](err); ok {
		return upgradedServer{}, &cli.UsageError{
			Err: err,
			Hint: "change it with toolreg servers edit " + cli.Quote(name) +
				"; the new version runs " + runsLine(changed.Now),
		}
	}
	if err != nil {
		return upgradedServer{}, err
	}
	if err := q.confirm(ctx, e, q.about(false)+u.commandChange(sets),
		"Start the new version to compare its tools?"); err != nil {
		return upgradedServer{}, err
	}
	undo, err := next.Store()
	if err != nil {
		return upgradedServer{}, err
	}
	changes, err := u.compare(ctx, e, sets)
	if err != nil {
		err = fmt.Errorf("version %s cannot be used, so server %q stays at %s: %w",
			latest.Server.Version, name, from.Version, err)
		return upgradedServer{}, errors.Join(err, undo())
	}
	shown := fmt.Sprintf("%s %s, tools:\n%s", ui.Line(name), ui.Line(latest.Server.Version), toolChanges(changes))
	for _, f := range u.found.Findings {
		if f.Rule != toolscan.ChangedDefinition { // the changes are shown
			shown += findingText(f)
		}
	}
	if u.found.High() && (e.Config.Globals.Yes || e.IO.JSON) {
		e.IO.Note(shown)
		e.IO.Notef("server %q stays at %s because of what version %s says", name, from.Version, latest.Server.Version)
		if err := undo(); err != nil {
			return upgradedServer{}, err
		}
		return upgradedServer{}, &cli.ExitError{Code: cli.ExitCheckFailed}
	}
	if err := q.confirm(ctx, e, shown, "Upgrade it?"); err != nil {
		return upgradedServer{}, errors.Join(err, undo())
	}
	c := change{action: "upgraded", names: []string{name}, files: []string{file}, apply: sets.Apply, part: true}
	if err := c.run(ctx, e, u.settings); err != nil {
		return upgradedServer{}, errors.Join(err, undo())
	}
	noteBundle(e, u.settings, name)
	return upgradedServer{name, "upgraded", latest.Server.Version, from.Version, runsLine(q.Plan), changes},
		i.Remember(ctx, latest)
}

func (u *upgrade) findServer(e *cli.Env, name string) (file string, err error) {
	if u.settings.API(name) != nil {
		return "", &cli.UsageError{Err: fmt.Errorf("%q is an API, which was not added from a registry", name)}
	}
	if u.server = u.settings.Server(name); u.server == nil {
		return "", noServerToEdit(u.settings, name)
	}
	if u.server.From == nil || u.server.From.Registry == "" {
		return "", cli.Usage(fmt.Sprintf("server %q (%s) was not added from a registry", name, u.server.Origin),
			"toolreg servers edit "+cli.Quote(name)+" changes its command")
	}
	files, err := settingsfile.Paths(e, "")
	if err != nil {
		return "", err
	}
	if !slices.Contains(files, u.server.Origin.Name) {
		return "", noServerToEdit(u.settings, name)
	}
	return u.server.Origin.Name, nil
}

func (u *upgrade) commandChange(sets install.Members) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-11s %s\n", "was",
		ui.Line(runsLine(&serverjson.Plan{Command: u.server.Command,
			Args: u.server.Args, URL: cmp.Or(u.server.HTTPURL, u.server.URL)})))
	for _, m := range sets.List {
		if m.Path[0] == "from" {
			continue
		}
		value := "(removed)"
		if m.Value != nil {
			value = string(m.Value)
		}
		fmt.Fprintf(&b, "  %-11s %s\n", "changes", ui.Line(strings.Join(m.Path, ".")+": "+value))
	}
	return b.String()
}

// compare starts both versions and compares the definitions of their tools. If the old one
// does not start, all tools are new.
func (u *upgrade) compare(ctx context.Context, e *cli.Env, sets install.Members) ([]lock.Change, error) {
	old, err := u.definitions(ctx, e, u.settings)
	if err != nil {
		e.IO.Warn(registry.Warning("upgrade_not_compared", registry.MCPPrefix+u.server.Name,
			"the version in use does not start, so its tools are not known: "+err.Error(), ""))
		old = &lock.File{}
	}
	entry, err := u.entry(sets)
	if err != nil {
		return nil, err
	}
	next, err := u.settings.WithServer(u.server.Name, entry)
	if err != nil {
		return nil, err
	}
	now, err := u.definitions(ctx, e, next)
	if err != nil {
		return nil, err
	}
	return lock.Compare(old, now), nil
}

func (u *upgrade) entry(sets install.Members) (json.RawMessage, error) {
	data, err := edit.Read(u.server.Origin.Name)
	if err != nil {
		return nil, err
	}
	if data, err = sets.Apply(u.server.Origin.Name, data); err != nil {
		return nil, err
	}
	return edit.EntryJSON(u.server.Origin.Name, data, u.server.Name)
}

// definitions starts the server and returns the definitions of its tools.
func (u *upgrade) definitions(ctx context.Context, e *cli.Env, set *settings.Settings) (*lock.File, error) {
	recorder := &lock.Recorder{All: true}
	o := testOptions()
	o.Last, o.LastShaped, o.Settings, o.InDocs = recorder.Filter, recorder.Override, set, true
	s, err := e.Engine.Session(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	server, err := serverNamed(e.IO, s, u.server.Name)
	if err != nil {
		return nil, err
	}
	reg, err := s.Tools.LoadServers(ctx, []*mcpclient.Source{server})
	if err != nil {
		return nil, err
	}
	if err := reg.Failure(server.Name()); err != nil {
		return nil, err
	}
	if set != u.settings {
		found, failed, err := s.Check(ctx, lastListed(ctx, e, s), []*mcpclient.Source{server})
		if err = cmp.Or(err, errors.Join(failed...)); err != nil {
			return nil, err
		}
		u.found = found
	}
	listed := recorder.File()
	for i := range listed.Tools { // how the command changes is shown once
		t := &listed.Tools[i]
		if definition, err := jsonx.Parse(t.Definition, jsonx.Options{}); err == nil {
			definition.Members = slices.DeleteFunc(definition.Members,
				func(m jsonx.Member) bool { return m.Name == "behind" })
			t.Definition, t.Fingerprint = definition.JSON(), ""
		}
	}
	return listed, nil
}

// toolChanges describes changes of definitions, as lock --check does.
func toolChanges(changes []lock.Change) string {
	if len(changes) == 0 {
		return "  no definition changes\n"
	}
	var b strings.Builder
	for _, c := range changes {
		b.WriteString("  " + cli.LockChange(c, true))
	}
	return b.String()
}
