package exec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

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
		return fmt.Sprintf("This call was not run: %s. Try again in %s, or continue without it.", e.permitted(), e.Again)
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
			return fmt.Sprintf("The tool %q of server %q is not available. Continue without it; a tool of another server is not the same.", e.Name, server)
		default:
			return fmt.Sprintf("The tool %q is disabled. Continue without it.", e.Name)
		}
		return "There is no such tool. Call only declared tools."
	case errors.Is(err, registry.ErrDenied):
		if e, ok := errors.AsType[*Denied](err); ok && e.Later {
			return "This call was not run: " + e.Reason + "."
		} else if ok && e.Origin == OriginPerson {
			return explainNo(e)
		} else if ok {
			return "This call is not allowed, so it was not run: " + e.Reason + ". Do not repeat it; find another way."
		}
		return "This call is not allowed, so it was not run. Do not repeat it; find another way."
	case errors.Is(err, registry.ErrNeedsConfirmation):
		if e, ok := errors.AsType[*NeedsConfirmation](err); ok && e.Kept != nil {
			return "A person must approve this call, which has not happened yet, so it was not run. Tell the user; once it is approved, make exactly the same call again. Until then, continue without it."
		}
		return "This call needs the user's approval, but nobody can be asked, so it was not run. Continue without it, and tell the user what you would have done."
	case errors.Is(err, ErrTimeout):
		return "The call reached its time limit and was stopped; it may have taken effect in part. Check before you repeat it, or request less."
	}
	return "The call failed: " + err.Error()
}

// explainScript describes the call that ended a script, and what the script did before.
func explainScript(e *ScriptError) string {
	text := Explain(e.Err)
	if missing, ok := errors.AsType[*registry.NotFoundError](e.Err); ok && missing.Hidden == nil && !errors.Is(e.Err, registry.ErrSourceFailed) {
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

// explainNo describes a person's refusal, or that there was no answer.
func explainNo(e *Denied) string {
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
