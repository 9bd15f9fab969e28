package discover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/text"
)

// maxPlugins limits the number of plugins in one folder.
const maxPlugins = 1000

// PluginPlace is a path in which to look for plugins.
type PluginPlace struct {
	// Path is the absolute path of a folder of plugins, a plugin's own folder,
	// or a single script.
	Path string
	// Root is the absolute path of the project whose trust covers the plugins, so that
	// their manifests may name programs there; "" if none does.
	Root string
	// Required reports a problem if nothing exists at the path.
	Required bool
	// Hint is the hint of that problem.
	Hint string
}

// FindPlugins finds plugins and reads their manifests; it runs nothing. Plugins are
// sorted by name. Files that look like plugins but are not usable are included with
// their Problems. Hidden entries and files that are not executable are ignored.
func FindPlugins(ctx context.Context, place PluginPlace) []*Plugin {
	schema := registry.NewValidator(PluginSchema()) // compiled once when first needed
	info, err := os.Stat(place.Path)
	switch {
	case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && !place.Required:
		return nil
	case err != nil:
		return []*Plugin{refusedPlugin(place.Path, text.Cause(err).Error(), place.Hint)}
	case !info.IsDir() && slices.Contains(manifestNames(), filepath.Base(place.Path)):
		return []*Plugin{refusedPlugin(place.Path, "a manifest, not the folder of a plugin", "name the folder that it is in")}
	}
	switch p := pluginAt(ctx, place, place.Path, info, schema); {
	case p != nil:
		return []*Plugin{p}
	case !info.IsDir():
		return []*Plugin{refusedPlugin(place.Path,
			"neither a folder nor an executable file", "chmod +x makes a script executable")}
	}
	return pluginsIn(ctx, place, schema)
}

func pluginsIn(ctx context.Context, place PluginPlace, schema *registry.Validator) []*Plugin {
	entries, err := os.ReadDir(place.Path)
	if err != nil {
		return []*Plugin{refusedPlugin(place.Path, text.Cause(err).Error(), "")}
	}
	var out []*Plugin
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if len(out) == maxPlugins {
			return append(out, refusedPlugin(place.Path,
				fmt.Sprintf("more than %d plugins; the rest is ignored", maxPlugins), ""))
		}
		path := filepath.Join(place.Path, e.Name())
		info, err := os.Stat(path)
		if err != nil { // a link that leads nowhere
			out = append(out, refusedPlugin(path, text.Cause(err).Error(), ""))
			continue
		}
		p := pluginAt(ctx, place, path, info, schema)
		if p == nil && info.IsDir() && !slices.Contains([]string{"node_modules", "__pycache__"}, e.Name()) {
			p = refusedPlugin(path, "no plugin.yaml or plugin.json in it", "toolreg plugins schema shows their format")
		}
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

// refusedPlugin returns an unusable plugin. Its id is derived from the path.
func refusedPlugin(path, message, hint string) *Plugin {
	return &Plugin{ID: nameOf(path), Dir: path, Path: path,
		Problems: []document.Problem{{File: path, Message: message, Hint: hint}}}
}

// nameOf derives a valid but not necessarily unique id from a path.
func nameOf(path string) string {
	name := strings.TrimLeft(registry.ValidName(filepath.Base(path)), "._-")
	return cmp.Or(name, "unnamed")
}

// pluginAt returns the plugin at a path; nil if there is only a folder without a manifest, or a file that is not
// executable.
func pluginAt(ctx context.Context, place PluginPlace, path string,
	info fs.FileInfo, schema *registry.Validator) *Plugin {
	if info.IsDir() {
		return folderPlugin(ctx, place, path, schema)
	}
	return scriptPlugin(path, info)
}

func folderPlugin(ctx context.Context, place PluginPlace, dir string, schema *registry.Validator) *Plugin {
	var manifests []string
	for _, name := range manifestNames() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			manifests = append(manifests, filepath.Join(dir, name))
		}
	}
	if len(manifests) == 0 {
		return nil
	}
	p := &Plugin{
		ID:      nameOf(dir),
		Dir:     dir,
		Path:    manifests[0],
		Root:    place.Root,
		timeout: DefaultTimeout,
	}
	if len(manifests) > 1 {
		p.Problems = []document.Problem{{File: manifests[1],
			Message: "exists next to " + filepath.Base(manifests[0]), Hint: "keep one of them"}}
		return p
	}
	p.readManifest(ctx, schema)
	return p
}

func scriptPlugin(path string, info fs.FileInfo) *Plugin {
	if !process.Executable(path, info) {
		return nil
	}
	base := filepath.Base(path)
	id := strings.TrimSuffix(base, filepath.Ext(base))
	if !IsPluginID(id) {
		return refusedPlugin(path, fmt.Sprintf("%q cannot be the id of a plugin", id),
			"ids are letters, digits, _ . and -, and begin with a letter or digit")
	}
	return &Plugin{
		ID:      id,
		Dir:     filepath.Dir(path),
		Path:    path,
		script:  true,
		call:    []string{path},
		timeout: DefaultTimeout,
	}
}
