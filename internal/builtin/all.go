package builtin

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/builtin/file"
	"github.com/toolreg/toolreg/internal/builtin/search"
	"github.com/toolreg/toolreg/internal/builtin/shell"
	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/todo"
	"github.com/toolreg/toolreg/internal/builtin/web"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
)

// Options tune the built-in tools. All paths are absolute.
type Options struct {
	Workspace workspace.Options
	// Outputs are the files with whole results that were cut, which read_file may read;
	// nil means that there are none.
	Outputs file.Outside
	Shell   shell.Options
	Fetch   web.Options
	Todo    todo.Options
}

// entry describes a tool without creating it.
type entry struct {
	name    string
	display string   // the Gemini CLI's display name, if it has the tool
	aliases []string // other names, including the Gemini CLI's names and class names
	preset  string   // the smallest preset that contains it

	category registry.Category
}

// entries lists the tools in registration order, the same as in tools. It is
// never modified.
var entries = []entry{
	{"list_directory", "ReadFolder", []string{"ls", "LSTool"}, presetReadOnly, registry.CategoryRead},
	{"read_file", "ReadFile", []string{"read", "ReadFileTool"}, presetReadOnly, registry.CategoryRead},
	{"grep", "SearchText", []string{"search_file_content", "grep_search", "GrepTool", "RipGrepTool"}, presetReadOnly, registry.CategoryRead},
	{"glob", "FindFiles", []string{"GlobTool"}, presetReadOnly, registry.CategoryRead},
	{"edit", "Edit", []string{"replace", "EditTool"}, presetEdit, registry.CategoryWrite},
	{"write_file", "WriteFile", []string{"write", "WriteFileTool"}, presetEdit, registry.CategoryWrite},
	{"run_shell_command", "Shell", []string{"bash", "exec", "ShellTool"}, presetEdit, registry.CategoryCommand},
	{"process", "Process", nil, presetEdit, registry.CategoryCommand},
	{"web_fetch", "WebFetch", []string{"fetch", "WebFetchTool"}, presetReadOnly, registry.CategoryNetwork},
	{"apply_patch", "ApplyPatch", nil, presetEdit, registry.CategoryWrite},
	{"todo_read", "TodoRead", []string{"todoRead"}, presetTodo, registry.CategoryRead},
	{"todo_write", "TodoWrite", []string{"todoWrite"}, presetTodo, registry.CategoryWrite},
}

// tools creates the tools. It opens no files.
func tools(o *Options, e *workspace.Editor) []registry.Tool {
	w := e.Dir
	todoRead, todoWrite := todo.New(o.Todo, w)
	all := []registry.Tool{
		search.NewListDirectory(w),
		file.NewReadFile(w, o.Outputs),
		search.NewGrep(w),
		search.NewGlob(w),
		file.NewEdit(e),
		file.NewWriteFile(e),
		shell.NewRunShellCommand(o.Shell, w),
		shell.NewProcess(o.Shell, w),
		web.NewFetch(o.Fetch),
		file.NewApplyPatch(e),
		todoRead,
		todoWrite,
	}
	for i, e := range entries {
		all[i].DisplayName = e.display
		all[i].Aliases = slices.Clone(e.aliases)
		all[i].Source = registry.SourceBuiltin
	}
	return all
}

// Source returns the source "builtin" with all built-in tools. It is cheap: no
// file is opened before the first call.
func Source(opts Options) registry.Source {
	return &source{opts: opts, files: workspace.NewEditor(opts.Workspace)}
}

type source struct {
	opts  Options
	files *workspace.Editor
}

func (s *source) Name() string { return registry.SourceBuiltin }

func (s *source) Discover(context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	all := tools(&s.opts, s.files)
	for i := range all {
		all[i] = withAbsolutePaths(all[i], s.files.Dir)
	}
	return all, nil, nil
}

// Close releases the workspace.
func (s *source) Close() error { return s.files.Close() }

