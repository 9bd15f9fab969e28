package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
)

// Without --timeout tools keep their own time limits; 0 removes them.
func TestTimeoutFlag(t *testing.T) {
	for _, tt := range []struct {
		set         bool
		value, want time.Duration // negative: no limit
	}{{false, 0, 0}, {true, 0, -1}, {true, time.Minute, time.Minute}} {
		s := newWorld(t, "").session(Options{})
		s.Settings.Globals.TimeoutSet, s.Settings.Globals.Timeout = tt.set, tt.value
		x, err := s.gate.newExecutor(t.Context(), registry.NewLoader(registry.Options{}).Load(t.Context(), nil, true))
		if err != nil {
			t.Fatal(err)
		}
		if x.Timeout != tt.want {
			t.Errorf("%t, %s: %s, want %s", tt.set, tt.value, x.Timeout, tt.want)
		}
		if x.Confirmer != nil {
			t.Error("the executor has a confirmer although there is no Asker")
		}
	}
}

// answering answers questions of servers.
type answering struct {
	answer ask.Answer
	err    error
}

func (a answering) Confirmer() exec.Confirmer { return nil }
func (a answering) Elicit(context.Context, ask.Elicitation) (ask.Answer, error) {
	return a.answer, a.err
}

// A server's question is declined with a warning if nobody can be asked.
func TestQuestionsOfServers(t *testing.T) {
	lost := errors.New("the terminal is gone")
	for _, tt := range []struct {
		name   string
		asker  Asker
		action string
		err    error
		warned string
	}{
		{"nobody", nil, "decline", nil, `a question of server "s" was declined: nobody can be asked: Your name?`},
		{"nobody, for a reason", answering{err: &NobodyError{Reason: "--non-interactive is given"}}, "decline", nil, `declined: --non-interactive is given: Your name?`},
		{"an answer", answering{answer: ask.Answer{Action: "accept"}}, "accept", nil, ""},
		{"a no", answering{answer: ask.Answer{Action: "decline"}}, "decline", nil, ""},
		{"a failure", answering{answer: ask.Answer{Action: "decline"}, err: lost}, "cancel", lost, ""},
	} {
		w := newWorld(t, "")
		s := w.session(Options{})
		q := &questions{tt.asker, s.gate, s.finder.reports}
		answer, err := q.elicit(t.Context(), ask.Elicitation{Server: "s", Message: "Your name?"})
		if answer.Action != tt.action || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v", tt.name, answer.Action, err)
		}
		if got := strings.Join(w.warned, "; "); tt.warned == "" && got != "" || !strings.Contains(got, tt.warned) {
			t.Errorf("%s: warned %q", tt.name, got)
		}
	}
}
