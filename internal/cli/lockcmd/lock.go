// Package lockcmd implements the command lock, which pins tool definitions in
// toolreg.lock.
package lockcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

type options struct{ check, all, user bool }

// New returns the command lock.
func New(e *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "lock [TOOL…]",
		Short: "Pin tool definitions in toolreg.lock",
		Long: `Write toolreg.lock in the project root: every definition in the registry with
its fingerprint, which also covers the command or server of the tool. Keep the
file in version control, so that a server that changes a description or a
schema shows in review. MCP servers of your own settings, which others who work
on the project do not have, are skipped unless you give --all.

With the names of tools, or globs such as 'github__*', only these are pinned or
compared; the rest of the file stays as it is.

With --user the file is in the folder of your own settings, and has the tools
that every project has. It applies to projects that have no toolreg.lock.
In a project that is not trusted both apply: a tool that differs from either is
refused.

The tools of a source that was not asked, because it is disabled or the settings
of the project are not trusted, stay in the file as they are.

With --check nothing is written: what differs from the file is printed, and the
exit code is 9, also if tools could not be compared because the settings of the
project are not trusted. With the global flag --locked (TOOLREG_LOCKED) every command
refuses tools that differ from the file.

Exit codes: 0, 2 (no lock file to check), 3 (no such tool), 8 (a source failed),
9 (they differ).`,
		Example: `  toolreg lock
  toolreg lock 'github__*'
  toolreg lock --user
  toolreg lock --check
  toolreg --locked call github__create_issue < params.json`,
		ValidArgsFunction: complete.Args(e.Complete().Tools()),
		RunE:              func(cmd *cobra.Command, argv []string) error { return run(cmd.Context(), e, o, argv) },
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "pin the tools of servers in your own settings too")
	cmd.Flags().BoolVar(&o.user, "user", false,
		"pin the tools of your own settings, for projects without a toolreg.lock")
	cmd.Flags().BoolVar(&o.check, "check", false, "compare with toolreg.lock instead of writing it")
	return cmd
}

// lockDocument is the JSON of lock.
type lockDocument struct {
	OK      bool          `json:"ok"`
	File    string        `json:"file"`
	Tools   int           `json:"tools"`
	Changes []lock.Change `json:"changes"`
	// Unasked are the sources that were not asked. Their tools stay unchanged in the file.
	Unasked []unasked `json:"unasked,omitempty"`
}

// unasked is a source in the file that was not asked.
type unasked struct {
	Source string `json:"source"`
	Tools  int    `json:"tools"` // how many the file has of it
	Reason string `json:"reason"`

	unknown bool // unknown whether they changed; otherwise a setting turns it off
}

func run(ctx context.Context, e *cli.Env, o *options, names []string) error {
	check := o.check
	if !check && e.Config.Globals.Cached {
		return cli.Usage("lock pins the current definitions, but --cached contacts no source",
			"remove --cached; --check works with it")
	}
	if !check && process.InsideTool(e.Config.Environ) {
		return cli.Usage("lock does not write inside a tool's run: a tool must not accept its own change",
			"run it yourself; --check works here")
	}
	file := lock.Name
	if o.user {
		folder, err := e.Config.UserFolder()
		if err != nil {
			return err
		}
		file, o.all, e.Config.Globals.NoProject = filepath.Join(folder, lock.Name), true, true
	}
	set, err := e.Config.Settings(ctx)
	if err != nil {
		return err
	}
	folder := set.ProjectRoot
	if o.user {
		folder = filepath.Dir(file)
	}
	was, err := o.pinned(e.IO, folder, len(names) > 0)
	if err != nil {
		return err
	}
	if !o.all {
		skipUserServers(e.IO, set, was)
	}
	recorder := &lock.Recorder{All: o.all}
	if check {
		recorder.Was = was
	}
	s, err := e.Engine.Session(ctx,
		cli.SessionOptions{Options: engine.Options{Last: recorder.Filter, LastShaped: recorder.Override}, Ask: true})
	if err != nil {
		return err
	}
	reg, err := s.Tools.All(ctx)
	if err != nil {
		return err
	}
	e.IO.Diagnose(s.Tools.Diagnostics(reg))
	if err := (&cli.Selection{Strict: true}).StrictFailure(reg); err != nil {
		return fmt.Errorf("locking the tools: %w", err)
	}
	now := recorder.File()
	if was == nil {
		was = &lock.File{}
	}
	left := o.leave(s, reg, was)
	if err := narrow(was, now, reg, names, left, check); err != nil {
		return err
	}
	if !o.user && !s.Tools.ReadsProject() {
		now.KeepOverrides(was)
	}
	owners := was.Owners()
	now.SetOwners(func(name string) string {
		if owner := s.Tools.NameOwner(name); owner != "" {
			return owner
		}
		if owner := owners[name]; slices.ContainsFunc(left,
			func(u unasked) bool { server, _ := registry.ServerOf(u.Source); return server == owner }) {
			return owner
		}
		return ""
	})
	doc := lockDocument{
		OK:      true,
		File:    file,
		Tools:   len(now.Tools),
		Changes: cli.OrEmpty(lock.Compare(was, now)),
		Unasked: left,
	}
	if !check {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("creating %s: %w", folder, text.Cause(err))
		}
		if err := lock.Write(folder, text.EscapeJSON(now.Encode())); err != nil {
			return err
		}
	} else {
		doc.OK = len(doc.Changes) == 0 && !slices.ContainsFunc(left, func(u unasked) bool { return u.unknown })
	}
	if err := o.printDocument(e.IO, doc); err != nil {
		return err
	}
	if !doc.OK {
		return &cli.ExitError{Code: cli.ExitCheckFailed}
	}
	return nil
}

