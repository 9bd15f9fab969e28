package git

import (
	"cmp"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// User is where the settings of the user are. "" means the user's home, and
// $XDG_CONFIG_HOME or .config in the home.
type User struct{ Home, ConfigHome string }

// Configs returns the git configuration files that apply to all repositories.
func (u User) Configs() []string {
	home, config := u.Folders()
	if global, ok := os.LookupEnv("GIT_CONFIG_GLOBAL"); ok && u.Home == "" {
		return []string{"/etc/gitconfig", global}
	}
	return []string{"/etc/gitconfig", filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig")}
}

// Folders returns the user's home and configuration folder.
func (u User) Folders() (home, config string) {
	home, config = u.Home, u.ConfigHome
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	config = cmp.Or(config, os.Getenv("XDG_CONFIG_HOME"))
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	return home, config
}

// Setting is one setting in a git configuration file.
type Setting struct {
	Header string // the text in the brackets of its section
	Key    string // in lower case
	Name   string // section.key in lower case, without the subsection
	Value  string
}

// Settings returns the settings in a git configuration file.
func Settings(text string) iter.Seq[Setting] {
	return func(yield func(Setting) bool) {
		text, section, header := strings.ReplaceAll(text, "\r\n", "\n"), "", ""
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
			if !yield(Setting{header, key, section + "." + key, value}) {
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
