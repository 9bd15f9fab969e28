package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolreg/toolreg/internal/settings/table"
)

func TestFetchHeaders(t *testing.T) {
	x := table.NewIndex()
	l := read(x, ScopeUser, "s.yaml", []byte(`
fetch:
  timeout: 5s
  maxBytes: 1MiB
  processor: [llm, -q]
  headers:
    HTTPS://API.Example.com:443/:
      Authorization: Bearer ${TOKEN}
      X-Team: a
    "http://localhost:8080": {}
`))
	if len(l.problems)+len(l.unknown) > 0 {
		t.Fatal(l.problems, l.unknown)
	}
	got := merge(x, []*layer{l}).settings(Globals{}, "/p").Fetch
	if got.Timeout.Seconds() != 5 || got.MaxBytes != 1<<20 || got.Processor.Argv[1] != "-q" {
		t.Errorf("%+v", got)
	}
	want := []OriginHeaders{
		{URL: "https://api.example.com:443", Headers: []Pair{{Name: "Authorization", Value: "Bearer ${TOKEN}"}, {Name: "X-Team", Value: "a"}}},
		{URL: "http://localhost:8080"},
	}
	if diff := cmp.Diff(want, got.Headers, cmpopts.IgnoreFields(Pair{}, "Origin"), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	for _, v := range merge(x, []*layer{l}).effectiveAll() {
		if strings.Contains(string(v.JSON), "Bearer") {
			t.Errorf("%s contains a secret: %s", v.Key, v.JSON)
		}
	}
}

// effectiveAll returns what `toolreg settings show` prints.
func (m *merged) effectiveAll() []Value { return (&Settings{merged: m}).Effective() }

func TestInvalidFetchHeaders(t *testing.T) {
	for text, want := range map[string]string{
		`{"fetch":{"headers":{"example.com":{"A":"b"}}}}`:                      `s.json:1:`,
		`{"fetch":{"headers":{"https://user:pw@example.com":{"A":"b"}}}}`:      `more than scheme, host and port`,
		`{"fetch":{"headers":{"https://example.com/path":{"A":"b"}}}}`:         `more than scheme, host and port`,
		`{"fetch":{"headers":{"ftp://example.com":{"A":"b"}}}}`:                `not an http or https origin`,
		`{"fetch":{"headers":{"https://example.com":{"A b":"c"}}}}`:            `is not a valid header name`,
		`{"fetch":{"headers":{"https://example.com":{"A":"b\r\nX-Evil: 1"}}}}`: `control character`,
		`{"fetch":{"headers":{"https://example.com":"x"}}}`:                    `expected an object of strings`,
		`{"fetch":{"headers":[]}}`:                                             `expected an object`,
	} {
		l := read(table.NewIndex(), ScopeUser, "s.json", []byte(text))
		if len(l.problems) != 1 || !strings.Contains(l.problems[0].String(), want) {
			t.Errorf("%s: %v, want %q", text, l.problems, want)
		}
		for _, p := range l.problems {
			if strings.Contains(p.String(), "pw") {
				t.Errorf("problem contains a secret: %s", p)
			}
		}
	}
}
