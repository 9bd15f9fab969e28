package schema

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHasType(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"string"}`: true, `{"type":["null","string"]}`: true, `{"type":["null"]}`: false, `{"type":"number"}`: false, `{}`: false, `{"type":7}`: false, `true`: false,
	} {
		if got := HasType(parse(t, text), "string"); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if !HasType(OfType("array"), "array") {
		t.Error("a schema of a type is not of it")
	}
}

func TestTypeOf(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "object", `[]`: "array", `""`: "string", `true`: "boolean", `false`: "boolean", `null`: "null", `1`: "integer", `-12`: "integer", `1.5`: "number",
	} {
		if got := TypeOf(parse(t, text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestRequired(t *testing.T) {
	got := slices.Sorted(maps.Keys(Required(parse(t, `{"required":["b","a",3]}`))))
	if diff := cmp.Diff([]string{"a", "b"}, slices.DeleteFunc(got, func(s string) bool { return s == "" })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Required(parse(t, `{"required":"a"}`)); len(got) > 0 {
		t.Errorf("%v", got)
	}
	if !HoldsNull(parse(t, `[1,null]`).Items) || HoldsNull(parse(t, `[1,"null"]`).Items) {
		t.Error("looking for null")
	}
}
