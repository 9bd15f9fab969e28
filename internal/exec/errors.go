package exec

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// ErrTimeout reports that a call exceeded its time limit. The result returned with it contains the
// output so far. If a tool enforces a limit itself, it returns a result with category timeout and
// no error. The exit code is 124 in both cases.
var ErrTimeout = errors.New("time limit reached")

// LimitedError reports that a client has made as many calls as it may for now.
type LimitedError struct {
	Tool  string
	Calls int           // that are permitted
	Per   time.Duration // in this time
	Again time.Duration // until another call is permitted
	// Origin is the place of the limit.
	Origin string
}

func (e *LimitedError) Error() string {
	return fmt.Sprintf("%q was not called: %s (serve.limits, %s); try again in %s",
		e.Tool, e.permitted(), e.Origin, e.Again)
}

func (e *LimitedError) permitted() string {
	if e.Calls == 1 {
		return fmt.Sprintf("1 call in %s is permitted", e.Per)
	}
	return fmt.Sprintf("%d calls in %s are permitted", e.Calls, e.Per)
}

// TimeoutError is the limit that was exceeded. It wraps ErrTimeout.
type TimeoutError struct {
	Tool   string
	Server string // server of an MCP tool, or ""
	Limit  time.Duration
}

func (e *TimeoutError) Error() string {
	where := ""
	if e.Server != "" {
		where = fmt.Sprintf(" on server %q", e.Server)
	}
	return fmt.Sprintf("calling %q%s: time limit of %s reached", e.Tool, where, e.Limit)
}

// Hint says how to change the limit.
func (e *TimeoutError) Hint() string { return "use --timeout to change it" }

// Unwrap returns ErrTimeout.
func (e *TimeoutError) Unwrap() error { return ErrTimeout }

// Denied reports that a call must not run. It wraps registry.ErrDenied.
type Denied struct {
	Tool   string
	Reason string // with OriginPerson, why there was no answer; "" if there was one
	Origin string // file:line, a flag, "default", "approval" or OriginPerson
	Said   string // the person's reason; it may be empty
	// Later says that nothing forbids the call: something that must decide on it is unavailable
	// now, for the Reason.
	Later bool
}

// OriginPerson is the [Denied.Origin] of a call that a person denied.
const OriginPerson = "person"

func (e *Denied) Error() string {
	if e.Later {
		return fmt.Sprintf("%q was not called: %s", e.Tool, e.Reason)
	}
	if e.Origin == OriginPerson {
		reason := cmp.Or(e.Reason, "you said no")
		if e.Said != "" {
			reason += ": " + e.Said
		}
		return fmt.Sprintf("%q was denied: %s", e.Tool, reason)
	}
	return fmt.Sprintf("%q is denied: %s (%s)", e.Tool, e.Reason, e.Origin)
}

// Unwrap returns registry.ErrDenied.
func (e *Denied) Unwrap() error { return registry.ErrDenied }

// NeedsConfirmation reports that a call needs confirmation and nobody can be
// asked. It wraps registry.ErrNeedsConfirmation or, if a server that failed may have the
// name of the tool, registry.ErrSourceFailed.
type NeedsConfirmation struct {
	Tool    string
	Verdict policy.Verdict
	Hint    string // flag or rule that would allow the call
	// Kept is the question, if it was kept for a later answer. Its id is for people, and not
	// part of the message, which a model may read.
	Kept *policy.KeptQuestion
}

func (e *NeedsConfirmation) Error() string {
	if e.Verdict.Contested != "" {
		return fmt.Sprintf("%q is not called, because nobody can be asked which server is meant: %s",
			e.Tool, e.Verdict.Reason)
	}
	return fmt.Sprintf("%q needs approval and nobody can be asked: %s; %s", e.Tool, e.Verdict.Reason, e.Hint)
}

func (e *NeedsConfirmation) Unwrap() error {
	if e.Verdict.Contested != "" {
		return registry.ErrSourceFailed
	}
	return registry.ErrNeedsConfirmation
}

