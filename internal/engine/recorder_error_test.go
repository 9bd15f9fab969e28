package engine

import (
	"encoding/json"
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
	got := (&masker{set: &settings.Settings{}}).params(json.RawMessage(`{"n":12345678901234567890,"password":"x","list":[{"apiKey":7,"text":"ghp_abcdefghijklmnopqrstuvwxyz"}],"url":"https://me:pw@h/?token=a"}`))
	want := `{"list":[{"apiKey":"***","text":"***"}],"n":12345678901234567890,"password":"***","url":"https://***@h/?token=***"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSecretsInSettingsAreMasked(t *testing.T) {
	set := &settings.Settings{
		Env: []settings.Pair{{Name: "API_KEY", Value: "plain-in-settings"}, {Name: "COLOR", Value: "not-a-secret"}, {Name: "CMD_TOKEN", Value: "cmd:password-manager"}},
		Servers: []settings.Server{{
			Env:     []settings.Pair{{Name: "DB_PASS", Value: "env:PASS"}, {Name: "OTHER_PASS", Value: "${PASS2}"}, {Name: "UNSET_PASS", Value: "$UNSET"}, {Name: "NUMBER_PASS", Value: "12345678"}},
			Headers: []settings.Pair{{Name: "Authorization", Value: "Bearer header-value"}},
		}},
	}
	m := &masker{set: set, environ: []string{"PASS=from-the-environment", `PASS2=quoted"value"`}}
	message := `plain-in-settings, not-a-secret, from-the-environment, quoted"value", header-value, password-manager, cGxhaW4taW4tc2V0dGluZ3M= https://me:pw@h/`
	if diff := cmp.Diff(`***, not-a-secret, ***, ***, ***, password-manager, *** https://***@h/`, m.message(message)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := m.params(json.RawMessage(`{"a":"x plain-in-settings","b":["quoted\"value\""],"c":12345678,"d":[7]}`))
	if diff := cmp.Diff(`{"a":"x ***","b":["***"],"c":"***","d":[7]}`, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
