package agents

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// Pasted reads servers from JSON as shown in a server's documentation: an object
// "mcpServers" or "servers", an object of entries by name, or a single entry
// without a name. If name is not empty, it becomes the name of a single entry.
// Entries in toolreg's own format are unchanged; others are read like those of
// Claude Code. The error is an [*settings.Error] or says what is missing.
func Pasted(data []byte, name string) ([]settings.ImportedServer, error) {
	doc, problems := document.Parse("pasted.json", data)
	if len(problems) > 0 {
		for i := range problems {
			problems[i].File = "JSON"
		}
		return nil, settings.NewError(problems)
	}
	members := doc.Root.Members
	for _, key := range []string{"mcpServers", "servers"} {
		if n := doc.Root.Get(key); n != nil && n.Kind == jsonx.Object {
			members = n.Members
		}
	}
	if isEntry(members) {
		if name == "" {
			return nil, errors.New("the JSON is a single entry without a name")
		}
		members = []jsonx.Member{{Name: name, Value: doc.Root}}
	}
	if name != "" && len(members) != 1 {
		return nil, fmt.Errorf("the JSON contains %d servers, but you gave one name, %q", len(members), name)
	}
	var out []settings.ImportedServer
	for _, m := range members {
		if name != "" {
			m.Name = name
		}
		out = append(out, pasted(m))
	}
	return out, nil
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

func pasted(m jsonx.Member) settings.ImportedServer {
	raw := m.Value.JSON()
	whole, err := json.Marshal(map[string]map[string]json.RawMessage{"mcpServers": {m.Name: raw}})
	if err == nil {
		if unknown, err := settings.CheckFile("pasted.json", whole); err == nil && len(unknown) == 0 {
			return settings.ImportedServer{Name: m.Name, JSON: raw, Pos: m.Pos}
		}
	}
	found := servers([]jsonx.Member{m}, braces, geminiEntry)[0]
	if found.Problem == "" {
		found.Problem = settings.CheckServer(found.Name, found.JSON)
	}
	return found
}
