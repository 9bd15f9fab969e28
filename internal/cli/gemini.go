package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/terminal"
)

// GeminiSettings returns a note that the project has settings of the Gemini
// CLI, and how to use them; "" if it has none or --settings names them.
func (e *Env) GeminiSettings(s *settings.Settings) (note, how string) {
	name := filepath.Join(".gemini", "settings.json")
	path := filepath.Join(s.ProjectRoot, name)
	named := func(file string) bool { return e.Absolute(file) == path }
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || slices.ContainsFunc(e.Globals.Files, named) {
		return "", ""
	}
	if rel, err := filepath.Rel(e.Dir, path); err == nil {
		name = rel
	}
	return name + " contains settings of the Gemini CLI, which toolreg can read",
		"toolreg list --settings " + ShellQuote(name) + " uses them; to keep them, copy the file to .toolreg/settings.json, or set imports: [gemini] for only its MCP servers"
}

// NoteGeminiSettings prints that note for a person at the terminal, once per
// project.
func (e *Env) NoteGeminiSettings(s *settings.Settings) {
	if !e.AtKeyboard() {
		return
	}
	note, how := e.GeminiSettings(s)
	sum := sha256.Sum256([]byte(s.ProjectRoot))
	if note == "" || !e.firstTime("gemini-"+hex.EncodeToString(sum[:8])) {
		return
	}
	e.Note("toolreg: " + terminal.Line(note) + "\n  hint: " + terminal.Line(how) + "\n")
}
