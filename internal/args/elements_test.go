package args

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

// The params of the elements of a list are described too, and the example of the list
// has those that are required.
func TestDescribeElementsOfLists(t *testing.T) {
	def := registry.Definition{InputSchema: json.RawMessage(`{"type":"object","required":["entities"],"properties":{
		"entities":{"type":"array","items":{"$ref":"#/$defs/entity"}},
		"page":{"type":"object","required":["size"],"properties":{"size":{"type":"integer","minimum":5},"n":{"type":"string"}}}},
		"$defs":{"entity":{"type":"object","required":["name","kind"],"properties":{"name":{"type":"string","description":"its name"},"kind":{"enum":["a","b"]},"notes":{"type":"array","items":{"type":"string"}}}}}}`)}
	type row struct {
		Name, Type        string
		Required, Element bool
		Example           []string
	}
	var got []row
	for _, p := range Describe(&def) {
		got = append(got, row{p.Name, p.Type, p.Required, p.Element, p.Example})
	}
	want := []row{
		{"entities", "object[]", true, false, []string{`entities={"name":"TEXT","kind":"a"}`}},
		{"entities[].name", "string", true, true, nil},
		{"entities[].kind", "string", true, true, nil},
		{"entities[].notes", "string[]", false, true, nil},
		{"page", "object", false, false, []string{`page={"size":5}`}},
		{"page.size", "integer", false, false, []string{"page.size=5"}},
		{"page.n", "string", false, false, []string{"page.n=TEXT"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	params, err := Parse(got[0].Example, Options{Schema: def.InputSchema})
	if want := `{"entities":[{"name":"TEXT","kind":"a"}]}`; err != nil || string(params) != want {
		t.Errorf("the example gives %s, %v, want %s", params, err, want)
	}
}
