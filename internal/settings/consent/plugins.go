package consent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/trust"
)

// Plugin is a plugin of the project, as the trust question shows it.
type Plugin struct {
	ID       string
	Path     string // path of its manifest or script
	Sum      string // hash of the manifest that contains Programs; "" for a script
	Programs []Program
}

// Plugins reads the plugins in the folders without running anything. Their
// programs run in the folder of the plugin, with the variables that f sets. A
// manifest with mistakes is read as far as possible.
func Plugins(f *File, root string, folders []string) []Plugin {
	env := f.env()
	var out []Plugin
	for _, folder := range folders {
		if p := pluginAt(root, folder, env); p != nil {
			out = append(out, *p)
			continue
		}
		entries, _ := os.ReadDir(folder) // a folder that cannot be read has no plugins
		for _, e := range entries {
			if p := pluginAt(root, filepath.Join(folder, e.Name()), env); p != nil {
				out = append(out, *p)
			}
		}
	}
	return out
}

// pluginAt reads the plugin at a path; it returns nil if there is none.
func pluginAt(root, path string, env []string) *Plugin {
	for _, name := range []string{"plugin.yaml", "plugin.yml", "plugin.json"} {
		doc, _ := document.Read(filepath.Join(path, name))
		if doc == nil {
			continue
		}
		p := &Plugin{ID: doc.Root.Get("id").Text(), Path: doc.File, Sum: doc.Sum}
		for _, c := range manifestCommands(doc.Root) {
			c.Place, c.Env = "plugin "+quoteWord(trust.Name(root, path)), append(c.Env, env...)
			if c.Cwd == "project" {
				c.Cwd, c.Argv[0] = root, fromRoot(root, path, c.Argv[0])
			} else {
				c.Cwd = path
			}
			p.Programs = append(p.Programs, c)
		}
		return p
	}
	info, err := os.Stat(path)
	if err != nil || !process.Executable(path, info) {
		return nil
	}
	return &Plugin{
		ID:   strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)),
		Path: path,
		Programs: []Program{{
			Place: "plugin " + quoteWord(trust.Name(root, path)),
			Key:   "runs",
			Argv:  []string{path},
			Cwd:   filepath.Dir(path),
			Env:   env,
		}},
	}
}

// manifestCommands returns the commands in a manifest: factory, call and the
// commands of its tools.
func manifestCommands(n *jsonx.Value) []Program {
	var out []Program
	for _, key := range []string{"factory", "call"} {
		if argv := n.Get(key).Strings(); len(argv) > 0 {
			out = append(out, Program{Key: key, Argv: argv})
		}
	}
	for i, tool := range n.Get("tools").Elements() {
		if argv := tool.Get("command").Strings(); len(argv) > 0 {
			out = append(out, Program{Key: fmt.Sprintf("tools[%d] %s", i, tool.Get("name").Text()),
				Argv: append(argv, tool.Get("args").Strings()...),
				Env:  valuesOf(tool.Get("env")), Cwd: tool.Get("cwd").Text()})
		}
	}
	return out
}

// fromRoot returns the program of a command as a path from the project root. In the
// manifest it is one from the plugin's folder.
func fromRoot(root, folder, program string) string {
	if !strings.ContainsAny(program, `/\`) || filepath.IsAbs(program) {
		return program
	}
	path := filepath.Join(folder, filepath.FromSlash(program))
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return "." + string(filepath.Separator) + rel
	}
	return path
}

// Changed returns the path of a plugin whose manifest differs from the covered
// files, because it changed after they were read; "" if none does.
func Changed(plugins []Plugin, covered []trust.File) string {
	for _, p := range plugins {
		if p.Sum != "" && !slices.ContainsFunc(covered, func(f trust.File) bool { return f.Sum == p.Sum }) {
			return p.Path
		}
	}
	return ""
}

// DescribePlugins renders the plugins and their commands as [Describe] does.
func DescribePlugins(root string, plugins []Plugin, v Variables) []string {
	var out []string
	for _, p := range plugins {
		programs := slices.Clone(p.Programs)
		for i := range programs {
			programs[i].Cwd = "" // the place names the folder
		}
		lines := Describe(programs, v)
		if len(lines) == 0 {
			lines = []string{"plugin " + quoteWord(strings.TrimSuffix(trust.Name(root, filepath.Dir(p.Path)), "/"))}
		}
		out = append(out, lines...)
	}
	return out
}

// PluginFolders returns the absolute paths of the plugin folders that a file adds
// and that are inside the project at root.
func PluginFolders(f *File, root string, v Variables) []string {
	var out []string
	for _, s := range f.Settings {
		if s.Row.Name != "plugins.paths" {
			continue
		}
		for _, path := range v.expandAll(s.Value.Strings()) {
			path = expand.From(root, path)
			if trust.Within(path, root) {
				out = append(out, path)
			}
		}
	}
	return out
}
