package serverscmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
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

var (
	semantic = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	})
	versionParts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]+|[A-Za-z]+`) })
)

func newUpgradeCommand(e *cli.Env) *cobra.Command {
	o := &describedOptions{}
	cmd := &cobra.Command{
		Use:   "upgrade NAME…",
		Short: "Upgrade servers to the latest version in their registry",
		Long: editHelp(`Change the entries of servers that servers add got from a registry to the latest
version there.

toolreg shows how the command changes, asks, starts the new version beside the old
one, shows how the definitions of tools change, and asks again. What you have changed
in the entry is kept. A version is never replaced by a lower one, and an entry whose
new version cannot be started stays as it is.

Without a terminal --yes agrees to both, unless servers check has a finding of
severity high in the new version; then the exit code is 9. Values that only the new
version needs are asked for, or given by --set.`, describedCodes),
		Example:           `  toolreg servers upgrade github-mcp-server`,
		Args:              cli.ArgsBetween(1, -1, "the NAME of a server"),
		ValidArgsFunction: complete.Args(e.Complete().Servers),
		RunE: func(cmd *cobra.Command, argv []string) error {
			if len(argv) > 1 && len(o.set) > 0 {
				return &cli.UsageError{Err: errors.New("--set is for one server")}
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
		u := &upgrade{settings: s, set: given, new: &installation{described: &described{}}}
		result, err := u.run(ctx, e, name)
		if err != nil {
			return err
		}
		upgraded = append(upgraded, result)
	}
	if e.IO.JSON {
		return e.IO.PrintJSON(map[string][]upgradedServer{"servers": upgraded})
	}
	return nil
}

// upgrade replaces one version of a server by a newer one.
type upgrade struct {
	settings *settings.Settings
	server   *settings.Server
	set      serverjson.Given // values of the command line
	found    engine.Checked   // what the new version says to steer a model
	old, new *installation    // old is nil if the registry no longer has that version
}

func (u *upgrade) run(ctx context.Context, e *cli.Env, name string) (upgradedServer, error) {
	file, err := u.find(e, name)
	if err != nil {
		return upgradedServer{}, err
	}
	from := u.server.From
	known, err := registriesOf(ctx, e, u.settings)
	if err != nil {
		return upgradedServer{}, err
	}
	r, err := registryAt(known, from.Registry)
	if err != nil {
		return upgradedServer{}, err
	}
	latest, err := describedBy(ctx, []*mcpregistry.Registry{r}, from.Name, mcpregistry.Latest)
	if err != nil {
		return upgradedServer{}, err
	}
	unchanged := upgradedServer{Name: name, Action: "unchanged", Version: from.Version}
	switch compared := compareVersions(latest.Server.Version, from.Version); {
	case compared < 0:
		e.IO.Notef("server %q stays at version %s, because the registry has only the lower version %s", name, from.Version, latest.Server.Version)
		return unchanged, nil
	case compared == 0:
		e.IO.Notef("server %q is up to date (%s)", name, from.Version)
		return unchanged, nil
	}
	defer func() { u.new.bundle.close() }()
	if err := u.plan(ctx, e, r, latest); err != nil {
		return upgradedServer{}, err
	}
	sets, err := u.changes()
	if err != nil {
		return upgradedServer{}, err
	}
	about := u.new.about(e)
	if err := u.new.confirm(ctx, e, about+u.commandChange(sets), "Start the new version to compare its tools?"); err != nil {
		return upgradedServer{}, err
	}
	undo, err := u.new.store()
	if err != nil {
		return upgradedServer{}, err
	}
	changes, err := u.compare(ctx, e, sets)
	if err != nil {
		err = fmt.Errorf("version %s cannot be used, so server %q stays at %s: %w", latest.Server.Version, name, from.Version, err)
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
	if err := u.new.confirm(ctx, e, shown, "Upgrade it?"); err != nil {
		return upgradedServer{}, errors.Join(err, undo())
	}
	c := change{action: "upgraded", names: []string{name}, files: []string{file}, apply: sets.apply, part: true}
	if err := c.run(ctx, e, u.settings); err != nil {
		return upgradedServer{}, errors.Join(err, undo())
	}
	noteBundle(e, u.settings, name)
	return upgradedServer{name, "upgraded", latest.Server.Version, from.Version, runsLine(u.new.plan), changes}, remember(ctx, e, latest)
}

// find finds the server and the file with its entry.
func (u *upgrade) find(e *cli.Env, name string) (file string, err error) {
	i := slices.IndexFunc(u.settings.Servers, func(s settings.Server) bool { return s.Name == name })
	if slices.ContainsFunc(u.settings.APIs, func(a settings.API) bool { return a.Name == name }) {
		return "", &cli.UsageError{Err: fmt.Errorf("%q is an API, which was not added from a registry", name)}
	}
	if i < 0 {
		return "", noServerToEdit(u.settings, name)
	}
	u.server = &u.settings.Servers[i]
	if u.server.From == nil || u.server.From.Registry == "" {
		return "", &cli.UsageError{Err: fmt.Errorf("server %q (%s) was not added from a registry", name, u.server.Origin), Hint: "toolreg servers edit " + cli.Quote(name) + " changes its command"}
	}
	files, err := editable(e, "")
	if err != nil {
		return "", err
	}
	if !slices.Contains(files, u.server.Origin.Name) {
		return "", noServerToEdit(u.settings, name)
	}
	return u.server.Origin.Name, nil
}

// plan makes the plans of both versions with the values that were given.
func (u *upgrade) plan(ctx context.Context, e *cli.Env, r *mcpregistry.Registry, latest *described) error {
	from := u.server.From
	secrets, err := e.Config.Folders.Secrets()
	if err != nil {
		return err
	}
	given := serverjson.Given{}
	for name, notations := range from.Values {
		for _, notation := range notations {
			value := serverjson.Denote(notation)
			// A secret of ours is literal text again, as it was when it was given.
			if path, ok := strings.CutPrefix(value, "file:"); ok && filepath.Base(path) == secretName(u.server.Origin.Name, u.server.Name, name) {
				data, err := os.ReadFile(path)
				if err != nil {
					return fmt.Errorf("reading a secret of server %q: %w", u.server.Name, err)
				}
				value = strings.TrimSuffix(string(data), "\n")
			}
			given[name] = append(given[name], value)
		}
	}
	if entry, err := r.Get(ctx, from.Name, from.Version); err == nil {
		old := &installation{described: &described{Entry: entry, source: r.URL, from: *from}, settings: u.settings, file: u.server.Origin.Name, name: u.server.Name, given: given, secrets: secrets}
		if from.Bundle != "" {
			old.way, _ = unpackedWay(e, from.Bundle) // without it the old command is not known
		} else if ways := old.waysOf(from.Runtime); len(ways) > 0 {
			old.way = &ways[0]
		}
		if old.way != nil && old.makePlan(e) == nil && len(old.plan.Missing) == 0 {
			u.old = old
		}
	} else if !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	u.new = &installation{described: latest, was: u.server, verb: "upgrading", settings: u.settings, file: u.server.Origin.Name, name: u.server.Name, given: maps.Clone(given), secrets: secrets}
	u.new.from.Bundle = ""
	runtime := from.Runtime
	if len(u.new.waysOf(runtime)) == 0 {
		runtime = ""
	}
	maps.Copy(u.new.given, u.set)
	if err := u.new.choose(ctx, e, runtime); err != nil {
		return err
	}
	if u.new.plan == nil {
		return u.new.confirm(ctx, e, u.new.about(e), "") // it reports what is missing
	}
	return nil
}

// dropUnknown removes the values of the version before that this one does not have.
func (in *installation) dropUnknown() {
	for name := range in.was.From.Values {
		if !slices.ContainsFunc(in.way.Inputs(), func(input serverjson.Input) bool { return input.Name == name }) {
			delete(in.given, name)
			in.warnings = append(in.warnings, "this version has no value "+name)
		}
	}
}

// waysOf returns the ways with a runtime.
func (in *installation) waysOf(runtime string) []serverjson.Way {
	return slices.DeleteFunc(in.Server.Ways(), func(w serverjson.Way) bool { return w.Runtime != runtime })
}

// member is a member of an entry with its new value; nil removes it.
type member struct {
	path  []string // below the entry
	value json.RawMessage
}

// members are changes of an entry.
type members struct {
	name string
	list []member
}

// apply makes the changes in the content of a settings file.
func (m members) apply(file string, data []byte) (_ []byte, err error) {
	for _, one := range m.list {
		path := append([]string{"mcpServers", m.name}, one.path...)
		if one.value == nil {
			data, err = edit.Unset{Paths: [][]string{path}}.Apply(file, data)
		} else {
			data, err = edit.Set{Paths: [][]string{path}, Value: one.value}.Apply(file, data)
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// changes returns how the entry changes. What differs from the entry that the old version
// would have now was changed by the person and is kept.
func (u *upgrade) changes() (members, error) {
	out := members{name: u.server.Name}
	set := func(value any, path ...string) {
		data, err := cli.EncodeJSON(value)
		if err == nil {
			out.list = append(out.list, member{path, []byte(strings.TrimSpace(string(data)))})
		}
	}
	unset := func(path ...string) { out.list = append(out.list, member{path: path}) }
	is, now := u.server, u.new.plan
	was := u.before()
	args := now.Args
	if is.Command != was.Command || !slices.Equal(is.Args, was.Args) || is.URL != was.URL {
		if args = replaced(is.Args, was.Args, now.Args); args == nil || is.Command != now.Command {
			return out, &cli.UsageError{Err: fmt.Errorf("the command of server %q (%s) was changed by hand, so it cannot be upgraded", is.Name, is.Origin), Hint: "change it with toolreg servers edit " + cli.Quote(is.Name) + "; the new version runs " + runsLine(now)}
		}
	}
	now.Args = args // with the person's own, for the question
	for _, field := range []struct{ name, was, now string }{{"type", is.Type, now.Type}, {"command", is.Command, now.Command}, {"url", is.URL, now.URL}} {
		switch {
		case field.now != "" && field.now != field.was:
			set(field.now, field.name)
		case field.now == "" && field.was != "":
			unset(field.name)
		}
	}
	switch {
	case len(args) > 0 && !slices.Equal(args, is.Args):
		set(args, "args")
	case len(args) == 0 && len(is.Args) > 0:
		unset("args")
	}
	for _, pairs := range []struct {
		name     string
		is       []settings.Pair
		was, now []serverjson.Pair
	}{{"env", is.Env, was.Env, now.Env}, {"headers", is.Headers, was.Headers, now.Headers}} {
		for _, p := range pairs.now {
			is, had := valueOf(pairs.is, p.Name), pairOf(pairs.was, p.Name)
			_, given := u.set[p.Name]
			if isOwn := !same(is, had) && !given; !isOwn && !same(is, &p.Value) {
				set(p.Value, pairs.name, p.Name)
			}
		}
		for _, p := range pairs.was {
			if pairOf(pairs.now, p.Name) == nil && same(valueOf(pairs.is, p.Name), &p.Value) {
				unset(pairs.name, p.Name)
			}
		}
	}
	from, err := u.new.fromEntry()
	if err != nil {
		return out, err
	}
	out.list = append(out.list, member{[]string{"from"}, from})
	return out, nil
}

// before returns what the old version ran. If the registry no longer has it, it ran what the
// new one does, with the old version in its words; its variables and headers are not known,
// so those of the entry are kept.
func (u *upgrade) before() *serverjson.Plan {
	if u.old != nil {
		return u.old.plan
	}
	was := &serverjson.Plan{Command: u.new.plan.Command}
	older := func(word string) string {
		return strings.ReplaceAll(word, u.new.Server.Version, u.server.From.Version)
	}
	for _, word := range u.new.plan.Args {
		was.Args = append(was.Args, older(word))
	}
	was.URL = older(u.new.plan.URL)
	return was
}

// replaced returns arguments in which the words that differ between two versions are those
// of the new one; nil if that cannot be said.
func replaced(is, was, now []string) []string {
	if len(was) != len(now) {
		return nil
	}
	if slices.Equal(was, now) {
		return nil
	}
	out := slices.Clone(is)
	for i := range was {
		if was[i] == now[i] {
			continue
		}
		at := slices.Index(out, was[i])
		if at < 0 {
			return nil
		}
		out[at] = now[i]
	}
	return out
}

func same(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func valueOf(pairs []settings.Pair, name string) *string {
	for i := range pairs {
		if pairs[i].Name == name {
			return &pairs[i].Value
		}
	}
	return nil
}

func pairOf(pairs []serverjson.Pair, name string) *string {
	for i := range pairs {
		if pairs[i].Name == name {
			return &pairs[i].Value
		}
	}
	return nil
}

// commandChange describes how the entry changes.
func (u *upgrade) commandChange(sets members) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-11s %s\n", "was", ui.Line(runsLine(&serverjson.Plan{Command: u.server.Command, Args: u.server.Args, URL: cmp.Or(u.server.HTTPURL, u.server.URL)})))
	for _, m := range sets.list {
		if m.path[0] == "from" {
			continue
		}
		value := "(removed)"
		if m.value != nil {
			value = string(m.value)
		}
		fmt.Fprintf(&b, "  %-11s %s\n", "changes", ui.Line(strings.Join(m.path, ".")+": "+value))
	}
	return b.String()
}

// compare starts both versions and compares the definitions of their tools. If the old one
// does not start, all tools are new.
func (u *upgrade) compare(ctx context.Context, e *cli.Env, sets members) ([]lock.Change, error) {
	old, err := u.definitions(ctx, e, u.settings)
	if err != nil {
		e.IO.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "upgrade_not_compared", Source: registry.MCPPrefix + u.server.Name,
			Message: "the version in use does not start, so its tools are not known: " + err.Error()})
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

// entry returns the entry with its changes.
func (u *upgrade) entry(sets members) (json.RawMessage, error) {
	data, err := edit.Read(u.server.Origin.Name)
	if err != nil {
		return nil, err
	}
	if data, err = sets.apply(u.server.Origin.Name, data); err != nil {
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
	for _, report := range reg.Reports() {
		if report.Err != nil {
			return nil, report.Err
		}
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
			definition.Members = slices.DeleteFunc(definition.Members, func(m jsonx.Member) bool { return m.Name == "behind" })
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
