package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/settings"
)

// GeminiSettings returns a note that the project contains settings of the Gemini CLI,
// and how to use them. Both are empty if there are no such settings or --settings
// names them.
func (c *Config) GeminiSettings(s *settings.Settings) (note, how string) {
	name := filepath.Join(".gemini", "settings.json")
	path := filepath.Join(s.ProjectRoot, name)
	named := func(file string) bool { return c.Absolute(file) == path }
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() ||
		slices.ContainsFunc(c.Globals.Files, named) {
		return "", ""
	}
	if rel, err := filepath.Rel(c.Dir, path); err == nil {
		name = rel
	}
	return name + " contains settings of the Gemini CLI, which toolreg can read",
		"toolreg list --settings " + Quote(name) +
			" uses them; to keep them, copy the file to .toolreg/settings.json, or set imports: [gemini] for only its MCP servers"
}

// NoteGeminiSettings prints that note for a person at the terminal, once per
// project.
func (c *Config) NoteGeminiSettings(s *settings.Settings) {
	if !c.person.AtKeyboard() {
		return
	}
	note, how := c.GeminiSettings(s)
	sum := sha256.Sum256([]byte(s.ProjectRoot))
	if note == "" || !c.firstTime("gemini-"+hex.EncodeToString(sum[:8])) {
		return
	}
	c.io.noteText(ErrorBody{Message: note, Hint: how})
}

// firstTime reports whether a note has not yet been shown to this user, and records
// that it is shown now. name is the name of the record's file in the state folder.
func (c *Config) firstTime(name string) bool {
	dir, err := c.Folders.State()
	if err != nil {
		return false
	}
	if _, err := dir.Read(name); err == nil {
		return false
	}
	if err := dir.Put(name, nil); err != nil {
		c.io.Log.Debug("cannot remember that a note was shown", "name", name, "err", err)
	}
	return true
}
