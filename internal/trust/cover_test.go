package trust

import (
	"slices"
	"testing"
)

// Files to which a document refers are found in JSON and YAML, once each, without the part
// behind #; references within the document and to addresses are not files.
func TestReferencesOfADocument(t *testing.T) {
	got := references([]byte(`{"$ref":"a.yaml#/x","b":{"$ref": "#/y"},"c":{"$ref":"https://a.example/b.yaml"},
		"d":{"$ref":"a.yaml#/z"},"e":{"$ref":"b\/c.json"}}
$ref: 'd.yaml'
$ref: e.yaml
$ref: '#/w'
$ref: f.yaml`))
	if want := []string{"a.yaml", "b/c.json", "d.yaml", "e.yaml", "f.yaml"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
