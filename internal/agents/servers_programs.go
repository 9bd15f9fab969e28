package agents

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
)

// geminiFiles returns the settings of Gemini CLI, whose mcpServers have toolreg's own format. Each
// file can switch off servers of both, and so can a separate file that lists what is disabled.
func geminiFiles(w folders) []imports.File {
	r, folder := jsonServers(shellLike, geminiEntry, "mcpServers"), filepath.Join(w.named("GEMINI_CLI_HOME"), ".gemini")
	return switchedBy([]imports.File{w.project(r, ".gemini", "settings.json"), w.user(r, folder, "settings.json")},
		geminiSwitch, w.user(nil, folder, "mcp-server-enablement.json"))
}

// geminiSwitch says whether a file excludes a server, does not allow it or has disabled it.
func geminiSwitch(doc *document.Document, name string) (off bool, tools []string) {
	allowed, excluded := lists(doc, "allowed", "allowMCPServers"), lists(doc, "excluded", "excludeMCPServers")
	return slices.Contains(excluded, name) ||
		len(allowed) > 0 && !slices.Contains(allowed, name) || disabled(doc, name), nil
}

// disabled reports whether a file that contains only switches disables a server.
func disabled(doc *document.Document, name string) bool {
	off := false
	for _, m := range doc.Members() {
		on := switched(m.Value)
		if on == nil {
			return false
		}
		off = off || m.Name == strings.ToLower(name) && !*on
	}
	return off
}

// lists reads a list of names in the group mcp, or at its older position.
func lists(doc *document.Document, member, older string) []string {
	for _, m := range append(doc.Members("mcp"), doc.Members()...) {
		var names []string
		if (m.Name == member || m.Name == older) && json.Unmarshal(m.Value.JSON(), &names) == nil {
			return names
		}
	}
	return nil
}

func geminiEntry(s *server) (entry, string) {
	e, problem := s.entry()
	e.Timeout, e.Trust, e.OAuth = s.Timeout, s.Trust, nil
	if s.OAuth != nil { // in toolreg's own format
		e.OAuth = s.OAuth
	}
	return e, problem
}

// antigravityFiles returns the files of Antigravity, which its command line and its editor share,
// followed by the file that versions before 2.0 used.
func antigravityFiles(w folders) []imports.File {
	r := jsonServers(braces, antigravityEntry, "mcpServers")
	return []imports.File{w.project(r, ".agents", "mcp_config.json"),
		w.user(r, w.named("", ".gemini"), "config", "mcp_config.json"),
		w.user(r, w.named("", ".gemini"), "antigravity", "mcp_config.json")}
}

// antigravityEntry prefers the address if an entry also has a command.
func antigravityEntry(s *server) (entry, string) {
	if s.ServerURL != "" {
		s.Command, s.Args, s.Env = nil, nil, nil
	}
	return s.entry()
}

// vscodeFiles returns VS Code's own files, and those of Copilot, which newer versions use instead.
func vscodeFiles(w folders) []imports.File {
	r := jsonServers(editorLike(w.root), (*server).entry, "servers")
	copilot := serversIn(braces, (*server).entry, func(doc *document.Document) []jsonx.Member {
		if doc.Root.Get("mcpServers") == nil {
			return doc.Members()
		}
		return doc.Members("mcpServers")
	})
	return []imports.File{w.project(r, ".vscode", "mcp.json"), w.project(copilot, ".mcp.json"),
		w.project(copilot, ".github", "mcp.json"), w.user(r, w.application(), "Code", "User", "mcp.json"),
		w.user(copilot, w.named("COPILOT_HOME", ".copilot"), "mcp-config.json")}
}

func cursorFiles(w folders) []imports.File {
	r := jsonServers(editorLike(w.root), (*server).entry, "mcpServers")
	return []imports.File{w.project(r, ".cursor", "mcp.json"), w.user(r, w.named("", ".cursor"), "mcp.json")}
}

// windsurfFiles returns the files of Devin Desktop, as Windsurf is now called, followed by the file
// that Windsurf used.
func windsurfFiles(w folders) []imports.File {
	r := jsonServers(editorLike(w.root), (*server).entry, "mcpServers")
	return []imports.File{w.project(r, ".devin", "mcp_config.local.json"), w.project(r, ".devin", "mcp_config.json"),
		w.user(r, w.config(""), "devin", "mcp_config.json"),
		w.user(r, w.named("", ".codeium", "windsurf"), "mcp_config.json")}
}

