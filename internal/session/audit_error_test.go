package session

import "testing"

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
