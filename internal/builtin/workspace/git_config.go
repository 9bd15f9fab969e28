package workspace

import (
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// userConfigs returns the git configuration files that apply to all repositories.
func (w *Dir) userConfigs() []string {
	home, config := w.userFolders()
	if global, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok && w.home == "" {
		return []string{"/etc/gitconfig", global}
	}
	return []string{"/etc/gitconfig", filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig")}
}

// userFolders returns the user's home and configuration folder.
func (w *Dir) userFolders() (home, config string) {
	home, config = w.home, w.configHome
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	if config == "" {
		config = os.Getenv("XDG_CONFIG_HOME")
	}
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	return home, config
}

// configEntries returns the settings in a git configuration file. The names are
// section and key in lower case, without the subsection.
func configEntries(text string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for e := range configSettings(text) {
			if !yield(e.name, e.value) {
				return
			}
		}
	}
}

// configSetting is one setting in a git configuration file.
type configSetting struct {
	header string // the text in the brackets of its section
	key    string // in lower case
	name   string // section.key, without the subsection
	value  string
}

// configSettings returns the settings in a git configuration file.
func configSettings(text string) iter.Seq[configSetting] {
	return func(yield func(configSetting) bool) {
		section, header := "", ""
		for {
			text = strings.TrimLeft(text, "\ufeff \t\r\n")
			switch {
			case text == "":
				return
			case text[0] == '#' || text[0] == ';':
				_, text, _ = strings.Cut(text, "\n")
				continue
			case text[0] == '[':
				section, header, text = configSection(text[1:])
				continue
			}
			end := strings.IndexAny(text, "=\n")
			if end < 0 {
				text += "\n"
				end = len(text) - 1
			}
			key, value := text[:end], ""
			if text = text[end:]; text[0] == '=' {
				value, text = configValue(text[1:])
			}
			key = strings.ToLower(strings.TrimSpace(key))
			if !yield(configSetting{header, key, section + "." + key, value}) {
				return
			}
		}
	}
}

// configSection parses a section header after its bracket.
func configSection(text string) (name, header, rest string) {
	quoted, end := false, len(text)
	for i := 0; i < len(text) && end == len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			end = i
		}
	}
	name, header = text[:end], text[:end]
	if i := strings.IndexAny(name, "\". \t"); i >= 0 {
		name = name[:i]
	}
	return strings.ToLower(name), header, text[min(end+1, len(text)):]
}

// configValue parses a value up to the end of its line. It removes quotes, escapes
// and a comment.
func configValue(text string) (value, rest string) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return strings.TrimSpace(b.String()), text[i:]
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(text):
			if i++; text[i] != '\n' { // otherwise the value continues on the next line
				b.WriteByte(text[i])
			}
		case (c == '#' || c == ';') && !quoted:
			_, rest, _ = strings.Cut(text[i:], "\n")
			return strings.TrimSpace(b.String()), rest
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String()), ""
}
