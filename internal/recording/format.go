// Package recording writes what the sources of a run answered to a file, and answers from
// such a file as they did, without starting or contacting any of them. What it knows of a
// source is what the registry knows: the tools that it listed, and the results of calls.
//
// A file is JSON Lines. The first line names the format and its version, each other line is
// an exchange: the list of a source, a call of a tool, a question with its answer, or another
// request to a server. The
// order does not depend on which of several concurrent calls was faster, so two recordings
// of the same run are equal, as long as the sources answer the same.
package recording

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

const (
	format  = "toolreg"
	version = 1
	// MaxSize is the maximum size of a file in bytes.
	MaxSize = 256 << 20
)

// header is the first line of a file.
type header struct {
	Recording string `json:"recording"`
	Version   int    `json:"version"`
}

// The kinds of lines, in the order in which a file has them.
const (
	kindList     = "list"
	kindQuestion = "question"
	kindCall     = "call"
	kindRequest  = "request"
)

type line struct {
	Kind   string `json:"kind"`
	Source string `json:"source"`
	// Tools and Diagnostics are what the source listed. Identity is that of all tools without their
	// own.
	Identity    json.RawMessage       `json:"identity,omitempty"`
	Tools       []tool                `json:"tools,omitempty"`
	Diagnostics []registry.Diagnostic `json:"diagnostics,omitempty"`
	// Tool is the name that the source gave the tool that was called, or the name of the
	// tool that the question is about. Params are canonical.
	Tool   string          `json:"tool,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	// Method is the method of a request about prompts or resources. Its result is Content.
	Method string `json:"method,omitempty"`
	// Asked is the text of a server's own question, which has no params; Answer is the
	// answer's word, and Content what was filled in, or the reason of a refusal.
	Asked   string          `json:"asked,omitempty"`
	Answer  string          `json:"answer,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
	// Subject is what the call accessed.
	Subject *registry.Subject `json:"subject,omitempty"`
	// Output is the text that the tool sent while it ran.
	Output   string              `json:"output,omitempty"`
	Progress []registry.Progress `json:"progress,omitempty"`
	Result   *result             `json:"result,omitempty"`
	Error    *Failure            `json:"error,omitempty"`
}

// tool is a tool as its source listed it.
type tool struct {
	registry.Definition
	Identity   json.RawMessage `json:"identity,omitempty"`
	Trusted    bool            `json:"trusted,omitempty"`
	Unmet      string          `json:"unmet,omitempty"`
	Quarantine string          `json:"quarantine,omitempty"`
}

type result struct {
	registry.StoredResult
	// Tenths is the duration in tenths of a second, rounded down: the rest differs from
	// run to run.
	Tenths int64 `json:"tenthsOfSecond,omitempty"`
}

const tenth = time.Second / 10

func newResult(r *registry.Result, took time.Duration) *result {
	return &result{r.Stored(), int64(took / tenth)}
}

func (r *result) registered() registry.Result {
	out := r.Result()
	out.Duration = time.Duration(r.Tenths) * tenth
	return out
}

// Failure is an error of a source or of a call. Kind is a word of the caller, who also converts a
// Failure back to an error; "" is an error of no particular kind.
type Failure struct {
	Kind       string               `json:"kind,omitempty"`
	Text       string               `json:"text"`
	Hint       string               `json:"hint,omitempty"`
	Violations []registry.Violation `json:"violations,omitempty"` // of params
	Server     string               `json:"server,omitempty"`     // of an error from a server
	Request    string               `json:"request,omitempty"`    // likewise
	Code       int64                `json:"code,omitempty"`       // likewise
}

// Folders are the folders that a recording must not reveal, because they differ between machines:
// the project's folder and the home folder. Words stand in their place.
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

// replacePath replaces a path unless it is a part of a longer name.
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
