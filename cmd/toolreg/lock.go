package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/terminal"
)

func newLockCommand(a *app) *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Pin tool definitions in toolreg.lock",
		Long: `Write toolreg.lock in the project root: every definition in the registry with
its fingerprint, which also covers the command or server behind the tool. Keep
the file in version control, so that a server that changes a description or a
schema shows in review.

With --check nothing is written: what differs from the file is printed, and the
exit code is 9. With the global flag --locked (TOOLREG_LOCKED) every command
refuses tools that are not in the file as they are now.

Exit codes: 0, 2 (no lock file to check), 8 (a source failed), 9 (they differ).`,
		Example: `  toolreg lock
  toolreg lock --check
  toolreg --locked call github__create_issue < params.json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLock(cmd.Context(), a, check) },
	}
	cmd.Flags().BoolVar(&check, "check", false, "compare with toolreg.lock instead of writing it")
	return cmd
}

// lockDocument is the JSON of lock.
type lockDocument struct {
	OK      bool          `json:"ok"`
	File    string        `json:"file"`
	Tools   int           `json:"tools"`
	Changes []lock.Change `json:"changes"`
}

func runLock(ctx context.Context, a *app, check bool) error {
	a.asksAll = true
	if !check && a.globals.Cached {
		return &usageError{err: errors.New("lock pins what the sources give now, and --cached asks none of them"), hint: "leave --cached out; --check works with it"}
	}
	if !check && depth(a.environ) > 0 {
		return &usageError{err: errors.New("lock does not write inside a tool's run: a tool must not accept its own change"), hint: "run it yourself; --check works here"}
	}
	a.recorder = &lock.Recorder{}
	s, err := a.settings(ctx)
	if err != nil {
		return err
	}
	was, err := lock.Read(s.ProjectRoot)
	if err != nil && check {
		return &usageError{err: err}
	}
	reg, err := a.all(ctx)
	if err != nil {
		return err
	}
	a.diagnose(reg.Diagnostics())
	if err := (&selection{strict: true}).strictFailure(reg); err != nil {
		return fmt.Errorf("locking the tools: %w", err)
	}
	now := a.recorder.File()
	if was == nil {
		was = &lock.File{}
	}
	doc := lockDocument{OK: true, File: lock.Name, Tools: len(now.Tools), Changes: orEmpty(lock.Compare(was, now))}
	if !check {
		if err := lock.Write(s.ProjectRoot, terminal.EscapeJSON(now.Encode())); err != nil {
			return err
		}
	} else if len(doc.Changes) > 0 {
		doc.OK = false
	}
	if err := a.printLock(doc, check); err != nil {
		return err
	}
	if !doc.OK {
		return &reported{code: exitCheckFailed}
	}
	return nil
}

func (a *app) printLock(doc lockDocument, check bool) error {
	if a.globals.JSON {
		return a.printJSON(doc)
	}
	var b strings.Builder
	for _, c := range doc.Changes {
		writeChange(&b, c, check)
	}
	switch {
	case !check:
		fmt.Fprintf(&b, "%s locked in %s\n", counted(doc.Tools, "tool"), doc.File)
	case doc.OK:
		fmt.Fprintf(&b, "%s as in %s\n", counted(doc.Tools, "tool"), doc.File)
	default:
		fmt.Fprintf(&b, "%d of %s differ from %s; toolreg lock accepts them\n", len(doc.Changes), counted(doc.Tools, "tool"), doc.File)
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

func writeChange(b *strings.Builder, c lock.Change, diffs bool) {
	mark := map[string]string{lock.Added: "+", lock.Removed: "-", lock.Changed: "~"}[c.Kind]
	name := c.Name
	if c.Version != "" {
		name += "@" + c.Version
	}
	fmt.Fprintf(b, "%s %s %s", mark, terminal.Line(c.Source), terminal.Line(name))
	if len(c.Parts) > 0 {
		b.WriteString(": " + strings.Join(c.Parts, ", ") + " changed")
	}
	b.WriteString("\n")
	if c.Diff != "" && diffs {
		b.WriteString(block(c.Diff))
	}
}

// lockFilters returns what goes last of the filters: with --locked the refusal
// of drifted tools, for lock itself the recorder.
func (a *app) lockFilters(s *settings.Settings) ([]registry.Filter, error) {
	if a.recorder != nil {
		return []registry.Filter{a.recorder.Filter}, nil
	}
	locked, err := a.isLocked()
	if err != nil || !locked {
		return nil, err
	}
	file, err := lock.Read(s.ProjectRoot)
	if err != nil {
		return nil, &usageError{err: fmt.Errorf("--locked: %w", err)}
	}
	return []registry.Filter{file.Filter(a.warn)}, nil
}

// isLocked reads --locked and its variable.
func (a *app) isLocked() (bool, error) {
	locked, err := a.flags.GetBool("locked")
	if err != nil || a.flags.Changed("locked") {
		return locked, err
	}
	v, _ := lookupEnv(a.environ, "TOOLREG_LOCKED")
	if v == "" {
		return false, nil
	}
	if locked, err = strconv.ParseBool(v); err != nil {
		return false, &usageError{err: fmt.Errorf("TOOLREG_LOCKED: %q is neither true nor false", v)}
	}
	return locked, nil
}
