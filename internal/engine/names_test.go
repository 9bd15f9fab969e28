package engine

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/engine/owner"
	"github.com/toolreg/toolreg/internal/registry"
)

// source returns the source of the tool that a name finds, or the error.
func sourceOf(t *testing.T, s *Session, name string) string {
	t.Helper()
	f, err := s.Tools.Find(t.Context(), name, Query{Call: true})
	if err != nil {
		return err.Error()
	}
	return f.Tool.Source
}

func relist(t *testing.T, s *Session) {
	t.Helper()
	if err := s.Relist(t.Context(), s.Servers.InUse()...); err != nil {
		t.Log(err)
	}
}

// turnOff disables a server in the settings of the world.
func (w *world) turnOff(name string) {
	w.t.Helper()
	text, err := os.ReadFile(w.yaml)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("s.yaml", strings.Replace(string(text), "  "+name+": {", "  "+name+": {disabled: true, ", 1))
}

// A server that drops a tool while a session runs, or gets one that another server has
// already, does not change whose a name is, with a state folder or without.
func TestNamesStayWhenListsChange(t *testing.T) {
	for _, environ := range []string{"HOME", "NO_HOME"} {
		t.Run(environ, func(t *testing.T) {
			w := newWorld(t, "", "a:x", "b:x,y")
			s := w.sessionIn(Options{}, environ+"="+w.dir)
			if _, err := s.Tools.All(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := sourceOf(t, s, "x"); got != "mcp:a" {
				t.Fatalf("x is of %s", got)
			}
			w.serve("a", "y")
			relist(t, s)
			if got := sourceOf(t, s, "x"); !strings.Contains(got, `it belongs to server "a", which no longer has it`) {
				t.Errorf("x: %s", got)
			}
			if got := sourceOf(t, s, "y"); got != "mcp:b" {
				t.Errorf("y is of %s", got)
			}
			for name, want := range map[string]string{"b__x": "mcp:b", "a__y": "mcp:a"} {
				if got := sourceOf(t, s, name); got != want {
					t.Errorf("%s is of %s", name, got)
				}
			}
			w.serve("a", "x")
			relist(t, s)
			if got := sourceOf(t, s, "x"); got != "mcp:a" {
				t.Errorf("afterwards x is of %s", got)
			}
		})
	}
}

// A name whose server is known starts no server after it, and none if that server is
// turned off.
func TestKnownOwnerStartsFewServers(t *testing.T) {
	w := newWorld(t, "", "a:x", "b:x", "c:z")
	if _, err := w.session(Options{}).Tools.All(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.starts()
	w.serve("a", "down")
	s := w.session(Options{})
	if got := sourceOf(t, s, "x"); !strings.Contains(got, `it belongs to server "a": `) {
		t.Error(got)
	}
	if _, err := s.Tools.Find(t.Context(), "x", Query{}); !errors.Is(err, registry.ErrSourceFailed) {
		t.Errorf("%v is no failure of a source", err)
	}
	if got := w.starts(); got != "a" {
		t.Errorf("started %q", got)
	}
	w.turnOff("a")
	if got := sourceOf(t, w.session(Options{}), "x"); !strings.Contains(got, `it belongs to server "a", which is disabled`) {
		t.Error(got)
	}
	if got := w.starts(); got != "" {
		t.Errorf("started %q", got)
	}
}

// Listing one server gives it no name, because others were not asked.
func TestDiscoveryOfOneServerGivesNoNames(t *testing.T) {
	w := newWorld(t, "", "a:x", "b:x")
	s := w.session(Options{})
	if _, _, err := s.Tools.Discovery(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	servers, _, err := s.Servers.Named()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tools.LoadServers(t.Context(), servers[1:2]); err != nil {
		t.Fatal(err)
	}
	if got := sourceOf(t, w.session(Options{}), "x"); got != "mcp:a" {
		t.Error("x is of", got)
	}
}

// A server that is given for one run keeps no name for later runs.
func TestServerOfOneRunKeepsNoName(t *testing.T) {
	w := newWorld(t, "", "a:x")
	s := w.session(Options{})
	set := *s.Settings
	set.Servers[0].Origin.Name = "--mcp"
	if got := sourceOf(t, s, "x"); got != "mcp:a" {
		t.Fatal(got)
	}
	names, err := owner.Open(&set, s.programs.Folders)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := names.Read(); err != nil || len(all) > 0 {
		t.Error(fmt.Sprint(all), err)
	}
}

// Of two runs that give a name to different servers at once, the second learns that it
// has to build its registry again.
func TestOneOfTwoRunsGivesAName(t *testing.T) {
	w := newWorld(t, "", "a:x", "b:x")
	one, two := w.session(Options{}).finder.names, w.session(Options{}).finder.names
	for _, n := range []*owner.Names{one, two} {
		if o := n.Owner("x"); o.Kept {
			t.Fatal(o)
		}
	}
	if !one.Keep(t.Context(), []registry.GivenName{{Name: "x", Server: "b"}}) {
		t.Error("the first run is refused")
	}
	if two.Keep(t.Context(), []registry.GivenName{{Name: "x", Server: "a"}}) {
		t.Error("the second run is not refused")
	}
	if o := two.Owner("x"); o.Server != "b" {
		t.Error(o)
	}
}

// A tool that its server has again is found although the cached listing lacks it.
func TestReturnedToolIsFoundDespiteCache(t *testing.T) {
	w := newWorld(t, "cache: {discovery: 1h}\n", "a:x,y", "b:z")
	for _, names := range []string{"x,y", "y"} {
		w.serve("a", names)
		s := w.session(Options{Cache: cache.Renew})
		if _, err := s.Tools.All(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	w.serve("a", "x,y")
	if got := sourceOf(t, w.session(Options{}), "x"); got != "mcp:a" {
		t.Error(got)
	}
}
