package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
)

func TestReportsMaskSecrets(t *testing.T) {
	var warned []registry.Diagnostic
	r := newReports(func(d registry.Diagnostic) { warned = append(warned, d) }, nil, nil,
		strings.NewReplacer("hunter2", "***").Replace, nil)
	d := registry.Diagnostic{Message: "no hunter2", Hint: "drop hunter2"}
	r.add(d)
	r.notice(d)
	r.notice(d)
	want := []registry.Diagnostic{{Message: "no ***", Hint: "drop ***"}}
	if diff := cmp.Diff(want, warned); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, r.with(nil)); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
}
