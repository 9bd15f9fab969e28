package recorder

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestErrorsInTheLogHoldNoValues(t *testing.T) {
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
	got := maskedParams(json.RawMessage(`{"n":12345678901234567890,"password":"x","list":[{"apiKey":7,"text":"ghp_abcdefghijklmnopqrstuvwxyz"}],"url":"https://me:pw@h/?token=a"}`))
	want := `{"list":[{"apiKey":"***","text":"***"}],"n":12345678901234567890,"password":"***","url":"https://***@h/?token=***"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
