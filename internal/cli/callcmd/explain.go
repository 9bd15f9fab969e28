package callcmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/dialogue"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/registry"
)

// answerOf turns the outcome of a call into what the model is answered.
func answerOf(r registry.Result, err error) dialogue.Answer {
	if err == nil {
		return dialogue.Answer{Content: r.Content, Structured: r.Structured, IsError: r.IsError}
	}
	a := dialogue.ErrorAnswer(explain(err))
	if errors.Is(err, exec.ErrTimeout) { // what there was until then
		a.Content = append(a.Content, r.Content...)
	}
	a.Unknown = errors.Is(err, registry.ErrNotFound)
	return a
}

// explain says what went wrong in words that a model can act on. It names no
// settings and no paths: those are the person's.
func explain(err error) string {
	if e, ok := errors.AsType[*registry.ArgsError](err); ok {
		return explainParams(e)
	}
	switch {
	case errors.Is(err, registry.ErrSourceFailed):
		return "The tool is not available: its source failed. Continue without it. " + err.Error()
	case errors.Is(err, registry.ErrNotFound):
		if e, ok := errors.AsType[*registry.NotFoundError](err); ok && e.Hidden != nil {
			return fmt.Sprintf("The tool %q is disabled. Continue without it.", e.Name)
		}
		return "There is no such tool. Call only declared tools."
	case errors.Is(err, registry.ErrDenied):
		if e, ok := errors.AsType[*exec.Denied](err); ok && e.Origin == exec.OriginPerson {
			return explainNo(e)
		} else if ok {
			return "This call is not allowed, so it was not run: " + e.Reason + ". Do not repeat it; find another way."
		}
		return "This call is not allowed, so it was not run. Do not repeat it; find another way."
	case errors.Is(err, registry.ErrNeedsConfirmation):
		return "This call needs the user's approval, but nobody can be asked, so it was not run. Continue without it, and tell the user what you would have done."
	case errors.Is(err, exec.ErrTimeout):
		return "The call reached its time limit and was stopped; it may have taken effect in part. Check before you repeat it, or request less."
	}
	return "The call failed: " + err.Error()
}

// explainNo tells what a person answered, or that they did not.
func explainNo(e *exec.Denied) string {
	const goOn = " Do not repeat it; find another way or ask the user."
	switch {
	case e.Said != "":
		return "The user said no to this call, so it was not run. The reason given: " + e.Said + "\n" + goOn[1:]
	case e.Reason != "":
		return "The user was asked about this call and did not approve it (" + e.Reason + "), so it was not run." + goOn
	}
	return "The user said no to this call, so it was not run." + goOn
}

// maxExplained bounds how many mistakes in params are listed.
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

// maxListed bounds how many tools are named where one is not known.
const maxListed = 50

// explainUnknown says which tools there are, those with a name like it first.
func explainUnknown(name string, near, all []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "There is no tool %q.", name)
	if len(near) > 0 {
		fmt.Fprintf(&b, " Did you mean %s?", strings.Join(near, ", "))
	}
	switch {
	case len(all) == 0:
		b.WriteString(" There are no tools to call.")
	case len(all) > maxListed:
		fmt.Fprintf(&b, " Some of the %d available tools: %s.", len(all), strings.Join(all[:maxListed], ", "))
	default:
		fmt.Fprintf(&b, " The available tools: %s.", strings.Join(all, ", "))
	}
	return b.String()
}