// opencodeFiles returns opencode's files. In a project they can be in two folders,
// with two possible names.
func opencodeFiles(w folders) []imports.File {
	var out []imports.File
	r, names := serversIn(opencodeLike, opencodeEntry, opencodeServers), []string{"opencode.json", "opencode.jsonc"}
	for _, name := range names {
		out = append(out, w.project(r, name), w.project(r, ".opencode", name))
	}
	for _, name := range names {
		out = append(out, w.user(r, w.named("XDG_CONFIG_HOME", ".config"), "opencode", name))
	}
	return switchedBy(out, opencodeSwitch)
}

// opencodePrefix precedes the names of a server's tools.
const opencodePrefix = "{server}_"

// opencodeSwitch returns what tools, or permission, denies in a file; the last pattern that matches
// applies.
func opencodeSwitch(doc *document.Document, name string) (off bool, tools []string) {
	opencode := imports.Program{Prefix: opencodePrefix}
	prefix := opencode.ToolPrefix(name)
	for _, m := range slices.Concat(doc.Members("tools"), doc.Members("permission")) {
		denied := m.Value.Is(jsonx.False) || m.Value.IsText("deny")
		tool, ok := strings.CutPrefix(m.Name, prefix)
		start, open := strings.CutSuffix(m.Name, "*")
		switch {
		case open && strings.HasPrefix(prefix, start):
			off, tools = denied, nil
		case ok && denied:
			tools = append(tools, tool)
		}
	}
	return off, tools
}

// opencodeServers returns the servers in opencode's format. In version 2 they are one level deeper.
func opencodeServers(doc *document.Document) []jsonx.Member {
	if nested := doc.Members("mcp", "servers"); nested != nil &&
		!slices.ContainsFunc(nested, func(m jsonx.Member) bool { return m.Name == "command" || m.Name == "url" }) {
		return nested
	}
	return doc.Members("mcp")
}

func opencodeEntry(s *server) (entry, string) {
	kind := s.Type
	var argv []string
	if kind == "local" && (json.Unmarshal(s.Command, &argv) != nil || len(argv) == 0) {
		return entry{}, "its command is not a list of strings"
	}
	if kind == "local" {
		s.login = login{}
	}
	s.Command, s.Type = nil, ""
	e, problem := s.entry()
	switch kind {
	case "local":
		e.Command, e.Args, e.Env, e.URL = argv[0], argv[1:], s.Environment, ""
	case "remote":
	default:
		return e, "its type must be local or remote"
	}
	return e, problem
}

func mcporterFiles(w folders) []imports.File {
	r := jsonServers(mcporterLike, mcporterEntry, "mcpServers")
	out := []imports.File{w.project(r, "config", "mcporter.json")}
	for _, folder := range []string{filepath.Join(w.env.Get("XDG_CONFIG_HOME"), "mcporter"), w.named("", ".mcporter")} {
		for _, name := range []string{"mcporter.json", "mcporter.jsonc"} {
			out = append(out, w.user(r, folder, name))
		}
	}
	return out
}

// mcporterEntry handles commands that are lists, tokens, and how long a server is kept.
func mcporterEntry(s *server) (entry, string) {
	var argv []string
	if json.Unmarshal(s.Command, &argv) == nil && len(argv) > 0 {
		s.Command, s.Args = json.RawMessage(jsonx.Quote(argv[0])), append(argv[1:], s.Args...)
	}
	e, problem := s.entry()
	e.URL = cmp.Or(e.URL, s.BaseURL)
	e.Lifecycle = s.Lifecycle
	switch {
	case s.BearerToken != "":
		e.Headers = append(e.Headers, pair{"Authorization", "Bearer " + s.BearerToken})
	case expand.IsName(s.BearerEnv):
		e.Headers = append(e.Headers, pair{"Authorization", "Bearer ${" + s.BearerEnv + "}"})
	}
	return e, problem
}

func zedFiles(w folders) []imports.File {
	r := jsonServers(plain, zedEntry, "context_servers")
	return []imports.File{w.project(r, ".zed", "settings.json"),
		w.user(r, w.config("XDG_CONFIG_HOME"), "zed", "settings.json")}
}

// zedEntry handles older settings, in which the command was an object, and time limits in
// seconds. A server from an extension has neither command nor url.
func zedEntry(s *server) (entry, string) {
	var older struct {
		Path string   `json:"path"`
		Args []string `json:"args"`
		Env  pairs    `json:"env"`
	}
	if strings.HasPrefix(strings.TrimSpace(string(s.Command)), "{") && json.Unmarshal(s.Command, &older) == nil {
		s.Command, s.Args, s.Env = nil, older.Args, older.Env
	} else if len(s.Command) == 0 && s.URL == "" {
		return entry{}, "it belongs to an extension of the editor"
	}
	e, problem := s.entry()
	e.Command = cmp.Or(older.Path, e.Command)
	if limit, ok := s.Timeout.(float64); ok {
		e.Timeout = seconds(&limit)
	}
	return e, problem
}
