// Package agents reads and writes the files of other agents: the MCP servers that
// they have configured, for the setting imports, --import and `toolreg servers import`
// (servers*.go, folders.go), and their permissions as policy rules and back (rule*.go).
//
// It knows the location and the format of each program's files, but opens none:
// package settings and the commands read them and check whether they may be used.
//
// Imported rules never allow more than the other program does. If a permission has
// no exact counterpart, it becomes narrower if it allows and broader if it asks or
// denies, or is omitted. Each such case is reported.
package agents

import (
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/settings/imports"
)

// Importer implements [imports.Importer] for the files of other programs. The zero
// value is ready to use.
type Importer struct{}

var _ imports.Importer = Importer{}

// Programs returns the valid names in imports.
func (Importer) Programs() []string {
	out := make([]string, 0, 10)
	for _, p := range programs() {
		out = append(out, p.Name)
	}
	return out
}

// Files returns the files of a program in order of precedence: the project's before
// the user's. It returns nil for an unknown program.
func (Importer) Files(program, root string, environ []string) []imports.File {
	for _, p := range programs() {
		if p.Name == program {
			env := expand.NewEnviron(environ)
			return withoutDuplicates(p.files(folders{root: root, home: env.Home(), env: env}))
		}
	}
	return nil
}

// withoutDuplicates removes files in unknown folders, and project files that are also the user's,
// which happens if the home folder is the project.
func withoutDuplicates(files []imports.File) []imports.File {
	users := map[string]bool{}
	for _, f := range files {
		users[f.Path] = users[f.Path] || !f.Project
	}
	var out []imports.File
	for _, f := range files {
		if f.Path != "" && (!f.Project || !users[f.Path]) {
			out = append(out, f)
		}
	}
	return out
}

// Program describes a program; the zero value for an unknown name.
func (Importer) Program(name string) imports.Program {
	for _, p := range programs() {
		if p.Name == name {
			return p.Program
		}
	}
	return imports.Program{}
}

type program struct {
	imports.Program
	files func(folders) []imports.File
}

// programs returns the programs in the order of the documentation. Formats and names of tools are
// those in docs/servers.md, which names the sources. VS Code names tools after the name that a
// server reports when it starts; the rules of Cursor and Windsurf are not published.
func programs() []program {
	return []program{
		{imports.Program{Name: "gemini", Title: "Gemini CLI", Format: "gemini", Prefix: "mcp_{server}_"}, geminiFiles},
		{imports.Program{Name: "antigravity", Title: "Antigravity", Format: "gemini"}, antigravityFiles},
		{imports.Program{Name: "claude", Title: "Claude Code", Format: "anthropic", Prefix: claudePrefix}, claudeFiles},
		{imports.Program{Name: "claude-desktop", Title: "Claude Desktop", Format: "anthropic"}, claudeDesktopFiles},
		{imports.Program{Name: "vscode", Title: "VS Code"}, vscodeFiles},
		{imports.Program{Name: "cursor", Title: "Cursor"}, cursorFiles},
		{imports.Program{Name: "codex", Title: "Codex", Format: "openai-responses", Prefix: "mcp__{server}__"}, codexFiles},
		{imports.Program{Name: "windsurf", Title: "Devin Desktop (Windsurf)"}, windsurfFiles},
		{imports.Program{Name: "opencode", Title: "opencode", Prefix: opencodePrefix}, opencodeFiles},
		{imports.Program{Name: "zed", Title: "Zed"}, zedFiles},
		{imports.Program{Name: "mcporter", Title: "mcporter"}, mcporterFiles},
	}
}
