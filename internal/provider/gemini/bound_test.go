package gemini

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// TestFitIsBounded checks that the fitter soon gives up on schemas that require
// more work than its limits allow.
func TestFitIsBounded(t *testing.T) {
	many := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(format, "%", fmt.Sprint(i))
		}
		return strings.Join(all, ",")
	}
	for name, property := range map[string]string{
		"alternatives beside members": `{"anyOf":[` + many(3_000, `{"type":"string","title":"%"}`) + `],` + many(3_000, `"x-%":1`) + `}`,
		"allOf of members":            `{"allOf":[` + many(3_000, `{"$ref":"#/$defs/d"}`) + `],"type":"string"}`,
		"schemas":                     `{"type":"object","properties":{` + many(maxNodes, `"p%":{"type":"string"}`) + `}}`,
		"nesting":                     strings.Repeat(`{"type":"array","items":`, maxDepth+1) + `{"type":"string"}` + strings.Repeat("}", maxDepth+1),
	} {
		root, err := jsonx.Parse([]byte(`{"type":"object","properties":{"a":`+property+`},"$defs":{"d":{`+many(3_000, `"x-%":1`)+`}}}`), jsonx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var f Fitter
		if _, err := f.Fit(root); err != errTooLarge {
			t.Errorf("%s: the error is %v", name, err)
		}
		if f.work > maxWork+10_000 || f.nodes > maxNodes+1 {
			t.Errorf("%s: %d members and %d schemas visited", name, f.work, f.nodes)
		}
	}
}
