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
	"github.com/toolreg/toolreg/internal/settings"
)

// Without --timeout tools have the limits of their options, or keep their own; 0 removes them.
func TestTimeLimit(t *testing.T) {
	for _, tt := range []struct {
		option string
		set    bool
		flag   time.Duration
		want   time.Duration // negative: no limit
	}{
		{"", false, 0, 0},
		{"", true, 0, -1},
		{"", true, time.Minute, time.Minute},
		{"1h", false, 0, time.Hour},
		{"1h", true, time.Minute, time.Minute},
		{"1h", true, 0, -1},
		{"0s", false, 0, -1},
	} {
		s := newWorld(t, "").session(Options{})
		s.Settings.Globals.TimeoutSet, s.Settings.Globals.Timeout = tt.set, tt.flag
		if limit, err := time.ParseDuration(tt.option); err == nil {
			s.Settings.ToolOptions = []settings.ToolOption{{Pattern: "*", Timeout: &limit}}
		}
		if got := s.gate.runs.TimeLimit(&registry.Tool{Definition: registry.Definition{Name: "t"}}); got != tt.want {
			t.Errorf("option %q, %t, %s: %s, want %s", tt.option, tt.set, tt.flag, got, tt.want)
		}
	}
}

// Without an Asker no person is asked.
func TestNoAsker(t *testing.T) {
	s := newWorld(t, "").session(Options{})
	if x, err := s.gate.executor(t.Context(), Found{}); err != nil || x.Confirmer != nil {
		t.Errorf("the executor has a confirmer: %t, %v", x.Confirmer != nil, err)
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
		q := &questions{asker: tt.asker, programs: s.programs, audit: s.audit, reports: s.finder.reports, gate: s.gate}
		answer, err := q.elicit(t.Context(), ask.Elicitation{Server: "s", Message: "Your name?"})
		if answer.Action != tt.action || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v", tt.name, answer.Action, err)
		}
		if got := strings.Join(w.warned, "; "); tt.warned == "" && got != "" || !strings.Contains(got, tt.warned) {
			t.Errorf("%s: warned %q", tt.name, got)
		}
	}
}