// Hint returns how a call that needs confirmation could be allowed: once by a flag
// and, if possible, permanently by a setting.
func Hint(t *registry.Tool, v policy.Verdict) string {
	lasting := LastingHint(t, v)
	switch {
	case v.Person:
		return "answer at a terminal; neither --yes nor a rule can allow it"
	case v.Unread:
		return lasting + ", or answer at a terminal; --yes denies such a line"
	case v.Unsure:
		return lasting + ", or answer at a terminal; --yes denies what may be a banned command"
	}
	return "--yes allows it this time; " + lasting
}

// LastingHint is [Hint] without the flags, which only the person at the command
// line can use.
func LastingHint(t *registry.Tool, v policy.Verdict) string {
	named := t.Named() // permissions by name do not follow a project's renames
	entry := fmt.Sprintf("%q", named.Name)
	switch {
	case v.Unread:
		return "write the command line so that it can be parsed"
	case v.Unsure:
		return "name the program literally"
	case v.ByPath && !v.Person:
		return "a rule with its path in policy.rules allows it permanently"
	case v.Person, v.Firm:
		return "no rule can allow it permanently"
	case v.Rule != nil && v.Rule.Decision == policy.Sandbox:
		return fmt.Sprintf("the rule at %s allows it once it can run in the sandbox", v.Origin)
	case v.Rule != nil && v.Rule.Decision == policy.Ask:
		return "the rule that asks is set at " + v.Origin
	case t.Bears() != nil:
		return fmt.Sprintf("no rule that names it can allow it, because its name is a built-in tool's; "+
			"overrides.%s.name gives it another", t.Name)
	case len(v.Scopes) > 0 && v.Scopes[0].Kind == policy.ScopeCommand:
		entries := make([]string, len(v.Scopes[0].Values))
		for i, root := range v.Scopes[0].Values {
			entries[i] = fmt.Sprintf("%q", named.Name+"("+root+")")
		}
		entry = strings.Join(entries, ", ")
	case t.OfServer():
		allows := fmt.Sprintf("the setting allowedTools: [%q]", t.Server+"__"+named.PlainName())
		if !named.IsClear() || strings.Contains(named.PlainName(), "(") {
			allows = fmt.Sprintf("the rule {server: %q, tool: %q, decision: allow} in policy.rules",
				t.Server, named.PlainName())
		}
		return fmt.Sprintf("%s or trust: true of %s allows it permanently", allows, t.ServerLabel())
	case len(v.Commands) > 0:
		return "no rule on commands covers this line"
	}
	lasting := fmt.Sprintf("the setting allowedTools: [%s] allows it permanently", entry)
	if len(v.Scopes) > 0 && v.Scopes[0].Confined {
		lasting += fmt.Sprintf(", the rule {tool: %s, decision: sandbox} in policy.rules only in the sandbox", named.Name)
	}
	return lasting
}

// ResultError returns err, or a *ToolError if the result reports an error.
func ResultError(r registry.Result, err error) error {
	if err == nil && r.IsError {
		return &ToolError{Category: r.ErrorCategory}
	}
	return err
}

// ToolError reports that a tool ran and failed; the error is in its result.
type ToolError struct{ Category registry.ErrorCategory }

func (e *ToolError) Error() string {
	if e.Category == registry.ErrorTimeout {
		return "the tool reported that a time limit was reached"
	}
	return "the tool reported an error"
}

// ScriptError reports that a call ended a script. It wraps the error of the call.
type ScriptError struct {
	At   string // FILE:LINE:COL
	Done string // what the script did before, in words; may be empty
	// Lines are what the script printed.
	Lines string
	Err   error
}

func (e *ScriptError) Error() string {
	text := e.At + ": " + e.Err.Error()
	if e.Done != "" {
		text += "; done before: " + e.Done
	}
	return text
}

// Unwrap returns the error of the call.
func (e *ScriptError) Unwrap() error { return e.Err }

