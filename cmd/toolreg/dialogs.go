package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/terminal"
)

// talk lets a server ask, log and use a model, as far as the person and the
// settings let it.
func (a *app) talk(ctx context.Context, s *settings.Settings, server settings.Server, o *mcpclient.Options) {
	o.Elicit, o.Refused, o.OnLog, o.LogLevel = a.elicit, a.questionRefused, a.serverLog(), a.logLevel()
	o.Limits.Samples = s.Sampling.Requests
	if s.Sampling.Command.IsSet() {
		o.Sample = a.sampler(ctx, server)
	}
}

// elicit puts the question of a server to the person. Where nobody is there, or
// inside the run of a tool, it declines at once.
func (a *app) elicit(ctx context.Context, e ask.Elicitation) (ask.Answer, error) {
	start := time.Now()
	answer, err := a.putQuestion(ctx, e)
	if err != nil {
		answer.Action = "cancel"
	}
	a.auditQuestion(ctx, e, answer.Action, start)
	return answer, err
}

func (a *app) putQuestion(ctx context.Context, e ask.Elicitation) (ask.Answer, error) {
	declined := ask.Answer{Action: "decline"}
	why := ""
	switch {
	case a.globals.NonInteractive:
		why = "--non-interactive is given"
	case depth(a.environ) > 0:
		why = "inside a tool's run nobody is asked"
	}
	if why != "" {
		a.questionRefused(e.Server, "question", why+": "+e.Message)
		return declined, nil
	}
	a.asking.Lock()
	defer a.asking.Unlock()
	if err := context.Cause(ctx); err != nil {
		return declined, err
	}
	tty, err := terminal.OpenTTY()
	if err != nil {
		a.questionRefused(e.Server, "question", "nobody is there to ask: "+e.Message)
		return declined, nil
	}
	defer func() { _ = tty.Close() }()
	asker := terminal.Asker{TTY: tty, Color: a.color(true), Before: a.holdScreen, Open: terminal.Browser{Environ: a.environ}.Open}
	reply, content, err := asker.Ask(ctx, terminal.Asked{Server: e.Server, During: e.During, Message: e.Message, Form: e.Form, URL: e.URL, Done: e.Done})
	if context.Cause(ctx) != nil {
		time.Sleep(regroup) // nobody waits for this but the next question
	}
	return ask.Answer{Action: replyWord(reply), Content: content}, err
}

// regroup is how long the terminal rests after a question was taken off it
// without an answer. The person may have been typing one, and what they type
// then must not answer the next question, which could come on purpose.
const regroup = 500 * time.Millisecond

// replyWord is a reply in the words of the protocol.
func replyWord(r terminal.Reply) string {
	switch r {
	case terminal.Accept:
		return "accept"
	case terminal.Cancel:
		return "cancel"
	}
	return "decline"
}

// questionRefused tells that a server was turned down without asking anybody.
func (a *app) questionRefused(server, what, reason string) {
	a.warnPaused(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "request_declined", Source: registry.MCPPrefix + server,
		Message: fmt.Sprintf("a %s of server %q was declined: %s", what, server, reason)})
}

// warnPaused warns while a call runs, whose live lines go off the screen for it.
func (a *app) warnPaused(d registry.Diagnostic) {
	if resume := a.pauseStatus(); resume != nil {
		defer resume()
	}
	a.warn(d)
}

// auditQuestion logs what became of a question: who asked, during what, and
// whether it was answered, never the answer.
func (a *app) auditQuestion(ctx context.Context, e ask.Elicitation, action string, start time.Time) {
	if a.set == nil || !a.set.Audit.Enabled {
		return
	}
	asked := e.Schema
	if asked == nil {
		asked, _ = json.Marshal(map[string]string{"url": e.URL}) // a string always encodes
	}
	const method = "elicitation/create"
	entry := audit.Entry{
		Time: start, Tool: registry.ValidName(e.Server + "__" + method), ServerTool: method, Source: registry.MCPPrefix + e.Server, Server: e.Server,
		Project: a.set.ProjectRoot, Decision: "ask", Rule: "person", DurationMs: audit.Milliseconds(time.Since(start)),
		ParamsBytes: len(asked), ParamsSHA256: audit.HashParams(asked), Outcome: audit.OK,
	}
	switch action {
	case "decline":
		entry.Outcome, entry.Code, entry.Exit = audit.Denied, "denied", exitDenied
	case "cancel":
		entry.Outcome, entry.Code, entry.Exit = audit.Cancelled, "cancelled", exitDenied
	}
	log, noLog := a.auditLog(a.set)
	a.addEntry(ctx, entry, log, noLog)
}
