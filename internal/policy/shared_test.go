package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
)

// memory is what processes share.
type memory struct {
	data      []byte // of the approvals
	questions map[string][]byte
	away      error
	reads     int // of the approvals
}

func (m *memory) Read(_ context.Context, file string) ([]byte, error) {
	if file == approvalsFile {
		m.reads++
		return m.data, m.away
	}
	return m.questions[file], m.away
}

func (m *memory) Update(_ context.Context, file string, change func([]byte) ([]byte, error)) error {
	if m.away != nil {
		return m.away
	}
	if file == approvalsFile {
		data, err := change(m.data)
		if err == nil {
			m.data = data
		}
		return err
	}
	data, err := change(m.questions[file])
	if err != nil {
		return err
	}
	if m.questions == nil {
		m.questions = map[string][]byte{}
	}
	if m.questions[file] = data; data == nil {
		delete(m.questions, file)
	}
	return nil
}

func (m *memory) Each(ctx context.Context, folder string, use func([]byte, func(context.Context) error) error) error {
	for file, data := range m.questions {
		if !strings.HasPrefix(file, folder+"/") {
			continue
		}
		if err := use(data, func(context.Context) error { delete(m.questions, file); return nil }); err != nil {
			return err
		}
	}
	return m.away
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
	behind := func(context.Context, *registry.Tool) ([]byte, error) { return []byte("secret"), nil }
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
	m.away, m.reads = errors.New("gone"), 0
	if v := (&Policy{Approvals: b}).Decide(alice, tool, registry.Call{}); v.Decision != Deny || !v.Later || v.Reason != "it needs an answer, and gone" {
		t.Errorf("away: %s, %s", v.Decision, v.Reason)
	}
	if m.reads != 1 {
		t.Errorf("a decision waits for %d reads", m.reads)
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

// Questions about calls of clients are shared, those of the person are not; the oldest are
// forgotten if there are too many.
func TestSharedQuestions(t *testing.T) {
	m := &memory{}
	one, two := &Questions{Approvals: &Approvals{Dir: stateDir(t), Project: "/p", Shared: m}}, &Questions{Approvals: &Approvals{Dir: stateDir(t), Project: "/p", Shared: m}}
	alice := caller.With(t.Context(), &caller.Caller{Name: "alice"})
	keep := func(ctx context.Context, q *Questions, k KeptQuestion) string {
		t.Helper()
		kept, err := q.Keep(ctx, k)
		if err != nil {
			t.Fatal(err)
		}
		return kept.ID
	}
	keep(t.Context(), one, KeptQuestion{Call: "own", State: "s"})
	id := keep(alice, one, KeptQuestion{Call: "c", State: "s", Client: "alice"})
	if list, err := two.Pending(t.Context(), false); err != nil || len(list) != 1 || list[0].ID != id {
		t.Fatalf("the other process sees %v, %v", list, err)
	}
	if answered, err := two.Answer(t.Context(), id, "yes", ""); answered != id || err != nil {
		t.Fatalf("answered %q, %v", answered, err)
	}
	if _, ok := one.Answered(t.Context(), "c", "s"); ok {
		t.Error("the person has the answer of a client")
	}
	if got, ok := one.Answered(alice, "c", "s"); !ok || got.Choice != "yes" {
		t.Errorf("the answer is %+v, %t", got, ok)
	}
	if !two.Claim(alice, id) || one.Claim(alice, id) {
		t.Error("the answer can be taken twice, or not at all")
	}
	first := keep(alice, run(one), KeptQuestion{Call: "1", Client: "alice", Question: strings.Repeat("x", maxShared/2)})
	for _, call := range []string{"2", "3"} {
		keep(alice, run(one), KeptQuestion{Call: call, Client: "alice", Question: strings.Repeat("x", maxShared/2)})
	}
	if _, err := one.Answer(t.Context(), first, "yes", ""); err == nil {
		t.Error("the oldest question is kept beside too many")
	}
	if _, err := one.Keep(alice, KeptQuestion{Call: "4", Question: strings.Repeat("x", maxShared/2+1)}); err == nil {
		t.Error("a question is kept that leaves no room for others")
	}
	m.away = errors.New("gone")
	if _, err := one.Pending(t.Context(), false); err == nil {
		t.Error("no error without the store")
	}
	if _, ok := one.Answered(alice, "2", ""); ok || one.Claim(alice, id) {
		t.Error("there is an answer without the store")
	}
}
