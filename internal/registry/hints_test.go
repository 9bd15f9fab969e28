package registry

import (
	"encoding/json"
	"testing"
)

// Clients made with SDKs refuse a whole answer for a member that is null or of another type.
func TestHintsForClients(t *testing.T) {
	for _, tt := range []struct {
		name      string
		read      func(json.RawMessage) json.RawMessage
		raw, want string
	}{
		{"as they should be", ToolHints, `{ "readOnlyHint": true, "x": null }`, `{ "readOnlyHint": true, "x": null }`},
		{"of another type", ToolHints, `{"title":5,"readOnlyHint":"true","destructiveHint":null,"idempotentHint":false}`, `{"idempotentHint":false}`},
		{"no object", ToolHints, `"safe"`, ""},
		{"none", ToolHints, "", ""},
		{"an audience that is a text", ReadHints, `{"audience":"user","priority":1}`, `{"priority":1}`},
		{"nulls", ReadHints, `{"audience":null,"priority":null,"lastModified":null}`, `{}`},
		{"an audience of other things", ReadHints, `{"audience":["user",5]}`, `{}`},
		{"icons", Icons, `[{"src":"a"},{"src":"b","sizes":"any"},{"src":null},{},5]`, `[{"src":"a"},{"src":"b"}]`},
		{"no icons", Icons, `[{}]`, ""},
		{"icons that are no list", Icons, `{"src":"a"}`, ""},
		{"meta", Meta, `{"a":null}`, `{"a":null}`},
		{"meta of PHP", Meta, `[]`, ""},
	} {
		if got := string(tt.read(json.RawMessage(tt.raw))); got != tt.want {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
	link := Content{Type: ContentResourceLink, URI: "a:b", Annotations: json.RawMessage(`{"audience":null}`), Meta: json.RawMessage(`[1]`)}
	got, err := json.Marshal(link)
	if want := `{"type":"resource_link","uri":"a:b","name":"a:b","annotations":{}}`; string(got) != want || err != nil {
		t.Errorf("a link: %s, %v", got, err)
	}
}
