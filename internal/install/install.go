// Package install turns a server that a registry, a server.json, a bundle or another program
// describes into an entry of the settings, and an entry of one version into that of another.
// It asks nobody and prints nothing: its callers choose among what it returns and write the
// entry. It sits above serverjson, mcpregistry and bundle, which only read descriptions, and
// below the commands.
package install

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpregistry"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
)

// Installer has what all installations of a run need.
type Installer struct {
	Settings *settings.Settings
	Folders  *state.Folders
	Environ  []string // "K=V"
	Dir      string   // in which relative paths are looked up; absolute
	Agent    string   // the User-Agent of requests
}

// Registries returns the registries of the settings, in their order. Without any, the error is
// an [*settings.InputError].
func (i *Installer) Registries(ctx context.Context) ([]*mcpregistry.Registry, error) {
	x := values.NewExpander(i.Settings.ProjectRoot, i.Environ)
	var out []*mcpregistry.Registry
	for _, r := range i.Settings.Registries {
		address, err := x.Expand(r.URL)
		if err == nil {
			err = table.CheckRegistry(address)
		}
		if err != nil {
			return nil, &settings.InputError{Err: fmt.Errorf("%s: registries: %w", r.Origin, err)}
		}
		pairs, err := x.Pairs(ctx, "headers", r.Headers)
		if err != nil {
			return nil, &settings.InputError{Err: err}
		}
		one := &mcpregistry.Registry{URL: strings.TrimSuffix(address, "/"), Headers: http.Header{}, Agent: i.Agent}
		for _, p := range pairs {
			one.Headers.Set(p.Name, p.Value)
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, &settings.InputError{Err: errors.New("the setting registries is empty"),
			Hint: "remove it to use the official registry"}
	}
	return out, nil
}

// RegistryAt returns the registry at the address that the entry of a server names.
func RegistryAt(known []*mcpregistry.Registry, address string) (*mcpregistry.Registry, error) {
	for _, r := range known {
		if r.URL == strings.TrimSuffix(address, "/") {
			return r, nil
		}
	}
	return nil, &settings.InputError{
		Err:  errors.New("the setting registries does not have " + address + ", from which a server was added"),
		Hint: "add it to registries, or remove from in the entry of the server",
	}
}

// BundleFolder returns the folder with the unpacked bundle of a server; "" if it has none.
func (i *Installer) BundleFolder(name string) string {
	server := i.Settings.Server(name)
	if server == nil || server.From == nil || server.From.Bundle == "" {
		return ""
	}
	folder, err := i.Folders.Bundles()
	if err != nil {
		return ""
	}
	return filepath.Join(folder.Path, filepath.Base(server.From.Bundle))
}

// addedServers is the file in the state folder with the servers that were added: the address of
// the registry by the name of the server.
const addedServers = "added-servers.json"

// seenBefore describes where a server of the same name was added from before, if it had another
// publisher or was in another registry.
func (i *Installer) seenBefore(d *Described) []string {
	dir, err := i.Folders.State()
	if err != nil {
		return nil
	}
	data, err := dir.Read(addedServers)
	var added map[string]string
	if err != nil || json.Unmarshal(data, &added) != nil {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(added)) {
		namespace, short, _ := strings.Cut(name, "/")
		switch {
		case name == d.Server.Name && added[name] != d.Source:
			out = append(out, fmt.Sprintf("you have added a server of this name before from %s", added[name]))
		case name != d.Server.Name && strings.EqualFold(short, d.Server.Short()):
			out = append(out,
				fmt.Sprintf("you have added %s before, which is of another publisher, %s", name, namespace))
		}
	}
	return out
}

// Remember stores that a server was added, for the warnings of later installations.
func (i *Installer) Remember(ctx context.Context, d *Described) error {
	dir, err := i.Folders.State()
	if err != nil {
		return nil // without a state folder nothing is remembered
	}
	return dir.Update(ctx, addedServers, func(old []byte) ([]byte, error) {
		added := map[string]string{}
		_ = json.Unmarshal(old, &added) // a damaged file is begun again
		added[d.Server.Name] = d.Source
		return json.Marshal(added)
	})
}

// Import is a server of another program that can be copied into the settings.
type Import struct {
	imports.Server
	File    string
	Foreign bool     // it is in a file of the project, which others may have written
	Notes   []string // about secrets and trust in the copy
}

// Imports returns the servers of a program that can be copied, from the files that from accepts,
// without duplicate names: the user's own before the project's. The diagnostics say why others
// cannot be copied.
func (i *Installer) Imports(program string,
	from func(imports.Found) bool) (out []Import, diags []registry.Diagnostic) {
	files := imports.Find(agents.Importer{}, i.Settings.ProjectRoot, i.Environ)
	files = slices.DeleteFunc(files, func(f imports.Found) bool { return f.Program != program || !from(f) })
	slices.SortStableFunc(files, func(a, b imports.Found) int {
		switch {
		case a.Project == b.Project:
			return 0
		case a.Project:
			return 1
		}
		return -1
	})
	for _, f := range files {
		diags = append(diags, f.Warnings...)
		for _, server := range f.Entries {
			problem := server.Problem
			if problem == "" && i.startsToolreg(server.JSON) {
				problem = "it starts toolreg itself"
			}
			switch {
			case problem != "":
				diags = append(diags, registry.Diagnostic{Severity: registry.SeverityWarning, Code: "import_skipped",
					Message: fmt.Sprintf("%s:%d: server %q of %s is ignored: %s",
						f.File, server.Pos.Line, server.Name, program, problem)})
			case !slices.ContainsFunc(out, func(have Import) bool { return have.Name == server.Name }):
				environ := i.Environ
				if f.Project {
					environ = nil
				}
				copied := Import{Server: server, File: f.File, Foreign: f.Project}
				copied.JSON, copied.Notes = refer(server.JSON, environ)
				out = append(out, copied)
			}
		}
	}
	return out, diags
}

func (i *Installer) startsToolreg(entry json.RawMessage) bool {
	var e struct {
		Command, Cwd string
		Args         []string
	}
	return json.Unmarshal(entry, &e) == nil &&
		sources.StartsToolreg(append([]string{e.Command}, e.Args...), cmp.Or(e.Cwd, i.Settings.ProjectRoot), i.Environ)
}

// refer returns the entry of another program with references in place of secrets that an
// environment variable also contains, with notes about what that changes, which secrets are copied
// unchanged, and that the entry gets trust. No note contains a secret. Without environ nothing is
// replaced: the entry of a project must not obtain a secret by guessing it.
func refer(entry json.RawMessage, environ []string) (json.RawMessage, []string) {
	root, err := jsonx.Parse(entry, jsonx.Options{})
	if err != nil {
		return entry, nil
	}
	var notes []string
	noted := map[string]bool{}
	table.NewIndex().Row(table.ServersKey).Secrets(root, func(s table.Secret) {
		if !s.Telling || noted[s.Key] || secret.Source(s.Text) == s.Text {
			return
		}
		noted[s.Key] = true
		if s.Text != s.At.Text() {
			notes = append(notes,
				s.Key+" has a secret, which is copied as it is; a variable such as $NAME keeps it out of the settings")
		} else if reference, variable := referenceTo(s.Text, environ); reference == "" {
			notes = append(notes, s.Key+" is copied as it is; a reference such as env:NAME keeps it out of the settings")
		} else {
			*s.At = *jsonx.NewString(reference)
			notes = append(notes, s.Key+" refers to the variable "+variable+", which has the same value")
		}
	})
	if root.Get("trust").Is(jsonx.True) {
		notes = append(notes, "trust: true is copied, so its tools run without a question")
	}
	return root.JSON(), notes
}

// shortestSecret is the length of the shortest value, in bytes, that is taken for the same
// secret as a variable's.
const shortestSecret = 8

// referenceTo returns the reference to the variable whose value is the given one, and the variable's
// name; both are "" if there is none. In a header the scheme may precede the variable's value.
func referenceTo(value string, environ []string) (reference, variable string) {
	scheme, token, found := strings.Cut(value, " ")
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(entry, "=")
		switch {
		case len(text) < shortestSecret || strings.Contains(text, "$") || !expand.IsVariable("${"+name+"}"):
		case text == value:
			return "env:" + name, name
		case found && text == token:
			return scheme + " ${" + name + "}", name
		}
	}
	return "", ""
}
