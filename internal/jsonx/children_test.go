package jsonx

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChildrenHaveOffsets(t *testing.T) {
	const doc = ` {"a": 1, "b/c": [10, {"d": "x,]"} , 3],"e":{} }`
	found := func(at int) []string {
		var out []string
		for c := range Children([]byte(doc), at) {
			out = append(out, c.Key+"="+doc[c.Name:c.Start]+"|"+doc[c.Start:c.End])
		}
		return out
	}
	if diff := cmp.Diff([]string{`a="a": |1`, `b/c="b/c": |[10, {"d": "x,]"} , 3]`, `e="e":|{}`}, found(0)); diff != "" {
		t.Error(diff)
	}
	var list Child
	for c := range Children([]byte(doc), 0) {
		if c.Key == "b/c" {
			list = c
		}
	}
	if diff := cmp.Diff([]string{"0=|10", `1=|{"d": "x,]"}`, "2=|3"}, found(list.Start)); diff != "" {
		t.Error(diff)
	}
	for _, broken := range []string{"", "{", `{"a`, `{"a":`, `[1,`, `{"a":"`, "1"} {
		if n := len(slices.Collect(Children([]byte(broken), 0))); n > 1 {
			t.Errorf("%s has %d children", broken, n)
		}
	}
}
