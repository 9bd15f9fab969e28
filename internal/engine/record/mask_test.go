package record

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
)

func TestLoggedErrorsContainNoParamValues(t *testing.T) {
	for _, tt := range []struct{ text, params, want string }{
		{"no such file", `{"file_path":"x"}`, "no such file"},
		{`secret.txt: no such file; did you mean "secret.txt.bak"?`, `{"file_path":"secret.txt"}`, `…: no such file; did you mean "….bak"?`},
		{`/a/0: "one\ntwo" is no date`, `{"a":["one\ntwo"]}`, `/a/0: "…" is no date`},
		{"value abcdefghijklmnopqrstuvw… is too long", `{"a":{"b":"abcdefghijklmnopqrstuvwxyz"}}`, "value …… is too long"},
		{"bad", `{"a":`, ""},
		{"no params", "", "no params"},
	} {
		if got := withoutValues(tt.text, []byte(tt.params)); got != tt.want {
			t.Errorf("%s of %s: %q, want %q", tt.text, tt.params, got, tt.want)
		}
	}
}

func TestMaskedParams(t *testing.T) {
	got := NewMask(&settings.Settings{}, nil).Params(json.RawMessage(`{"n":12345678901234567890,"password":"x","list":[{"apiKey":7,"text":"ghp_abcdefghijklmnopqrstuvwxyz"}],"url":"https://me:pw@h/?token=a"}`))
	want := `{"list":[{"apiKey":"***","text":"***"}],"n":12345678901234567890,"password":"***","url":"https://***@h/?token=***"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What settings show masks is masked in all that is logged, recorded and exported, and the other way round.
func TestSecretsAreMaskedWhereverTheyAre(t *testing.T) {
	for kind, text := range map[string]string{
		"variable with a name":        `{"env": {"DB_PASS": "hunter22"}}`,
		"variable with a token":       `{"env": {"X": "hunter22hunter"}}`,
		"parts of a variable":         `{"env": {"DSN": "host=h;key=hunter22hunter"}}`,
		"URL in a variable":           `{"env": {"X": "https://u:hunter22@h/"}}`,
		"expanded variable":           `{"env": {"DB_PASS": "$V"}}`,
		"default of a variable":       `{"env": {"DB_PASS": "${NONE:-hunter22}"}}`,
		"reference":                   `{"env": {"X": "env:V"}}`,
		"header with a name":          `{"mcpServers": {"s": {"url": "https://h", "headers": {"Authorization": "Bearer hunter22"}}}}`,
		"header":                      `{"mcpServers": {"s": {"url": "https://h", "headers": {"X": "hunter22"}}}}`,
		"cookie":                      `{"mcpServers": {"s": {"url": "https://h", "headers": {"Cookie": "a=hunter22hunter; b=c"}}}}`,
		"option":                      `{"mcpServers": {"s": {"command": "x", "args": ["--token", "hunter22"]}}}`,
		"option and value":            `{"mcpServers": {"s": {"command": "x", "args": ["--token=hunter22"]}}}`,
		"expanded option":             `{"mcpServers": {"s": {"command": "x", "args": ["--token=$V"]}}}`,
		"variable named as a secret":  `{"mcpServers": {"s": {"command": "x", "args": ["--x=${V_TOKEN}"]}}}`,
		"header in args":              `{"mcpServers": {"s": {"command": "x", "args": ["-H", "Authorization: Bearer hunter22"]}}}`,
		"command line in args":        `{"mcpServers": {"s": {"command": "sh", "args": ["-c", "mysql -phunter22 db"]}}}`,
		"JSON in args":                `{"mcpServers": {"s": {"command": "x", "args": ["{\"password\":\"hunter22\"}"]}}}`,
		"command line of a server":    `{"mcpServers": {"s": {"command": "x --token hunter22"}}}`,
		"command line":                `{"mcpServerCommand": "x --token hunter22"}`,
		"words of a command":          `{"toolCallCommand": ["x", "--token", "hunter22"]}`,
		"hook":                        `{"hooks": {"afterCall": [{"command": "x --token hunter22"}]}}`,
		"rule":                        `{"policy": {"rules": [{"command": "x --token hunter22", "decision": "deny"}]}}`,
		"example of a rule":           `{"policy": {"rules": [{"tool": "t", "decision": "ask", "match": [{"tool": "t", "params": {"password": "hunter22"}}]}]}}`,
		"user of a URL":               `{"mcpServers": {"s": {"url": "https://hunter22@h"}}}`,
		"password of a URL":           `{"mcpServers": {"s": {"url": "https://u:hunter22@h"}}}`,
		"query of a URL":              `{"mcpServers": {"s": {"url": "https://h/?api_key=hunter22"}}}`,
		"token in a query":            `{"mcpServers": {"s": {"url": "https://h/?x=hunter22hunter"}}}`,
		"expanded query":              `{"mcpServers": {"s": {"url": "https://h/?api_key=$V"}}}`,
		"expanded URL":                `{"mcpServers": {"s": {"url": "$V_URL"}}}`,
		"client secret":               `{"mcpServers": {"s": {"url": "https://h", "oauth": {"clientSecret": "hunter22"}}}}`,
		"assertion":                   `{"mcpServers": {"s": {"url": "https://h", "oauth": {"assertion": "hunter22"}}}}`,
		"private key":                 `{"mcpServers": {"s": {"url": "https://h", "oauth": {"privateKey": "hunter22"}}}}`,
		"endpoint with a key":         `{"mcpServers": {"s": {"url": "https://h", "oauth": {"tokenUrl": "https://h/?key=hunter22"}}}}`,
		"well-known token":            `{"mcpServers": {"s": {"command": "x", "description": "with ghp_hunter22hunter"}}}`,
		"value given to a server":     `{"mcpServers": {"s": {"command": "x", "from": {"values": {"TOKEN": ["hunter22"]}}}}}`,
		"bearer token of an API":      `{"openapi": {"a": {"spec": "s.json", "auth": {"bearer": "hunter22"}}}}`,
		"password of an API":          `{"openapi": {"a": {"spec": "s.json", "auth": {"basic": {"username": "u", "password": "hunter22"}}}}}`,
		"key of an API":               `{"openapi": {"a": {"spec": "s.json", "auth": {"apiKey": {"in": "query", "name": "k", "value": "hunter22"}}}}}`,
		"address of an API":           `{"openapi": {"a": {"spec": "s.json", "baseUrl": "https://h/?key=hunter22"}}}`,
		"header of a registry":        `{"registries": [{"url": "https://h", "headers": {"X-Key": "hunter22"}}]}`,
		"header of pages":             `{"fetch": {"headers": {"https://h": {"X": "hunter22"}}}}`,
		"header of telemetry":         `{"telemetry": {"headers": {"X-Key": "hunter22"}}}`,
		"address of telemetry":        `{"telemetry": {"endpoint": "https://u:hunter22@h"}}`,
		"setting of a plugin":         `{"plugins": {"settings": {"p": {"a": {"token": "hunter22"}}}}}`,
		"number":                      `{"plugins": {"settings": {"p": {"pin_token": 12345678}}}}`,
		"fact":                        `{"context": {"apiToken": "hunter22"}}`,
		"constant param":              `{"overrides": {"t": {"params": {"api_key": {"const": "hunter22"}}}}}`,
		"password of the store":       `{"serve": {"store": "redis://u:hunter22@h"}}`,
		"key of requests' state":      `{"serve": {"stateKey": "hunter22hunter22hunter22hunter22"}}`,
		"setting that does not exist": `{"hooks": {"BeforeTool": [{"password": "hunter22"}]}}`,
	} {
		t.Run(kind, func(t *testing.T) {
			set := loadSettings(t, text)
			mask := NewMask(set, []string{"V=hunter22", "V_TOKEN=hunter22", "V_URL=https://u:hunter22@h"})
			value := "hunter22"
			for _, longer := range []string{"12345678", "ghp_hunter22hunter", "hunter22hunter22hunter22hunter22", "hunter22hunter"} {
				if strings.Contains(text, longer) {
					value = longer
					break
				}
			}
			var log strings.Builder
			slog.New(mask.Log(slog.NewTextHandler(&log, nil))).Info("it says "+value, "text", "it says "+value)
			var shown strings.Builder
			for _, v := range set.Merged().Effective() {
				if v.Origin != (settings.Origin{}) {
					shown.Write(v.JSON)
				}
			}
			for outlet, got := range map[string]string{
				"settings show": shown.String(), "text": mask.Hide("it says " + value), "log": log.String(),
				"message": mask.Message("it says " + value), "params": string(mask.Params([]byte(`{"a":"it says ` + value + `"}`))),
			} {
				if strings.Contains(got, value) || got == "" {
					t.Errorf("%s: %s", outlet, got)
				}
			}
		})
	}
}

// Each row of the table that is secret is masked in both. A value that need not be one is masked only
// where it stands.
func TestSecretRowsAreMaskedEverywhere(t *testing.T) {
	const value = "hunter22hunter"
	rows := 0
	var visit func(setting *table.Row, row *table.Row, wrap func(*jsonx.Value) *jsonx.Value)
	check := func(setting, row *table.Row, n *jsonx.Value) {
		rows++
		m := merge.Of(table.NewIndex(), nil)
		m.Add(layers.Setting{Row: m.Index.Row(setting.Name), Value: n, Origin: layers.Origin{Scope: layers.ScopeUser}})
		for _, v := range m.Effective() {
			if strings.Contains(string(v.JSON), value) {
				t.Errorf("%s of %s is shown: %s", row.Name, setting.Name, v.JSON)
			}
		}
		if !slices.Contains(m.Secrets(nil), value) {
			t.Errorf("%s of %s is logged: %s", row.Name, setting.Name, n.JSON())
		}
	}
	visit = func(setting, row *table.Row, wrap func(*jsonx.Value) *jsonx.Value) {
		inside := func(n *jsonx.Value) *jsonx.Value {
			switch row.Type {
			case table.Named, table.Pairs, table.RawNamed:
				return wrap(jsonx.NewObject(jsonx.NewMember("x", n)))
			case table.Objects, table.Addresses:
				return wrap(jsonx.NewArray(n))
			}
			return wrap(n)
		}
		if row.Secret {
			check(setting, row, inside(jsonx.NewString(value)))
		}
		for i := range row.Fields {
			field := &row.Fields[i]
			visit(setting, field, func(n *jsonx.Value) *jsonx.Value {
				return inside(jsonx.NewObject(jsonx.NewMember(field.Name, n)))
			})
		}
	}
	for _, row := range table.NewIndex().Rows {
		visit(&row, &row, func(n *jsonx.Value) *jsonx.Value { return n })
	}
	if rows < 20 {
		t.Errorf("only %d rows are secret", rows)
	}
	set := loadSettings(t, `{"env": {"LOG_LEVEL": "verbose"}, "telemetry": {"headers": {"Accept": "application/json"}},
		"mcpServers": {"postgres": {"command": "x", "args": ["--auth", "postgres"]}}}`)
	const said = "verbose application/json postgres"
	if got := NewMask(set, nil).Hide(said); got != said {
		t.Errorf("ordinary words are masked: %s", got)
	}
}

// Secrets are masked in the forms in which they are sent, and what only names them is not.
func TestFormsOfSecrets(t *testing.T) {
	set := loadSettings(t, `{"env": {"API_KEY": "plain-in-settings", "COLOR": "not-a-secret", "CMD_TOKEN": "cmd:password-manager"}, "mcpServers": {"s": {"command": "x",
		"env": {"DB_PASS": "env:PASS", "OTHER_PASS": "${PASS2}", "UNSET_PASS": "$UNSET", "NUMBER_PASS": "12345678", "HOME_KEY": "env:HOME"}, "args": ["-v", "$PWD:/w", "-e", "PWD=$PWD"], "headers": {"Authorization": "Bearer header-value"}}}}`)
	m := NewMask(set, []string{"PASS=from-the-environment", `PASS2=quoted"value"`, "HOME=/home/me", "PWD=/work/sub"})
	message := `plain-in-settings, not-a-secret, from-the-environment, quoted"value", header-value, password-manager, cGxhaW4taW4tc2V0dGluZ3M= $UNSET /home/me /work/sub`
	if diff := cmp.Diff(`***, not-a-secret, ***, ***, ***, password-manager, *** $UNSET /home/me /work/sub`, m.Hide(message)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := m.Params(json.RawMessage(`{"a":"x plain-in-settings","b":["quoted\"value\""],"c":12345678,"d":[7]}`))
	if diff := cmp.Diff(`{"a":"x ***","b":["***"],"c":"***","d":[7]}`, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := m.Message("https://me:pw@h/"); got != "https://***@h/" {
		t.Errorf("the message is %s", got)
	}
}

// loadSettings loads settings of the user.
func loadSettings(t *testing.T, text string) *settings.Settings {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "s.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, _, err := settings.Load(settings.Options{Dir: dir, Files: []string{file}, NoUser: true, Environ: []string{"HOME=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}
