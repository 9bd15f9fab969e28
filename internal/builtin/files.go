package builtin

import (
	"slices"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

// Files reads whole files of the workspace for the tools of other sources, under the rules
// of read_file. It opens nothing until it is used.
type Files struct{ workspace *workspace.Dir }

// NewFiles returns the Files of a workspace.
func NewFiles(o Options) *Files { return &Files{workspace.New(o.workspace())} }

// Paths returns what rules about paths decide for a file.
func (f *Files) Paths(name string) ([]string, error) { return f.workspace.SubjectPaths(name) }

// Read returns a file that a call names and its media type. Errors are *registry.ArgsError,
// which says that the file is not in the workspace or cannot be read.
func (f *Files) Read(call registry.Call, pointer, name string, limit int64) (media string, data []byte, err error) {
	rel, err := f.workspace.Param(call.Tool, pointer, name)
	if err != nil {
		return "", nil, err
	}
	if call.Paths != nil && !slices.Contains(call.Paths, rel) {
		return "", nil, registry.Invalid(call.Tool, pointer,
			"%q has come to refer to another file than the one that was decided about", name)
	}
	if data, _, err = f.workspace.ReadFile(rel, limit); err != nil {
		return "", nil, registry.Invalid(call.Tool, pointer, "%s", f.workspace.Explain(rel, name, err, call.Hides))
	}
	head := data[:min(len(data), textfile.SniffBytes)]
	if media = textfile.MediaType(head, rel); media == "" {
		media = textfile.Type(head)
	}
	return media, data, nil
}

// Close closes the workspace.
func (f *Files) Close() error { return f.workspace.Close() }
