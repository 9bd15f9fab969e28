// Package hooks runs the commands of the setting hooks around calls. A hook
// receives one JSON object on stdin and may print one on stdout. It can restrict
// calls but not allow them: the policy decides before a hook runs, and again about
// params that it changed. If a beforeCall or afterCall hook fails in any way, the
// call is stopped or its result is withheld.
package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
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

// events returns all events.
func events() []Event { return []Event{BeforeCall, AfterCall, OnRegister, OnDiagnostic} }

// DefaultTimeout is the time limit of a hook that has no timeout of its own.
const DefaultTimeout = 10 * time.Second

// Hook is one command.
type Hook struct {
	Event   Event
	Command []string // argv, unexpanded, run without a shell
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

// Parse parses the setting hooks: an object of lists by event. Other keys are
// ignored, because other programs have a setting of the same name.
func Parse(raw json.RawMessage) (found []Hook, err error) {
	var byEvent map[string]json.RawMessage
	if err := json.Unmarshal(raw, &byEvent); err != nil {
		return nil, fmt.Errorf("hooks: expected an object with the keys %s, %s, %s or %s", BeforeCall, AfterCall, OnRegister, OnDiagnostic)
	}
	for _, e := range events() {
		list, ok := byEvent[string(e)]
		if !ok || string(list) == "null" {
			continue
		}
		hooks, err := parseList(e, list)
		if err != nil {
			return nil, err
		}
		found = append(found, hooks...)
	}
	return found, nil
}

func parseList(e Event, list json.RawMessage) ([]Hook, error) {
	var items []json.RawMessage
	if json.Unmarshal(list, &items) != nil {
		return nil, fmt.Errorf("hooks.%s: expected a list of objects with the key command", e)
	}
	out := make([]Hook, 0, len(items))
	for i, item := range items {
		h, err := parseHook(item)
		if err != nil {
			return nil, fmt.Errorf("hooks.%s[%d]: %w", e, i, err)
		}
		h.Event = e
		out = append(out, h)
	}
	return out, nil
}

func parseHook(item json.RawMessage) (Hook, error) {
	var in struct {
		Command json.RawMessage `json:"command"`
		Tools   []string        `json:"tools"`
		Timeout json.RawMessage `json:"timeout"`
	}
	if err := jsonx.DecodeKnown(item, &in); err != nil {
		return Hook{}, fmt.Errorf("%w; it takes command, tools and timeout", err)
	}
	h := Hook{Tools: in.Tools, Timeout: DefaultTimeout}
	var err error
	if h.Command, err = parseCommand(in.Command); err != nil {
		return Hook{}, err
	}
	if len(in.Timeout) > 0 {
		h.Timeout, err = parseTimeout(in.Timeout)
	}
	return h, err
}

func parseCommand(raw json.RawMessage) ([]string, error) {
	var line string
	var argv []string
	if json.Unmarshal(raw, &line) == nil {
		var err error
		if argv, err = process.Split(line); err != nil {
			return nil, fmt.Errorf("command: %w", err)
		}
	} else if json.Unmarshal(raw, &argv) != nil {
		return nil, errors.New("command: expected a string or a list of strings")
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("command is missing")
	}
	return argv, nil
}

// parseTimeout reads milliseconds or a duration. A timeout of 0 is not allowed,
// because a hook without a limit could block every call.
func parseTimeout(raw json.RawMessage) (time.Duration, error) {
	var text string
	var ms int64
	var d time.Duration
	if json.Unmarshal(raw, &text) == nil {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			return 0, fmt.Errorf(`timeout: expected a duration such as "5s", got %q`, text)
		}
	} else if json.Unmarshal(raw, &ms) == nil && ms < int64(time.Hour/time.Millisecond) {
		d = time.Duration(ms) * time.Millisecond
	}
	if d <= 0 || d > time.Hour {
		return 0, errors.New(`timeout: expected a duration such as "5s", or milliseconds, up to an hour`)
	}
	return d, nil
}
