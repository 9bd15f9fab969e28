package agents

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
)

func switchFile(t *testing.T, data string) *document.Document {
	t.Helper()
	doc, problems := document.ParseForeign("settings.json", []byte(data))
	if problems != nil {
		t.Fatal(problems)
	}
	return doc
}

func TestGeminiSwitchesServersOff(t *testing.T) {
	files := (Importer{}).Files("gemini", "/srv/project", []string{"HOME=/home/me", "GEMINI_CLI_HOME=/srv/gemini"})
	with := []string{"/srv/project/.gemini/settings.json", "/srv/gemini/.gemini/settings.json", "/srv/gemini/.gemini/mcp-server-enablement.json"}
	for _, f := range files {
		if diff := cmp.Diff(with, f.With); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Path, diff)
		}
	}
	for file, off := range map[string]bool{
		`{}`: false,
		"{ // of the team\n\"mcp\":{\"excluded\":[\"Db\"]}}": true,
		`{"mcp":{"excluded":["Db"]}}`:                        true, `{"excludeMCPServers":["Db"]}`: true, `{"mcp":{"excluded":["db"]}}`: false,
		`{"mcp":{"allowed":["a"]}}`: true, `{"mcp":{"allowed":["a","Db"]}}`: false, `{"mcp":{"allowed":[]}}`: false,
		`{"db":{"enabled":false},"a":{"enabled":true}}`: true, `{"db":{"enabled":true}}`: false, `{"a":{"enabled":false}}`: false,
		`{"db":{"enabled":false},"ui":{"theme":"x"}}`: false, // settings
	} {
		want := `{"command":"srv"}`
		if off {
			want = `{"command":"srv","disabled":true}`
		}
		servers := []imports.Server{{Name: "Db", JSON: []byte(`{"command":"srv"}`)}, {Name: "left out", Problem: "x"}}
		if files[0].Switch(servers, switchFile(t, file)); string(servers[0].JSON) != want || servers[1].JSON != nil {
			t.Errorf("%s: %s, %s", file, servers[0].JSON, servers[1].JSON)
		}
	}
}

func TestOpencodeSwitchesServersAndToolsOff(t *testing.T) {
	const on, off = `{"command":"srv"}`, `{"command":"srv","disabled":true}`
	files := (Importer{}).Files("opencode", "/srv/project", []string{"HOME=/home/me"})
	for file, want := range map[string]string{
		`{"tools":{"my_db_*":false}}`: off, `{"tools":{"my*":false}}`: off, `{"tools":{"*":false}}`: off, `{"permission":{"my_db_*":"deny"}}`: off,
		`{"tools":{"my_db_*":true}}`: on, `{"permission":{"my_db_*":"ask","bash":{"*":"deny"}}}`: on, `{"permission":"deny"}`: on,
		`{"tools":{"my_dbs_*":false,"my_db":false,"bash":false}}`: on,
		`{"tools":{"*":false,"my_db_*":true}}`:                    on,
		`{"tools":{"my_db_*":false,"my_db_get":true}}`:            off, // rather than all of its tools
		`{"tools":{"my_db_*":false},"permission":{"my_*":"ask"}}`: on,
		`{"tools":{"my_db_drop":false,"my_db_set_*":false}}`:      `{"command":"srv","excludeTools":["drop","set_*"]}`,
		`{"agent":{"a":{"tools":{"my_db_*":false}}}}`:             on,
	} {
		servers := []imports.Server{{Name: "my db", JSON: []byte(on)}}
		if files[0].Switch(servers, switchFile(t, file)); string(servers[0].JSON) != want {
			t.Errorf("%s: %s, want %s", file, servers[0].JSON, want)
		}
	}
}