// Names returns the canonical names of all built-in tools in registration
// order. It creates no tools.
func Names() []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.name
	}
	return out
}

// Canonical returns a function that resolves a name or an alias to the name of a built-in
// tool, or to "" if there is none.
func Canonical() func(string) string {
	names := map[string]string{}
	for _, e := range entries {
		for _, name := range append([]string{e.name}, e.aliases...) {
			names[name] = e.name
		}
	}
	return func(name string) string { return names[name] }
}

// Named returns the canonical name of the built-in tool with the given name or
// alias, ignoring case. It returns "" if there is no such tool.
func Named(name string) string {
	same := func(other string) bool { return strings.EqualFold(name, other) }
	for _, e := range entries {
		if same(e.name) || slices.ContainsFunc(e.aliases, same) {
			return e.name
		}
	}
	return ""
}

// Namesakes returns a function that finds a built-in tool by its name or alias, ignoring case.
func Namesakes() func(name string) *registry.Namesake {
	all := map[string]*registry.Namesake{}
	for _, e := range entries {
		n := &registry.Namesake{Name: e.name, Aliases: e.aliases, Category: e.category}
		for _, name := range append([]string{e.name}, e.aliases...) {
			all[strings.ToLower(name)] = n
		}
	}
	return func(name string) *registry.Namesake { return all[strings.ToLower(name)] }
}

// FetchOptions tune web_fetch.
type FetchOptions = web.Options

// FetchHeader is one header of a request of web_fetch.
type FetchHeader = web.Header

// The presets that contain only some of the built-in tools.
const (
	presetReadOnly = "read-only"
	presetEdit     = "edit"
	presetTodo     = "todo"
)

// PresetMCP contains every tool that is not built in.
const PresetMCP = "mcp"

// Presets returns the names of all presets.
func Presets() []string { return []string{presetReadOnly, presetEdit, "full", presetTodo, PresetMCP} }

// InWorkspace reports whether the built-in tool with this canonical name works on the files
// of the workspace.
func InWorkspace(tool string) bool {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == tool })
	return i >= 0 && entries[i].preset != presetTodo && tool != "web_fetch"
}

// InPreset reports whether the built-in tool with this canonical name belongs
// to a preset. Every tool belongs to "full"; no tool belongs to an unknown
// preset.
func InPreset(preset, tool string) bool {
	if preset == "full" {
		return true
	}
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == tool })
	return i >= 0 && (entries[i].preset == preset || preset == presetEdit && entries[i].preset == presetReadOnly)
}

// withAbsolutePaths returns a tool whose results have absolute paths as locations, so
// that readers need not know the workspace.
func withAbsolutePaths(t registry.Tool, w *workspace.Dir) registry.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		r, err := run(ctx, call)
		if len(r.Locations) == 0 {
			return r, err
		}
		if dir, pathErr := w.Path(); pathErr == nil {
			for i := range r.Locations {
				if l := &r.Locations[i]; !filepath.IsAbs(l.Path) {
					l.Path = filepath.Join(dir, filepath.FromSlash(l.Path))
				}
			}
		}
		return r, err
	}
	return t
}

// Files reads whole files of the workspace for the tools of other sources, under the rules
// of read_file. It opens nothing until it is used.
type Files struct{ workspace *workspace.Dir }

// NewFiles returns the Files of the workspace at a path.
func NewFiles(dir string) *Files { return &Files{workspace.New(workspace.Options{Dir: dir})} }

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
			"%q now refers to a file other than the one that was decided about", name)
	}
	if data, _, err = f.workspace.ReadFile(rel, limit); err != nil {
		return "", nil, registry.Invalid(call.Tool, pointer, "%s", f.workspace.Explain(rel, name, err, call.Hides))
	}
	head := data[:min(len(data), textfile.SniffBytes)]
	return cmp.Or(textfile.MediaType(head), textfile.Type(head)), data, nil
}

// Close closes the workspace.
func (f *Files) Close() error { return f.workspace.Close() }
