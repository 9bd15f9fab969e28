package settings

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
)

// otherPrograms is an Importer over two programs whose files are lists of names
// of servers: one in the project and one of the user.
type otherPrograms struct{ b *sandbox }

func (o otherPrograms) Programs() []string { return []string{"one", "two"} }

func (o otherPrograms) Program(name string) imports.Program {
	return imports.Program{Name: name, Title: name, Prefix: name + "_{server}_"}
}

func (o otherPrograms) Files(program, root string, _ []string) []imports.File {
	return []imports.File{
		{Path: filepath.Join(root, program+".txt"), Project: true, Read: readNames},
		{Path: filepath.Join(o.b.home, program+".txt"), Read: readNames},
	}
}

func readNames(_ *document.Foreign, _ string, data []byte) (out []imports.Server, problems []document.Problem) {
	for i, name := range strings.Fields(string(data)) {
		s := imports.Server{Name: name, JSON: json.RawMessage(`{"command":"./run.sh","args":["$TOKEN"]}`), Pos: jsonx.NewPos(i+1, 1)}
		switch name {
		case "+a", "-a":
			on := name == "+a"
			s.Name, s.Enabled, s.JSON = "a", &on, nil
		case "bad":
			s.JSON = json.RawMessage(`{"command":3}`)
		case "odd":
			s.Problem = "it is odd"
		}
		out = append(out, s)
	}
	return out, nil
}

func serverPlaces(s *Settings) []string {
	out := []string{}
	for _, server := range s.Servers {
		out = append(out, server.Name+" "+server.Origin.Scope.String()+" "+filepath.Base(server.Origin.String()))
	}
	return out
}

func TestImportsFollowOwnSettings(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", "imports: [two, one]\nmcpServers: {mine: {url: 'http://h/'}}\nmcp: {excluded: [KEPT-out]}\n")
	b.write(filepath.Join(b.home, "one.txt"), "a shared kept-out mine bad")
	b.write(filepath.Join(b.home, "two.txt"), "shared odd b")
	project := b.projectFile("one.txt", "p\nshared\n")
	b.projectFile("run.sh", "#!/bin/sh\n")
	o := b.options()
	o.Import = otherPrograms{b}
	s, diags, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"mine user settings.yaml:2", "shared user two.txt:1", "b user two.txt:3", "a user one.txt:1", "kept-out user one.txt:3"}
	if diff := cmp.Diff(want, serverPlaces(s)); diff != "" {
		t.Errorf("servers of an untrusted project (-want +got):\n%s", diff)
	}
	if s.Servers[4].Excluded == nil {
		t.Error("mcp.excluded does not apply to an imported server")
	}
	wantCodes := []string{"project_untrusted", "import_skipped", "import_skipped", "import_shadowed", "import_shadowed"}
	if diff := cmp.Diff(wantCodes, codes(diags)); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s\n%v", diff, diags)
	}
	p := s.Project
	if p == nil || p.Trusted || len(p.Runs) != 2 || !strings.Contains(p.Runs[0], "one.txt:1: mcpServers.p: ./run.sh $TOKEN") || len(p.Expands) != 2 {
		t.Fatalf("project %+v", p)
	}
	if diff := cmp.Diff([]string{project, filepath.Join(b.project, "run.sh")}, p.Files); diff != "" {
		t.Errorf("covered (-want +got):\n%s", diff)
	}

	if _, err := b.trust.Grant(t.Context(), p.Root, p.Covered, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	want = []string{"mine user settings.yaml:2", "shared user two.txt:1", "b user two.txt:3", "p project one.txt:1", "a user one.txt:1", "kept-out user one.txt:3"}
	if diff := cmp.Diff(want, serverPlaces(b.load(o))); diff != "" {
		t.Errorf("servers of a trusted project (-want +got):\n%s", diff)
	}
	if own := b.load(o).ProtectedPaths(o.Environ, b.project, nil); !strings.Contains(strings.Join(own, "\n"), project) {
		t.Errorf("a tool may change %s: %v", project, own)
	}
	b.projectFile("run.sh", "#!/bin/sh\nevil\n")
	if s := b.load(o); s.Project.Trusted {
		t.Error("the project is still trusted after a script of an imported server changed")
	}
	o.NoUser, o.NoProject = true, true
	if s := b.load(o); len(s.Servers) != 0 {
		t.Errorf("without user and project: %v", serverPlaces(s))
	}
}

