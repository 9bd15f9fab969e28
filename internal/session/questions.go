package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
)

// elicit puts the question of a server to the person. Where nobody is there it
// declines at once.
func (s *Session) elicit(ctx context.Context, q ask.Elicitation) (ask.Answer, error) {
	start := time.Now()
	answer, err := s.askPerson(ctx, q)
	if err != nil {
		answer.Action = "cancel"
	}
	s.recordQuestion(ctx, q, answer.Action, start)
	return answer, err
}

func (s *Session) askPerson(ctx context.Context, q ask.Elicitation) (ask.Answer, error) {
	answer, err := ask.Answer{Action: "decline"}, error(&NobodyError{"nobody is there to ask"})
	if s.deps.Asker != nil {
		answer, err = s.deps.Asker.Elicit(ctx, q)
	}
	if nobody, ok := errors.AsType[*NobodyError](err); ok {
		s.requestDeclined(q.Server, "question", nobody.Reason+": "+q.Message)
		return ask.Answer{Action: "decline"}, nil
	}
	return answer, err
}

// requestDeclined tells that a server was turned down without asking anybody.
func (s *Session) requestDeclined(server, what, reason string) {
	s.warnPaused(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "request_declined", Source: registry.MCPPrefix + server,
		Message: fmt.Sprintf("a %s of server %q was declined: %s", what, server, reason)})
}

// warnPaused warns while a call runs, whose live lines go off the screen for it.
func (s *Session) warnPaused(d registry.Diagnostic) {
	defer s.deps.Screen.Pause()()
	s.deps.Warn(d)
}
