package offer

import (
	"strings"
	"testing"
)

// Who gets which profile, by token, groups and address.
func TestProfileFor(t *testing.T) {
	p := Profiles{{Name: "open"}, {Name: "ops", Groups: []string{"ops", "sre-*"}}, {Name: "dev", Groups: []string{"dev"}}}
	for _, tt := range []struct{ bound, groups, named, want string }{
		{"", "", "", ""},
		{"", "", "open", "open"},
		{"", "", "absent", "404"},
		{"", "", "ops", "404"},
		{"", "other", "", ""},
		{"", "other", "ops", "404"},
		{"", "sre-1", "", "ops"},
		{"", "sre-1", "ops", "ops"},
		{"", "sre-1", "open", "404"},
		{"", "sre-1", "dev", "404"},
		{"", "dev ops", "", "ops"},
		{"", "dev ops", "dev", "dev"},
		{"ops", "", "", "ops"},
		{"ops", "", "ops", "ops"},
		{"ops", "", "open", "404"},
		{"ops", "dev", "dev", "404"},
	} {
		got, ok := p.For(tt.bound, strings.Fields(tt.groups), tt.named)
		if !ok {
			got = "404"
		}
		if got != tt.want {
			t.Errorf("token for %q, groups %q, address of %q: %q, want %q", tt.bound, tt.groups, tt.named, got, tt.want)
		}
	}
}
