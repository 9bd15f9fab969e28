package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
)

func TestFetchHeaders(t *testing.T) {
	x := table.NewIndex()
	l := layers.Read(x, ScopeUser, "s.yaml", []byte(`
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
	if len(l.Problems)+len(l.Unknown) > 0 {
		t.Fatal(l.Problems, l.Unknown)
	}
	got := newSettings(merge.Of(x, []*layers.Layer{l}), Globals{}, "/p").Fetch
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
	for _, v := range merge.Of(x, []*layers.Layer{l}).Effective() {
		if strings.Contains(string(v.JSON), `"a"`) {
			t.Errorf("%s contains a secret: %s", v.Key, v.JSON)
		}
	}
}
