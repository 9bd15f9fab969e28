package workspace

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/toolreg/toolreg/internal/expand"
)

// globalExcludes returns the path of the person's own ignore file: git's
// core.excludesFile, or git/ignore in the configuration folder.
func (w *Dir) globalExcludes() string {
	home, config := w.home, w.configHome
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	if config == "" {
		config = os.Getenv("XDG_CONFIG_HOME")
	}
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	for _, file := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(config, "git", "config")} {
		if path := excludesFile(readOutside(file)); path != "" {
			return expand.Home(path, home)
		}
	}
	return filepath.Join(config, "git", "ignore")
}

// readOutside reads one of the person's own files, by absolute path.
func readOutside(path string) []byte {
	if !filepath.IsAbs(path) {
		return nil
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	return readAtMost(f, maxIgnoreFile)
}

// excludesFile finds core.excludesFile in a git configuration file.
func excludesFile(config []byte) string {
	section, found := "", ""
	for line := range strings.SplitSeq(string(config), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(strings.TrimSpace(strings.Trim(line, "[]")))
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && section == "core" && strings.EqualFold(strings.TrimSpace(key), "excludesfile") {
			found = configValue(value)
		}
	}
	return found
}

// configValue removes quotes, escapes and a comment from a value.
func configValue(text string) string {
	var b strings.Builder
	quoted := false
	text = strings.TrimSpace(text)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
