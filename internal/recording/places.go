package recording

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Folders are what a recording must not reveal, because they differ between machines: the
// project's folder and the home folder. It has a word in their place.
type Folders struct {
	words []word
	shown *strings.Replacer
}

type word struct{ folder, word string }

const (
	wordBegin   = "${toolreg:"
	wordLiteral = wordBegin + "text}" // for wordBegin itself
	wordProject = wordBegin + "project}"
	wordHome    = wordBegin + "home}"
)

// NewFolders returns the folders of a run. Either may be empty.
func NewFolders(project, home string) Folders {
	f := Folders{shown: strings.NewReplacer(wordLiteral, wordBegin, wordProject, project, wordHome, home)}
	add := func(folder, name string) {
		for _, spelling := range []string{folder, filepath.ToSlash(folder)} {
			if len(spelling) > 1 && !slices.ContainsFunc(f.words, func(w word) bool { return w.folder == spelling }) {
				f.words = append(f.words, word{spelling, name})
			}
		}
	}
	for _, w := range []word{{project, wordProject}, {home, wordHome}} {
		add(w.folder, w.word)
		if resolved, err := filepath.EvalSymlinks(w.folder); err == nil && w.folder != "" {
			add(resolved, w.word)
		}
	}
	slices.SortStableFunc(f.words, func(a, b word) int { return len(b.folder) - len(a.folder) })
	return f
}

func (f *Folders) hide(s string) string {
	s = strings.ReplaceAll(s, wordBegin, wordLiteral)
	for _, w := range f.words {
		s = replacePath(s, w.folder, w.word)
	}
	return s
}

// show is the inverse of hide.
func (f *Folders) show(s string) string {
	if !strings.Contains(s, wordBegin) {
		return s
	}
	return f.shown.Replace(s)
}

// replacePath replaces a path where it is not a part of a longer name.
func replacePath(s, path, by string) string {
	var b strings.Builder
	for from := 0; ; {
		i := strings.Index(s[from:], path)
		if i < 0 {
			if b.Len() == 0 {
				return s
			}
			b.WriteString(s[from:])
			return b.String()
		}
		begin, end := from+i, from+i+len(path)
		if begin > 0 && isName(s[begin-1]) ||
			end < len(s) && (isName(s[end]) || s[end] == '.' && end+1 < len(s) && isName(s[end+1])) {
			b.WriteString(s[from:end])
		} else {
			b.WriteString(s[from:begin])
			b.WriteString(by)
		}
		from = end
	}
}

// isName reports whether a byte is usual in the middle of the name of a file.
func isName(c byte) bool {
	return c == '_' || c == '-' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// rewritten applies change to all strings and names of JSON.
func rewritten(data []byte, change func(string) string) ([]byte, error) {
	if s := string(data); !strings.Contains(s, `\`) && change(s) == s {
		return data, nil // most lines: it would not change a part either
	}
	v, err := jsonx.Parse(data, jsonx.Options{})
	if err != nil {
		return nil, err
	}
	rewrite(v, change)
	return v.JSON(), nil
}

// rewrite applies change to all strings and names of v.
func rewrite(v *jsonx.Value, change func(string) string) {
	if v.Is(jsonx.String) {
		text := v.Text()
		if changed := change(text); changed != text {
			v.Token = jsonx.NewString(changed).Token
		}
	}
	for _, item := range v.Items {
		rewrite(item, change)
	}
	for i := range v.Members {
		m := &v.Members[i]
		m.Name = change(m.Name)
		rewrite(m.Value, change)
	}
}
