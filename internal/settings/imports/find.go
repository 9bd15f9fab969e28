package imports

import (
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Found is an existing file of another program.
type Found struct {
	Program string `json:"program"` // name of the program in the setting imports
	File    string `json:"file"`
	Servers int    `json:"servers"` // number of servers that can be imported
	Left    int    `json:"left"`    // number of servers that cannot be imported
	Project bool   `json:"project"` // it belongs to the project

	Entries []Server `json:"-"` // all of them, in file order

	// Warnings reports why the file cannot be read, and which entries of the program have no server.
	Warnings []registry.Diagnostic `json:"-"`
}

// Find looks for MCP servers in the files of other programs, regardless
// of the settings. It runs nothing and skips files without servers, but not those that
// cannot be read.
func Find(from Importer, root string, environ []string) []Found {
	x := table.NewIndex()
	var out []Found
	for _, program := range from.Programs() {
		switched, ofProject := Switches{}, Switches{} // the project, not yet trusted, switches none of the user's on
		first := len(out)
		for _, f := range from.Files(program, root, environ) {
			found := Found{Program: program, File: f.Path, Project: f.Project}
			file, problem := f.Open()
			switch {
			case problem != nil:
				found.Warnings = []registry.Diagnostic{ignored(program, problem.String())}
				out = append(out, found)
				continue
			case file.Path == "":
				continue
			}
			servers, problems := f.servers(file.Data)
			for _, p := range problems {
				found.Warnings = append(found.Warnings, ignored(program, p.String()))
			}
			for _, s := range servers {
				switch {
				case s.Enabled == nil:
					found.Entries = append(found.Entries, s)
				case f.Project && *s.Enabled:
					ofProject.add(f.Path, s)
				default:
					switched.add(f.Path, s)
				}
			}
			if len(servers)+len(problems) > 0 {
				out = append(out, found)
			}
		}
		for i := range out[first:] {
			found := &out[first+i]
			for j := range found.Entries {
				s := &found.Entries[j]
				node, problem := s.entry(x)
				if s.Problem = problem; problem != "" {
					found.Left++
					continue
				}
				found.Servers++
				if on := ofProject.Apply(s.Name, node); found.Project {
					node = on
				}
				s.JSON = switched.Apply(s.Name, node).JSON()
			}
		}
		if unused := append(switched.Unused(program), ofProject.Unused(program)...); len(unused) > 0 {
			out[len(out)-1].Warnings = append(out[len(out)-1].Warnings, unused...)
		}
	}
	return out
}
