// Package pickcmd implements running toolreg without a command at a terminal: the person
// finds a tool, reads how to call it, and calls it.
package pickcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/callcmd"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui/picker"
)

// Run shows the tools and calls the one that the person picks, if any.
func Run(ctx context.Context, e *cli.Env) error {
	s, err := e.Engine.Session(ctx, cli.SessionOptions{})
	if err != nil {
		return err
	}
	name, complete, err := pick(ctx, e, s)
	switch {
	case errors.Is(err, picker.ErrInterrupted):
		return interrupt(ctx)
	case err != nil || name == "":
		return err
	case !complete: // loading was canceled
		if s, err = e.Engine.Session(ctx, cli.SessionOptions{}); err != nil {
			return err
		}
	}
	e.Argv = append(slices.Clone(e.Argv), "call", name)
	return callcmd.Call(ctx, e, s, name)
}

// interrupt ends the run as if Ctrl-C had sent its signal.
func interrupt(ctx context.Context) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Signal(os.Interrupt); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// pick returns the name of the picked tool, "" if none, and whether the session has
// loaded all sources. If it has not, it must not be used any more.
func pick(ctx context.Context, e *cli.Env, s *engine.Session) (name string, complete bool, err error) {
	tty, err := e.Person.Open()
	if err != nil {
		return "", false, err
	}
	defer tty.Close()
	defer e.IO.Screen.Hold()() // such as the lines of --verbose
	defer e.IO.Screen.Still()()
	loading, cancel := context.WithCancelCause(ctx)
	listings, loaded := make(chan picker.Listing), make(chan bool, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil { // restore the terminal first
				cancel(fmt.Errorf("panic while loading the tools: %v\n%s", p, debug.Stack()))
				loaded <- false
			}
		}()
		loaded <- sendListings(loading, s, listings, e.IO.Color(true))
	}()
	name, err = picker.Pick(loading, picker.Options{TTY: tty, Listings: listings, Enter: "call it"})
	cancel(nil)
	return name, <-loaded, err
}

// sendListings sends the available tools, beginning with the built-in ones, and reports
// whether all sources were loaded.
func sendListings(ctx context.Context, s *engine.Session, listings chan<- picker.Listing, color bool) bool {
	send := func(reg *registry.Registry, note string) bool {
		listing, err := newListing(ctx, s, reg, note, color)
		if err != nil { // the call will report it
			listing.Note = err.Error()
		}
		select {
		case listings <- listing:
			return true
		case <-ctx.Done():
			return false
		}
	}
	if !send(s.Tools.BuiltIn(ctx), "loading the other sources…") {
		return false
	}
	if reg, err := s.Tools.Local(ctx); err != nil || len(s.Settings.Entries()) > 0 && !send(reg, "loading servers…") {
		return false
	}
	reg, err := s.Tools.All(ctx)
	if err != nil {
		return false
	}
	send(reg, failures(reg))
	return true
}

// failures describes how many sources failed; "" if none did.
func failures(reg *registry.Registry) string {
	failed := len(reg.Failed())
	if failed == 0 {
		return ""
	}
	return text.Count(failed, "source") + " failed; run toolreg discover for details"
}

// newListing lists the tools of a registry except those whose every call is
// denied.
func newListing(ctx context.Context, s *engine.Session,
	reg *registry.Registry, note string, color bool) (picker.Listing, error) {
	l := picker.Listing{Note: note}
	tools, _, err := s.Offers.Split(ctx, reg, reg.Sorted())
	if err != nil {
		return l, err
	}
	byName := make(map[string]*registry.Tool, len(tools))
	for _, t := range tools {
		name := engine.Definition(reg, t).Name
		byName[name] = t
		l.Items = append(l.Items,
			picker.Item{Name: name, Source: t.Source, Text: t.Description,
				Also: t.DisplayName + " " + strings.Join(slices.Concat(t.Aliases, t.Tags), " ")})
	}
	slices.SortStableFunc(l.Items, func(a, b picker.Item) int { return strings.Compare(a.Name, b.Name) })
	l.Show = func(name string, width int) []string {
		page := &cli.Page{Width: width, Color: color}
		if err := callcmd.ShowHelp(ctx, page, s, reg, byName[name]); err != nil {
			return []string{err.Error()}
		}
		return strings.Split(strings.TrimSuffix(page.String(), "\n"), "\n")
	}
	return l, nil
}
