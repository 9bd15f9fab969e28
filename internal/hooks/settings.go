// Package hooks runs the commands of the setting hooks around calls. A hook
// receives one JSON object on stdin and may print one on stdout. It can restrict
// calls but not allow them: the policy decides before a hook runs, and again about
// params that it changed. If a beforeCall or afterCall hook fails in any way, the
// call is stopped or its result is withheld.
package hooks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Event is an event for which hooks are run.
type Event string

// The events.
const (
	BeforeCall   Event = "beforeCall"
	AfterCall    Event = "afterCall"
	OnRegister   Event = "onRegister"
	OnDiagnostic Event = "onDiagnostic"
)

// Hook is one command.
type Hook struct {
	Event   Event
	Command []string // argv, unexpanded, run without a shell
	// Expand returns the command with its variables expanded. If nil, it is used unchanged.
	Expand  func() ([]string, error)
	Tools   []string // names or globs of tools; empty means all
	Timeout time.Duration
	Env     []string         // complete environment, as "K=V"
	Confine process.Confiner // nil means it is not confined
	// Origin is the place of the setting, for messages. It may be empty.
	Origin string
	// Place is the rank of the hook's scope. Later scopes have higher ranks, and
	// their hooks cannot bypass those of earlier scopes.
	Place int
}

// String describes the hook in messages.
func (h *Hook) String() string {
	if h.Origin == "" {
		return fmt.Sprintf("%s hook %q", h.Event, h.Command[0])
	}
	return fmt.Sprintf("%s hook %q (%s)", h.Event, h.Command[0], h.Origin)
}

// matches reports whether the hook applies to a tool, by any name that it is called.
func (h *Hook) matches(t *registry.Tool) bool {
	return len(h.Tools) == 0 || slices.ContainsFunc(t.Called(), func(name string) bool {
		return slices.ContainsFunc(h.Tools, func(p string) bool {
			return text.MatchName(registry.Folded(p), strings.ToLower(name))
		})
	})
}
