package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/confine"
	"github.com/toolreg/toolreg/internal/engine/programs"
	"github.com/toolreg/toolreg/internal/engine/record"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// questions passes servers' questions to the person.
type questions struct {
	asker    Asker // nil if nobody can be asked
	programs *programs.Set
	audit    *record.Calls
	tape     *record.Tape
	reports  *reports
	gate     *gate // for questions to a model
}

func (q *questions) callbacks(server settings.Server) ask.Callbacks {
	out := ask.Callbacks{Elicit: q.elicit, Refused: q.declined}
	if other, ok := q.asker.(Sampler); ok {
		out.Sample = other.Sample
	} else if q.programs.Settings.Sampling.Command.IsSet() {
		out.Sample = (&samplingCommand{questions: q, server: server}).Answer
	}
	return out
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
	q.tape.KeepServers(e, answer)
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
	q.reports.whileRunning(registry.Warning("request_declined", registry.MCPPrefix+server,
		fmt.Sprintf("a %s of server %q was declined: %s", what, server, reason), ""))
}

const maxOutput = 1 << 20

// samplingCommand answers the requests of one server with sampling.command. Each request is decided
// on like a call of a tool SERVER__sampling: it needs confirmation unless the server is trusted,
// "always" is remembered, and rules, approval modes, hooks and the audit log apply.
type samplingCommand struct {
	*questions
	server settings.Server

	mu       sync.Mutex // one request at a time
	executor *exec.Executor
}

// Answer returns the result of sampling/createMessage. It is safe for concurrent
// use.
func (s *samplingCommand) Answer(ctx context.Context, q ask.Sampling) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if s.executor == nil { // created on the first request, because most runs do not need it
		var err error
		if s.executor, err = s.gate.sampler(ctx); err != nil {
			return nil, err
		}
	}
	tool := s.tool(q.During)
	result, err := s.executor.Execute(ctx, tool, registry.Call{Tool: tool.Name, Params: q.Params})
	switch {
	case errors.Is(err, registry.ErrNeedsConfirmation):
		s.declined(fmt.Sprintf(
			"nobody can be asked; add a rule that allows the tool %q, or set trust: true for the server", tool.Name))
		return nil, errors.New("the user does not allow it")
	case errors.Is(err, registry.ErrDenied):
		s.declined(err.Error())
		refusal := &ask.DeclinedError{}
		if denied, ok := errors.AsType[*exec.Denied](err); ok {
			refusal.Said = denied.Said
		}
		return nil, refusal
	case err != nil:
		s.declined(err.Error())
		return nil, err
	case result.IsError:
		return nil, errors.New(result.Text())
	case result.Structured != nil:
		return result.Structured, nil
	}
	// A hook replaced the result with text.
	message, err := messageOf([]byte(result.Text()), filepath.Base(s.programs.Settings.Sampling.Command.Argv[0]))
	if err != nil {
		s.declined("a hook replaced the answer, and " + err.Error())
	}
	return message, err
}

func (s *samplingCommand) declined(reason string) {
	s.questions.declined(s.server.Name, "sampling request", reason)
}

func (s *samplingCommand) tool(during string) *registry.Tool {
	command, server := s.programs.Settings.Sampling.Command, s.server
	source := registry.MCPPrefix + server.Name
	// An approval is tied to this command for this server, as written. Strings always encode.
	identity, _ := json.Marshal(map[string]any{"sampling": secret.Args(command.Argv), "server": server.Name,
		"command": server.Command, "args": secret.Args(server.Args), "url": secret.MaskKnown(server.URL),
		"httpUrl": secret.MaskKnown(server.HTTPURL)})
	t := &registry.Tool{Identity: identity, Trusted: server.Trust,
		Definition: registry.Definition{
			Name: registry.ValidName(server.Name + "__sampling"), ServerTool: samplingMethod,
			Server: server.Name, Source: source,
			Description: "Asks your model a question from the server.", Category: registry.CategoryOther,
			InputSchema: json.RawMessage(`{"type":"object"}`),
		},
	}
	t.Timeout = s.programs.Settings.Sampling.Timeout
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		return s.call(ctx, call.Params)
	}
	t.Preview = func(context.Context, registry.Call) (registry.Preview, error) {
		return registry.Preview{
			Kind: registry.PreviewInfo,
			Title: fmt.Sprintf("During %s, server %q asks your model to answer the following.\nThe answer goes to the server. The command is %q (%s).",
				during, server.Name, strings.Join(command.Argv, " "), command.Origin),
		}, nil
	}
	return t
}

// call runs the command: the params of the request are its stdin, the result or
// plain text its stdout.
func (s *samplingCommand) call(ctx context.Context, params json.RawMessage) (registry.Result, error) {
	command := s.programs.Settings.Sampling.Command
	argv, err := s.programs.Expander.Command(command)
	if err != nil {
		return registry.Result{}, err
	}
	out, err := s.programs.Confiner.ProgramsOf(confine.Processor, command.Origin.Scope).Run(ctx,
		process.Spec{
			Argv:      argv,
			Dir:       s.programs.Settings.ProjectRoot,
			Env:       s.programs.EnvFor(command),
			Stdin:     params,
			MaxOutput: maxOutput,
		})
	switch {
	case context.Cause(ctx) != nil:
		return registry.Result{}, context.Cause(ctx)
	case err != nil:
		return s.failed(err, nil), nil
	case out.Err() != nil:
		return s.failed(out.Err(), out.Stderr), nil
	}
	message, err := messageOf(out.Stdout, filepath.Base(argv[0]))
	if err != nil {
		return s.failed(err, out.Stderr), nil
	}
	r := registry.TextResult(string(message))
	r.Structured = message
	return r, nil
}

// failed shows the person how the command failed. The server learns only that it did.
func (s *samplingCommand) failed(why error, stderr []byte) registry.Result {
	text := "sampling.command failed: " + why.Error()
	s.reports.whileRunning(registry.Warning("sampling_failed", "", text+tailOf(stderr), ""))
	return registry.ErrorResult(registry.ErrorExecution, text)
}

// messageOf parses the command's output: a result of
// sampling/createMessage, or text that is the assistant's answer.
func messageOf(printed []byte, model string) (json.RawMessage, error) {
	printed = bytes.TrimSpace(text.WithoutMark(printed))
	var head struct {
		Role    *string         `json:"role"`
		Model   *string         `json:"model"`
		Content json.RawMessage `json:"content"`
	}
	if len(printed) > 0 && printed[0] == '{' && json.Unmarshal(printed, &head) == nil && head.Content != nil {
		if head.Role == nil || head.Model == nil || head.Content[0] != '{' {
			return nil, errors.New("its JSON is not a message: role, model and a content object are required")
		}
		return json.RawMessage(printed), nil
	}
	switch {
	case len(printed) == 0:
		return nil, errors.New("it printed nothing")
	case !utf8.Valid(printed):
		return nil, errors.New("its output is not text")
	}
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	return json.Marshal(struct {
		Role       string  `json:"role"`
		Content    content `json:"content"`
		Model      string  `json:"model"`
		StopReason string  `json:"stopReason"`
	}{"assistant", content{"text", string(printed)}, model, "endTurn"})
}
