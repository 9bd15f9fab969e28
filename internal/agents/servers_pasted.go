package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// ParsePasted reads servers from JSON as shown in a server's documentation: an object "mcpServers" or
// "servers", as such or within "mcp" as in the settings of VS Code, "context_servers" of Zed, an object of
// entries by name, with or without its braces, or a single entry without a name. If name is not empty, it
// becomes the name of a single entry. Entries in toolreg's own format are unchanged, except for a time limit
// that can only be in seconds; others are read like those of Claude Code. The error is a [*document.Error] or
// says what is missing.
func ParsePasted(data []byte, name string) ([]imports.Server, error) {
	data = withBraces(trimFence(data))
	doc, problems := document.Parse("pasted.json", data)
	if len(problems) > 0 {
		for i := range problems {
			problems[i].File = "JSON"
		}
		return nil, document.NewError(problems)
	}
	root := doc.Root
	if inner := root.Get("mcp"); inner.Is(jsonx.Object) {
		root = inner
	}
	members := root.Members
	for _, key := range []string{"mcpServers", "servers", "context_servers"} {
		if n := root.Get(key); n.Is(jsonx.Object) {
			members = n.Members
		}
	}
	if isEntry(members) {
		if own := root.Get("name"); name == "" && own.Is(jsonx.String) { // as for code --add-mcp
			name = own.Text()
		}
		if name == "" {
			return nil, errors.New("the JSON is a single entry without a name")
		}
		root.Remove("name")
		members = []jsonx.Member{{Name: name, Value: root}}
	}
	if name != "" && len(members) != 1 {
		return nil, fmt.Errorf("the JSON contains %d servers, but you gave one name, %q", len(members), name)
	}
	var out []imports.Server
	for _, m := range members {
		if name != "" {
			m.Name = name
		}
		out = append(out, pastedServer(m))
	}
	return out, nil
}

// trimFence removes the fence of a code block around a text.
func trimFence(data []byte) []byte {
	s := strings.TrimSpace(string(data))
	if rest, ok := strings.CutPrefix(s, "```"); ok {
		_, rest, _ = strings.Cut(rest, "\n")
		return []byte(strings.TrimSuffix(strings.TrimSpace(rest), "```"))
	}
	return data
}

// withBraces puts braces around members of an object that are pasted without it.
func withBraces(data []byte) []byte {
	s := bytes.TrimSpace(data)
	if !bytes.HasPrefix(s, []byte{'"'}) {
		return data
	}
	return slices.Concat([]byte{'{'}, bytes.TrimSuffix(s, []byte{','}), []byte{'}'})
}

// isEntry reports whether members are the fields of one server.
func isEntry(members []jsonx.Member) bool {
	for _, m := range members {
		switch m.Name {
		case "command", "url", "httpUrl", "serverUrl":
			return m.Value.Kind != jsonx.Object
		}
	}
	return false
}

// minPasted is the smallest time limit, in milliseconds, that documentation gives. A smaller value
// is in seconds, which Cline, Roo Code and others use.
const minPasted = 1000

func pastedServer(m jsonx.Member) imports.Server {
	var limit float64
	if n := m.Value.Get("timeout"); n.Is(jsonx.Number) && json.Unmarshal(n.JSON(), &limit) == nil && limit > 0 &&
		limit < minPasted && !m.Value.Get("command").Is(jsonx.Object) { // an object is Zed's, which is read below
		text, _ := seconds(&limit).(string)
		m.Value.Set("timeout", jsonx.NewString(text))
	}
	raw := m.Value.JSON()
	isEditors := slices.ContainsFunc([]string{"${input:", "${env:", "${workspaceFolder", "${userHome}"},
		func(v string) bool { return bytes.Contains(raw, []byte(v)) })
	whole, err := json.Marshal(map[string]map[string]json.RawMessage{"mcpServers": {m.Name: raw}})
	if err == nil && !isEditors {
		if unknown, err := layers.CheckFile("pasted.json", whole); err == nil && len(unknown) == 0 {
			return imports.Server{Name: m.Name, JSON: raw, Pos: m.Pos}
		}
	}
	convert, d := geminiEntry, dialect(braces)
	switch kind := m.Value.Get("type").Text(); {
	case kind == "local" && !m.Value.Get("command").Is(jsonx.String) || kind == "remote":
		convert, d = opencodeEntry, opencodeLike
	case isEditors:
		d = editorLike(".")
	case m.Value.Get("command").Is(jsonx.Array):
		convert = mcporterEntry
	case m.Value.Get("command").Is(jsonx.Object):
		convert = zedEntry
	}
	found := servers([]jsonx.Member{m}, d, convert)[0]
	if found.Enabled != nil {
		found.Problem = "its entry has neither a command nor a url"
	}
	if found.Problem == "" {
		found.Problem = layers.CheckEntry(table.ServersKey, found.Name, found.JSON)
	}
	return found
}