func TestImportOfUnknownProgram(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", "imports: [one, three]\n")
	o := b.options()
	b.load(o) // without an importer no program is known, and nothing is imported
	o.Import = otherPrograms{b}
	_, _, err := Load(o)
	if e, ok := errors.AsType[*document.Error](err); !ok || !strings.Contains(e.Error(), `settings.yaml:1:16: imports: unknown program "three" (one of one, two)`) {
		t.Errorf("error %v", err)
	}
}

func TestUntrustedProjectImportsNothing(t *testing.T) {
	b := newSandbox(t)
	b.projectFile(".toolreg/settings.yaml", "imports: [one]\n")
	b.projectFile("one.txt", "p")
	b.write(filepath.Join(b.home, "one.txt"), "u")
	o := b.options()
	o.Import = otherPrograms{b}
	s := b.load(o)
	if len(s.Servers) != 0 || len(s.Project.Loosens) != 1 {
		t.Errorf("servers %v, loosens %v", serverPlaces(s), s.Project.Loosens)
	}
	o.TrustProject = true
	if diff := cmp.Diff([]string{"p project one.txt:1", "u user one.txt:1"}, serverPlaces(b.load(o))); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	found := imports.Find(o.Import, b.project, o.Environ)
	if len(found) != 2 || !found[0].Project || found[0].Servers != 1 {
		t.Errorf("found %+v", found)
	}
}

func TestPlacesReportStateOfEachFile(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", "x: [\n")
	b.projectFile(".toolreg/settings.json", `{"approvalMode": "plan"}`)
	o := b.options()
	o.Files = []string{"none.yaml"}
	places, err := Places(o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range places {
		got = append(got, p.Scope.String()+" "+string(p.State)+" "+filepath.Base(p.Path)+" "+p.Reason)
	}
	want := []string{"system absent settings.{yaml,yml,json} ", "user refused settings.yaml line 1: invalid YAML: did not find expected node content", "file refused none.yaml no such file",
		"project skipped settings.json not trusted; see `toolreg trust status`"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func TestFind(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", "tools: {exclude: [a]}\nmcpServers: {x.y: {command: c}, z: {command: d}}\n")
	s := b.load(b.options())
	for key, want := range map[string]string{
		"excludeTools": "excludeTools", "tools.exclude": "excludeTools", "mcpServers": "mcpServers.x.y mcpServers.z", "mcpServers.x.y": "mcpServers.x.y",
		"permissions": "permissions.filesystem permissions.network permissions.shell permissions.database", "hooks": "",
	} {
		values, err := s.Merged().Find(key)
		var got []string
		for _, v := range values {
			got = append(got, v.Key)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", key, got, err, want)
		}
	}
	if _, err := s.Merged().Find("mcpserver"); err == nil || !strings.Contains(err.Error(), `did you mean "mcpServers"`) {
		t.Errorf("error %v", err)
	}
}

// What switches a server applies to what is copied, except that the project switches none of the user's own on,
// and a switch without a server is named.
func TestSwitchesOfServersThatAreCopied(t *testing.T) {
	for _, tt := range []struct {
		user, project string
		disabled      bool
		warned        int
	}{
		{"a", "-a", true, 0}, {"a", "+a", false, 0}, {"-a", "+a a", true, 0}, {"b", "+a", false, 1}, {"-a", "", false, 1}, {"+a", "-a", false, 1},
	} {
		b := newSandbox(t)
		b.write(filepath.Join(b.home, "one.txt"), tt.user)
		b.projectFile("one.txt", tt.project)
		warned, disabled := 0, false
		for _, f := range imports.Find(otherPrograms{b}, b.options().Dir, nil) {
			warned += len(f.Warnings)
			for _, s := range f.Entries {
				disabled = disabled || s.Name == "a" && strings.Contains(string(s.JSON), `"disabled":true`)
			}
		}
		if warned != tt.warned || disabled != tt.disabled {
			t.Errorf("%q in the project, %q of the user: %d warnings, disabled: %t", tt.project, tt.user, warned, disabled)
		}
	}
}
