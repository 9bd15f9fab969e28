package install

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/agents"
	"github.com/toolreg/toolreg/internal/engine/sources"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/settings/table"
)

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

// refer returns the entry of another program with references in place of secrets that a
// variable of the environment has too, and says what that changes, which secrets are
// copied as they are, and that the entry has trust. No text has a secret. Without environ
// nothing is changed: the entry of a project must not get a secret by guessing it.
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

// referenceTo returns the reference to the variable that has a value, and the variable's
// name; both are "" if there is none. In a header the scheme may stand before the value.
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
