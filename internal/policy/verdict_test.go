package policy

import (
	"slices"
	"testing"
)

// What an answer would cover is said with the dots that stand for any arguments.
func TestScopeSaysWhatItCovers(t *testing.T) {
	for _, tt := range []struct {
		scope Scope
		want  string
	}{
		{Scope{Kind: ScopeCommand, Values: []string{"git status", "make"}}, `"git status …", "make …"`},
		{Scope{Kind: ScopeCommand, Values: []string{"ls -l"}, Confined: true}, `"ls -l …"`},
		{Scope{Kind: ScopeCommand, Values: []string{"git"}}, `"git"`},
		{Scope{Kind: ScopeCommand, Values: []string{"git"}, Confined: true}, `"git …"`},
	} {
		if got := tt.scope.Covers(); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.scope, got, tt.want)
		}
	}
}

func TestVerdictOffersScopesByKind(t *testing.T) {
	v := Verdict{Scopes: []Scope{{Kind: ScopeTool}, {Kind: ScopeHost, Values: []string{"a.example"}}}}
	if s, ok := v.Scope(ScopeHost); !ok || len(s.Values) != 1 {
		t.Errorf("%+v, %t", s, ok)
	}
	if s, ok := v.Scope(ScopeEdits); ok {
		t.Errorf("%+v is offered", s)
	}
}

// The programs of a line are those that are known before it runs, each once.
func TestVerdictListsPrograms(t *testing.T) {
	v := Verdict{Commands: []CommandVerdict{{Root: "ls"}, {Root: ""}, {Root: "git"}, {Root: "ls"}}}
	if got := v.Roots(); !slices.Equal(got, []string{"ls", "git"}) {
		t.Errorf("%q", got)
	}
}
