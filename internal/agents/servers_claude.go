package agents

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
)

// claudeFiles returns the files of Claude Code, which stores the servers of a team in .mcp.json,
// and all others in one user file, per project or for all. That file and the files with permissions
// say, per project, which of them are used.
func claudeFiles(w folders) []imports.File {
	shared, config := jsonServers(braces, claudeEntry, "mcpServers"), w.named("CLAUDE_CONFIG_DIR")
	user := w.user(shared, config, ".claude.json")
	ofProject := serversIn(braces, claudeEntry, func(doc *document.Document) (out []jsonx.Member) {
		for _, m := range claudeProject(doc, w.root) {
			if m.Name == "mcpServers" {
				out = append(out, m.Value.Members...)
			}
		}
		return out
	})
	with := []imports.File{user, w.project(nil, ".claude", "settings.json"),
		w.project(nil, ".claude", "settings.local.json"),
		w.user(nil, w.named("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")}
	own := switchedBy([]imports.File{w.user(ofProject, config, ".claude.json"), user}, claudeSwitch(w.root, false), with...)
	team := switchedBy([]imports.File{w.project(shared, ".mcp.json")}, claudeSwitch(w.root, true), with...)
	return []imports.File{own[0], team[0], own[1]}
}

// claudeProject returns what a file says about the project at root. Claude Code names a project by
// its path without links, on Windows mostly with slashes, so a project may occur several times.
func claudeProject(doc *document.Document, root string) (out []jsonx.Member) {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		real = root
	}
	for _, project := range doc.Members("projects") {
		path := filepath.Clean(filepath.FromSlash(project.Name))
		if path == root || path == real || runtime.GOOS == "windows" && strings.EqualFold(path, real) {
			out = append(out, project.Value.Members...)
		}
	}
	return out
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
func claudeDesktopFiles(w folders) []imports.File {
	r, path := jsonServers(plain, (*server).entry, "mcpServers"), filepath.Join("Claude", "claude_desktop_config.json")
	files := []imports.File{w.user(r, w.application(), path)}
	if runtime.GOOS == "windows" {
		packaged := w.user(r, w.named("LOCALAPPDATA", "AppData", "Local"),
			"Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", path)
		files = append([]imports.File{packaged}, files...)
	}
	return files
}

// claudePrefix precedes the names of a server's tools.
const claudePrefix = "mcp__{server}__"

// claudeSwitch returns which servers and tools a file of Claude Code switches off. team is set for
// the servers of .mcp.json, which have a separate list. Rules of permissions.deny are mcp__SERVER
// or mcp__SERVER__TOOL, either with a star.
func claudeSwitch(root string, team bool) func(doc *document.Document, name string) (off bool, tools []string) {
	claude := imports.Program{Prefix: claudePrefix}
	return func(doc *document.Document, name string) (off bool, tools []string) {
		here := claudeProject(doc, root)
		for i, m := range slices.Concat(here, doc.Members()) {
			switch m.Name {
			case "disabledMcpServers": // at the top it has no effect
				off = off || i < len(here) && slices.Contains(m.Value.Strings(), name)
			case "disabledMcpjsonServers":
				off = off || team && slices.Contains(m.Value.Strings(), name)
			case "deniedMcpServers":
				off = off || slices.ContainsFunc(m.Value.Items,
					func(item *jsonx.Value) bool { return item.Get("serverName").IsText(name) })
			}
		}
		for _, rule := range doc.Root.Get("permissions").Get("deny").Strings() {
			server, found := strings.CutPrefix(rule, "mcp__")
			rest, ok := strings.CutPrefix(server, name)
			if !ok { // as Claude Code displays it
				rest, ok = strings.CutPrefix(server+"__", strings.TrimPrefix(claude.ToolPrefix(name), "mcp__"))
				rest = strings.TrimSuffix("__"+rest, "__")
			}
			switch {
			case !found:
			case server == "*" || ok && (rest == "" || rest == "__*"):
				off = true
			case ok && strings.HasPrefix(rest, "__"):
				tools = append(tools, rest[2:])
			}
		}
		return off, tools
	}
}
