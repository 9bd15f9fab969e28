package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/settings"
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

func TestSecretsInSettingsAreMasked(t *testing.T) {
	set := loadSettings(t, `{"env": {"API_KEY": "plain-in-settings", "COLOR": "not-a-secret", "CMD_TOKEN": "cmd:password-manager"}, "mcpServers": {"s": {"command": "x",
		"env": {"DB_PASS": "env:PASS", "OTHER_PASS": "${PASS2}", "UNSET_PASS": "$UNSET", "NUMBER_PASS": "12345678"}, "headers": {"Authorization": "Bearer header-value"}}}}`)
	m := NewMask(set, []string{"PASS=from-the-environment", `PASS2=quoted"value"`})
	message := `plain-in-settings, not-a-secret, from-the-environment, quoted"value", header-value, password-manager, cGxhaW4taW4tc2V0dGluZ3M= https://me:pw@h/`
	if diff := cmp.Diff(`***, not-a-secret, ***, ***, ***, password-manager, *** https://***@h/`, m.Message(message)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := m.Params(json.RawMessage(`{"a":"x plain-in-settings","b":["quoted\"value\""],"c":12345678,"d":[7]}`))
	if diff := cmp.Diff(`{"a":"x ***","b":["***"],"c":"***","d":[7]}`, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
