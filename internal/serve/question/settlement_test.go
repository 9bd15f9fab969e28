package question

import (
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
)

// A question that is answered at the console before its client got it is not sent any more.
func TestAnsweredQuestionIsNotParked(t *testing.T) {
	w := &Call{asked: Question{settled: &settlement{}}}
	w.asked.settled.Elsewhere()
	if _, err := NewCalls(Options{}, "").park(t.Context(), w); !errors.Is(err, errSettled) {
		t.Error(err)
	}
}

// A client that can ask its user is not asked to run a command again outside the sandbox.
func TestClientIsNotAskedToLeaveTheSandbox(t *testing.T) {
	c := &Client{can: mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}}
	ctx := caller.With(t.Context(), &caller.Caller{Peer: c})
	q := exec.Question{Tool: &registry.Tool{}, Denied: []string{"reading /x"}, Choices: []exec.Choice{exec.Yes, exec.No}}
	if answer, err := (Asker{}).Confirm(ctx, q); answer.Choice != exec.No || err != nil {
		t.Errorf("%v, %v", answer, err)
	}
}
