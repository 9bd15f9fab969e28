package agents

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// claudeFiles returns the files of Claude Code, which stores the servers of a team in .mcp.json, and
// all others in one user file, for each project or for all. Which of them are used is said in
// that file, for each project, and in the files with permissions.
func claudeFiles(w folders) []settings.ImportFile {
	shared := read(braces, claudeEntry, "mcpServers")
	config := w.named("CLAUDE_CONFIG_DIR")
	files := slices.Concat(
		w.user(read(braces, claudeEntry, "projects", w.root, "mcpServers"), config, ".claude.json"),
		[]settings.ImportFile{w.project(shared, ".mcp.json")},
		w.user(shared, config, ".claude.json"))
	var with []string
	for _, f := range w.user(shared, config, ".claude.json") {
		with = append(with, f.Path)
	}
	with = append(with, filepath.Join(w.root, ".claude", "settings.json"), filepath.Join(w.root, ".claude", "settings.local.json"))
	for _, f := range w.user(shared, w.named("CLAUDE_CONFIG_DIR", ".claude"), "settings.json") {
		with = append(with, f.Path)
	}
	for i := range files {
		team := files[i].Project
		files[i].With = with
		files[i].Switch = func(servers []settings.ImportedServer, with [][]byte) {
			var off claudeSwitches
			for _, data := range with {
				off.read(w.root, data, team)
			}
			for i := range servers {
				off.apply(&servers[i])
			}
		}
	}
	return files
}

// claudeEntry handles time limits, of which Claude Code ignores those below a second.
func claudeEntry(s *server) (entry, string) {
	e, problem := s.entry()
	if limit, ok := s.Timeout.(float64); ok && limit >= 1000 {
		e.Timeout = limit
	}
	return e, problem
}

// claudeDesktopFiles returns the file of Claude Desktop, which has no projects. On Windows, where it is a
// package since 2026, Windows keeps the file in the package's folder.
func claudeDesktopFiles(w folders) []settings.ImportFile {
	r, path := read(plain, (*server).entry, "mcpServers"), filepath.Join("Claude", "claude_desktop_config.json")
	files := w.user(r, w.application(), path)
	if runtime.GOOS == "windows" {
		files = append(w.user(r, w.named("LOCALAPPDATA", "AppData", "Local"), "Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", path), files...)
	}
	return files
}

// claudeSwitches are the servers and tools that the files of Claude Code switch off.
type claudeSwitches struct {
	servers []string
	denied  []string // rules of permissions.deny: mcp__SERVER, mcp__SERVER__TOOL, either with a star
}

// read adds what a file switches off. team is set for the servers of .mcp.json, which have a list
// of their own. A file that cannot be read switches nothing off.
func (c *claudeSwitches) read(root string, data []byte, team bool) {
	doc, _ := document.ParseForeign("claude", data)
	if doc == nil {
		return
	}
	for _, at := range [][]string{nil, {"projects", root}} {
		for _, m := range doc.Members(at...) {
			switch m.Name {
			case "disabledMcpServers":
				if at != nil { // at the top it has no effect
					c.servers = append(c.servers, texts(m.Value)...)
				}
			case "disabledMcpjsonServers":
				if team {
					c.servers = append(c.servers, texts(m.Value)...)
				}
			case "deniedMcpServers":
				for _, item := range m.Value.Items {
					if name := item.Get("serverName"); name != nil && name.Kind == jsonx.String {
						c.servers = append(c.servers, name.Text())
					}
				}
			}
		}
	}
	for _, m := range doc.Members("permissions") {
		if m.Name == "deny" {
			c.denied = append(c.denied, texts(m.Value)...)
		}
	}
}

// apply switches a server, or some of its tools, off.
func (c *claudeSwitches) apply(s *settings.ImportedServer) {
	off, tools := slices.Contains(c.servers, s.Name), []string(nil)
	claude := Importer{}.Program("claude")
	for _, rule := range c.denied {
		name, found := strings.CutPrefix(rule, "mcp__")
		rest, ok := strings.CutPrefix(name, s.Name)
		if !ok { // as Claude Code shows it
			rest, ok = strings.CutPrefix(name+"__", strings.TrimPrefix(claude.ToolPrefix(s.Name), "mcp__"))
			rest = strings.TrimSuffix("__"+rest, "__")
		}
		switch {
		case !found:
		case name == "*" || ok && (rest == "" || rest == "__*"):
			off = true
		case ok && strings.HasPrefix(rest, "__"):
			tools = append(tools, rest[2:])
		}
	}
	takeAway(s, off, tools)
}

// texts returns the strings in a list.
func texts(list *jsonx.Value) []string {
	var out []string
	for _, item := range list.Items {
		if item.Kind == jsonx.String {
			out = append(out, item.Text())
		}
	}
	return out
}