// Explain describes an error to a model. It does not mention settings or paths,
// which only concern the person.
func Explain(err error) string {
	if e, ok := errors.AsType[*ScriptError](err); ok {
		return explainScript(e)
	}
	if e, ok := errors.AsType[*registry.ArgsError](err); ok {
		return explainParams(e)
	}
	if e, ok := errors.AsType[*LimitedError](err); ok {
		return fmt.Sprintf("This call was not run: %s. Try again in %s, or continue without it.",
			e.permitted(), e.Again)
	}
	if e, ok := errors.AsType[interface {
		error
		ForModel() string
	}](err); ok {
		return e.ForModel()
	}
	switch {
	case errors.Is(err, registry.ErrSourceFailed):
		if e, ok := errors.AsType[interface {
			error
			Advice() string
		}](err); ok && e.Advice() != "" {
			return e.Advice() + " " + err.Error()
		}
		return "The tool is not available: its source failed. Continue without it. " + err.Error()
	case errors.Is(err, registry.ErrNotFound):
		switch e, ok := errors.AsType[*registry.NotFoundError](err); {
		case !ok || e.Hidden == nil:
		case e.Hidden.Now != "":
			return fmt.Sprintf("The tool %q is now named %q. Call it by that name.", e.Name, e.Hidden.Now)
		case e.Hidden.Kept:
			server, _ := registry.ServerOf(e.Hidden.Source)
			return fmt.Sprintf("The tool %q of server %q is not available. "+
				"Continue without it; a tool of another server is not the same.", e.Name, server)
		default:
			return fmt.Sprintf("The tool %q is disabled. Continue without it.", e.Name)
		}
		return "There is no such tool. Call only tools that are declared or that were found."
	case errors.Is(err, registry.ErrDenied):
		why := ""
		switch e, ok := errors.AsType[*Denied](err); {
		case ok && e.Later:
			return "This call was not run: " + e.Reason + "."
		case ok && e.Origin == OriginPerson:
			return explainRefusal(e)
		case ok:
			why = ": " + e.Reason
		}
		return "This call is not allowed, so it was not run" + why + ". Do not repeat it; find another way."
	case errors.Is(err, registry.ErrNeedsConfirmation):
		if e, ok := errors.AsType[*NeedsConfirmation](err); ok && e.Kept != nil {
			return "A person must approve this call, which has not happened yet, so it was not run. Tell the user; " +
				"once it is approved, make exactly the same call again. Until then, continue without it."
		}
		return "This call needs the user's approval, but nobody can be asked, so it was not run. " +
			"Continue without it, and tell the user what you would have done."
	case errors.Is(err, ErrTimeout):
		return "The call reached its time limit and was stopped; it may have taken effect in part. " +
			"Check before you repeat it, or request less."
	}
	return "The call failed: " + err.Error()
}

// explainScript describes the call that ended a script, and what the script did before.
func explainScript(e *ScriptError) string {
	text := Explain(e.Err)
	if missing, ok := errors.AsType[*registry.NotFoundError](e.Err); ok &&
		missing.Hidden == nil && !errors.Is(e.Err, registry.ErrSourceFailed) {
		text = fmt.Sprintf("There is no tool %q; search(words) finds tools.", missing.Name)
	}
	text = "The script ended with its call at " + e.At + ". " + text
	switch open, asks := errors.AsType[*NeedsConfirmation](e.Err); {
	case e.Done == "":
	case asks && open.Kept != nil:
		text += " The calls before it are finished and will not be made again: " + e.Done + "."
	default:
		text += " Finished before: " + e.Done + "."
	}
	return text
}

// explainRefusal describes a person's refusal, or that there was no answer.
func explainRefusal(e *Denied) string {
	const goOn = " Do not repeat it; find another way or ask the user."
	switch {
	case e.Said != "":
		return "The user said no to this call, so it was not run. The reason given: " + e.Said + "\n" + goOn[1:]
	case e.Reason != "":
		return "The user was asked about this call and did not approve it (" + e.Reason + "), so it was not run." + goOn
	}
	return "The user said no to this call, so it was not run." + goOn
}

// maxExplained is the maximum number of mistakes in params to list.
const maxExplained = 20

func explainParams(e *registry.ArgsError) string {
	var b strings.Builder
	b.WriteString("The params do not match the tool's schema, so it was not run. Correct them and call again:")
	for i, v := range e.Violations {
		if i == maxExplained {
			fmt.Fprintf(&b, "\n- and %d more", len(e.Violations)-i)
			break
		}
		b.WriteString("\n- ")
		if v.Pointer != "" {
			b.WriteString(v.Pointer + ": ")
		}
		b.WriteString(v.Message)
	}
	return b.String()
}
