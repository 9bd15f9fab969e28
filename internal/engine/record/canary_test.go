package record

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/recording"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// A canary in any row of the settings that the table declares to be secret is in nothing that is logged,
// exported or recorded.
func TestSecretRowsAreMasked(t *testing.T) {
	const canary = "canary-5d3f9a7c1b"
	tried := 0
	for _, doc := range documents(table.NewIndex().Rows, canary) {
		tried++
		for _, value := range []string{canary, "Bearer " + canary, "$CANARY"} {
			text, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			text = []byte(strings.ReplaceAll(string(text), canary, value))
			set := loadSettings(t, string(text))
			m := NewMask(set, []string{"CANARY=" + canary})
			o := NewTape(m, &recording.Recorder{}, nil).options
			params := json.RawMessage(`{"a":"x ` + canary + `","` + canary + `":["` + canary + `"]}`)
			for artefact, got := range map[string]string{"an error": m.Message("it said " + canary), "params": string(m.Params(params)), "a recording": o.Text("it said " + canary), "a recording's params": string(o.Params(params))} {
				if strings.Contains(got, canary) {
					t.Errorf("%s: %s has the secret: %s", text, artefact, got)
				}
			}
		}
	}
	if tried < 15 {
		t.Errorf("only %d rows were tried", tried)
	}
}

// What is used of a reference is masked, too.
func TestReferencedSecretsAreMasked(t *testing.T) {
	m := NewMask(loadSettings(t, `{}`), []string{"HOME=/home/me"})
	if got := m.Message("a-password"); got != "a-password" {
		t.Errorf("before it is known: %s", got)
	}
	m.Add("a-password\n")
	m.Add("/home/me")
	if got := m.Message("a-password in /home/me"); got != "*** in /home/me" {
		t.Errorf("got %s", got)
	}
}

// documents returns settings, one for each row that is secret.
func documents(rows []table.Row, secret string) []map[string]any {
	var out []map[string]any
	for i := range rows {
		row := &rows[i]
		if row.Foreign {
			continue
		}
		for _, v := range secretValues(row, secret) {
			doc, at := map[string]any{}, map[string]any{}
			doc, path := at, strings.Split(row.Name, ".")
			for _, name := range path[:len(path)-1] {
				next := map[string]any{}
				at[name], at = next, next
			}
			if row.Merge == table.ByName && row.Type != table.Pairs {
				name := "x"
				if row.Name == "fetch.headers" {
					name = "https://api.example.com"
				}
				v = map[string]any{name: v}
			}
			at[path[len(path)-1]] = v
			out = append(out, doc)
		}
	}
	return out
}

// secretValues returns values of a row that have the secret at one place each.
func secretValues(row *table.Row, secret string) (out []any) {
	if row.Secret {
		if row.Type == table.String {
			return []any{secret}
		}
		return []any{map[string]any{"X_TEAM": secret}}
	}
	for i := range row.Fields {
		field := &row.Fields[i]
		for _, v := range secretValues(field, secret) {
			value := map[string]any{}
			for j := range row.Fields {
				if row.Fields[j].Required {
					value[row.Fields[j].Name] = "v"
				}
			}
			maps.Copy(value, needed(row.Name))
			value[field.Name] = v
			switch row.Type {
			case table.Addresses, table.Objects:
				out = append(out, []any{value})
			default:
				out = append(out, value)
			}
		}
	}
	return out
}

// needed returns what an entry must have besides.
func needed(row string) map[string]any {
	switch row {
	case "mcpServers":
		return map[string]any{"url": "https://example.com"}
	case "openapi":
		return map[string]any{"spec": "x.json"}
	case "registries":
		return map[string]any{"url": "https://example.com"}
	case "apiKey":
		return map[string]any{"in": "header", "name": "k"}
	}
	return nil
}
