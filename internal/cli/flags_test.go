package cli

import "testing"

func TestWantsJSONDespiteMistakes(t *testing.T) {
	for _, tt := range []struct {
		argv     []string
		variable string
		want     bool
	}{
		{[]string{"list", "--bogus"}, "", false},
		{[]string{"list", "--bogus", "--json"}, "", true},
		{[]string{"list", "--jq", ".tools"}, "", true},
		{[]string{"list", "--jq=.tools"}, "", true},
		{[]string{"list"}, "1", true},
		{[]string{"list"}, "maybe", false},
		{[]string{"list", "--json=false"}, "true", false},
		{[]string{"list", "--json=maybe"}, "", true},
		{[]string{"call", "t", "--", "--json"}, "", false},
	} {
		if got := wantsJSON(tt.argv, tt.variable); got != tt.want {
			t.Errorf("%q, %q: %t", tt.argv, tt.variable, got)
		}
	}
}
