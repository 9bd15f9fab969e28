package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
)

// Asker asks the person at the terminal.
type Asker interface {
	// Confirmer returns the confirmer for calls, or nil if nobody can be asked.
	Confirmer() exec.Confirmer
	// Elicit asks a server's question. If nobody can be asked, the error is a
	// *NobodyError.
	Elicit(context.Context, ask.Elicitation) (ask.Answer, error)
}

// Sampler is an [Asker] that answers sampling requests itself, instead of the setting
// sampling.command. The result is that of sampling/createMessage.
type Sampler interface {
	Sample(context.Context, ask.Sampling) (json.RawMessage, error)
}

// NobodyError says why nobody could be asked a question.
type NobodyError struct{ Reason string }

func (e *NobodyError) Error() string { return e.Reason }

// questions passes servers' questions to the person.
type questions struct {
	asker   Asker // nil: nobody can be asked
	audit   *callRecorder
	reports *reports
	tape    *tape // nil: the run is neither recorded nor replayed
}

// elicit asks the person a server's question. If nobody can be asked, it
// declines at once.
func (q *questions) elicit(ctx context.Context, e ask.Elicitation) (ask.Answer, error) {
	start := time.Now()
	answer, err := q.askPerson(ctx, e)
	if err != nil {
		answer.Action = ask.Cancel
	}
	q.audit.Question(ctx, e, answer.Action, start)
	q.tape.keepServers(e, answer)
	return answer, err
}

func (q *questions) askPerson(ctx context.Context, e ask.Elicitation) (ask.Answer, error) {
	answer, err := ask.Answer{Action: ask.Decline}, error(&NobodyError{"nobody can be asked"})
	if q.asker != nil {
		answer, err = q.asker.Elicit(ctx, e)
	}
	if nobody, ok := errors.AsType[*NobodyError](err); ok {
		q.declined(e.Server, "question", nobody.Reason+": "+e.Message)
		return ask.Answer{Action: ask.Decline}, nil
	}
	return answer, err
}

// declined reports that a server's question was declined without asking
// anybody.
func (q *questions) declined(server, what, reason string) {
	q.reports.whileRunning(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "request_declined", Source: registry.MCPPrefix + server,
		Message: fmt.Sprintf("a %s of server %q was declined: %s", what, server, reason)})
}
