package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
)

// questions passes servers' questions to the person.
type questions struct {
	*run
	audit    *callRecorder
	recorded *recordedAnswers // nil unless the run is recorded
}

// elicit asks the person a server's question. If nobody can be asked, it
// declines at once.
func (q *questions) elicit(ctx context.Context, e ask.Elicitation) (ask.Answer, error) {
	start := time.Now()
	answer, err := q.askPerson(ctx, e)
	if err != nil {
		answer.Action = "cancel"
	}
	q.audit.Question(ctx, e, answer.Action, start)
	if q.recorded != nil {
		q.recorded.keepServers(e, answer)
	}
	return answer, err
}

func (q *questions) askPerson(ctx context.Context, e ask.Elicitation) (ask.Answer, error) {
	answer, err := ask.Answer{Action: "decline"}, error(&NobodyError{"nobody can be asked"})
	if q.deps.Asker != nil {
		answer, err = q.deps.Asker.Elicit(ctx, e)
	}
	if nobody, ok := errors.AsType[*NobodyError](err); ok {
		q.declined(e.Server, "question", nobody.Reason+": "+e.Message)
		return ask.Answer{Action: "decline"}, nil
	}
	return answer, err
}

// declined reports that a server's question was declined without asking
// anybody.
func (q *questions) declined(server, what, reason string) {
	q.warnPaused(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "request_declined", Source: registry.MCPPrefix + server,
		Message: fmt.Sprintf("a %s of server %q was declined: %s", what, server, reason)})
}

// warnPaused warns while a call runs. It removes the live lines of the call from the
// screen meanwhile.
func (q *questions) warnPaused(d registry.Diagnostic) {
	defer q.deps.Screen.Pause()()
	q.deps.Warn(d)
}