// pinned reads the lock file; nil if it does not exist. An unreadable file is an error for a check,
// or if only some tools are pinned again; otherwise it is replaced.
func (o *options) pinned(ios *cli.IO, folder string, some bool) (*lock.File, error) {
	was, err := lock.Read(folder)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist) && !o.check:
	case errors.Is(err, fs.ErrNotExist) && o.user:
		return nil, &cli.UsageError{Err: fmt.Errorf("%s does not exist; run toolreg lock --user to create it",
			filepath.Join(folder, lock.Name))}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &cli.UsageError{Err: err}
	case o.check || some:
		return nil, &cli.UsageError{Err: err, Hint: registry.HintOf(err)}
	default:
		ios.Warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "lock_replaced", Message: err.Error(),
			Hint: "the file will be replaced; version control has what was pinned before"})
	}
	return was, nil
}

// leave returns the sources in the file that were not asked, in its order. Their tools stay
// unchanged, so that later changes to them are detected.
func (o *options) leave(s *engine.Session, reg *registry.Registry, was *lock.File) []unasked {
	var out []unasked
	for _, e := range was.Tools {
		if i := slices.IndexFunc(out, func(u unasked) bool { return u.Source == e.Source }); i >= 0 {
			out[i].Tools++
			continue
		}
		u := s.Tools.Unasked(reg, e.Source)
		if u.Reason == "" || o.user && u.Unknown && !s.Settings.Globals.NoUser {
			// The user's lock file does not depend on the project.
			continue
		}
		out = append(out, unasked{e.Source, 1, u.Reason, u.Unknown})
	}
	return out
}

// narrow restricts the new file to what was asked about: tools of other sources and, if there are
// names, all other tools stay as they were, and a check does not compare them. Each name must be
// that of a tool that is registered or was pinned.
func narrow(was, now *lock.File, reg *registry.Registry, names []string, left []unasked, check bool) error {
	var tools []*registry.Tool // tools whose names are not in the file, such as aliases and names set by overrides
	for _, name := range names {
		if was.Has(name) || now.Has(name) {
			continue
		}
		found, err := reg.Matching(name)
		if err != nil {
			return err
		}
		tools = append(tools, found...)
	}
	meant := func(e *lock.Entry) bool {
		if slices.ContainsFunc(left, func(u unasked) bool { return u.Source == e.Source }) {
			return false
		}
		return len(names) == 0 || e.IsNamed(names...) || slices.ContainsFunc(tools, e.Is)
	}
	if check {
		was.Keep(meant)
		now.Keep(meant)
		return nil
	}
	now.KeepOver(was, meant)
	return nil
}

// skipUserServers disables the servers that only this user's settings have, except those that
// the file pins.
func skipUserServers(ios *cli.IO, set *settings.Settings, was *lock.File) {
	pinned := func(server string) bool {
		return was != nil && slices.ContainsFunc(was.Tools, func(t lock.Entry) bool {
			name, ok := registry.ServerOf(t.Source)
			return ok && name == server
		})
	}
	var left []string
	skip := func(s *settings.Server) {
		if s.Origin.Scope == settings.ScopeUser && !s.IsOff() && !pinned(s.Name) {
			s.Disabled = true
			left = append(left, s.Name)
		}
	}
	for i := range set.Servers {
		skip(&set.Servers[i])
	}
	for i := range set.APIs {
		skip(&set.APIs[i].Server)
	}
	if len(left) > 0 {
		ios.Notef("skipped %s of your own settings: %s; --all includes them",
			text.Count(len(left), "server"), strings.Join(left, ", "))
	}
}

func (o *options) printDocument(ios *cli.IO, doc lockDocument) error {
	var b strings.Builder
	for _, c := range doc.Changes {
		b.WriteString(cli.LockChange(c, o.check))
	}
	not := 0
	for _, u := range doc.Unasked {
		not += u.Tools
		what := "kept"
		if o.check {
			what = "not compared"
		}
		fmt.Fprintf(&b, "? %s: %s %s: %s\n", u.Source, text.Count(u.Tools, "tool"), what, u.Reason)
	}
	accept := "toolreg lock"
	if o.user {
		accept += " --user"
	}
	switch {
	case !o.check:
		fmt.Fprintf(&b, "%s locked in %s", text.Count(doc.Tools, "tool"), doc.File)
	case len(doc.Changes) == 0:
		fmt.Fprintf(&b, "%s unchanged from %s", text.Count(doc.Tools, "tool"), doc.File)
	default:
		fmt.Fprintf(&b, "%d of %s differ from %s; %s accepts them",
			len(doc.Changes), text.Count(doc.Tools, "tool"), doc.File, accept)
	}
	if o.check && not > 0 {
		fmt.Fprintf(&b, "; %s not compared", text.Count(not, "tool"))
	}
	b.WriteByte('\n')
	return ios.PrintText(doc, b.String())
}
