package policy

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

// memory is what processes share.
type memory struct {
	data []byte
	away error
}

func (m *memory) Read(context.Context) ([]byte, error) { return m.data, m.away }

func (m *memory) Update(_ context.Context, change func([]byte) ([]byte, error)) error {
	if m.away != nil {
		return m.away
	}
	data, err := change(m.data)
	if err == nil {
		m.data = data
	}
	return err
}

func (m *memory) Key() []byte { return []byte("key") }

// What cannot be stored in one place does not touch the other one.
func TestApprovalsAreAddedWhereTheyBelong(t *testing.T) {
	own, client := Approval{ID: "1"}, Approval{ID: "2", Client: "alice"}
	m := &memory{away: errors.New("gone")}
	a := &Approvals{Dir: stateDir(t), Project: "/p", Shared: m}
	if err := a.Add(t.Context(), []Approval{own}); err != nil {
		t.Errorf("without the store: %v", err)
	}
	unavailable := &Approvals{Unavailable: errors.New("no folder"), Project: "/p", Shared: &memory{}}
	if err := unavailable.Add(t.Context(), []Approval{client}); err != nil {
		t.Errorf("without a folder: %v", err)
	}
	shared := &memory{}
	unavailable.Shared = shared
	if err := unavailable.Add(t.Context(), []Approval{own, client}); err == nil || shared.data != nil {
		t.Errorf("both, without a folder: %v, %s", err, shared.data)
	}
}

// Approvals of clients are shared, those of the person are not; what cannot be read denies.
func TestSharedApprovals(t *testing.T) {
	m := &memory{}
	behind := func(*registry.Tool) []byte { return []byte("secret") }
	a := &Approvals{Dir: stateDir(t), Project: "/p", Folder: "1", Shared: m, Behind: behind}
	b := &Approvals{Dir: stateDir(t), Project: "/p", Folder: "2", Shared: m, Behind: behind}
	other := &Approvals{Dir: stateDir(t), Project: "/q", Shared: m, Behind: behind}
	tool := mcpTool("s", "t", "t")
	alice := caller.With(t.Context(), &caller.Caller{Name: "alice"})
	bob := caller.With(t.Context(), &caller.Caller{Name: "bob"})
	if err := a.Remember(alice, tool, Scope{Kind: ScopeTool}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		at   *Approvals
		ctx  context.Context
		want Decision
	}{
		"there": {a, alice, Allow}, "elsewhere": {b, alice, Allow}, "another project": {other, alice, Ask}, "another client": {b, bob, Ask}, "the person": {a, t.Context(), Ask},
	} {
		if v := (&Policy{Approvals: tt.at}).Decide(tt.ctx, tool, registry.Call{}); v.Decision != tt.want {
			t.Errorf("%s: %s", name, v.Decision)
		}
	}
	m.away = errors.New("gone")
	if v := (&Policy{Approvals: b}).Decide(alice, tool, registry.Call{}); v.Decision != Deny || v.Reason != "it needs an answer, and gone" {
		t.Errorf("away: %s, %s", v.Decision, v.Reason)
	}
	if v := (&Policy{Approvals: b}).Decide(t.Context(), tool, registry.Call{}); v.Decision != Ask {
		t.Errorf("the person, while it is away: %s", v.Decision)
	}
	if _, err := b.List(t.Context(), false); !errors.Is(err, m.away) {
		t.Error(err)
	}
	m.away = nil
	list, err := b.List(t.Context(), false)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err := b.Revoke(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	if v := (&Policy{Approvals: a}).Decide(alice, tool, registry.Call{}); v.Decision != Ask {
		t.Errorf("revoked: %s", v.Decision)
	}
	if err := a.Remember(t.Context(), tool, Scope{Kind: ScopeTool}); err != nil || !slices.Equal(m.data, []byte(`{"version":1,"approvals":[]}`)) {
		t.Errorf("the person's answer: %s, %v", m.data, err)
	}
	m.data = []byte("{")
	if v := (&Policy{Approvals: a}).Decide(alice, tool, registry.Call{}); v.Decision != Ask {
		t.Errorf("damaged: %s", v.Decision)
	}
	if err := a.Remember(alice, tool, Scope{Kind: ScopeTool}); err != nil {
		t.Error(err)
	}
}
