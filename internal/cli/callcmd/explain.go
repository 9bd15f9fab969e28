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
	a := dialogue.ErrorAnswer(exec.Explain(err))
	if errors.Is(err, exec.ErrTimeout) { // what there was until then
		a.Content = append(a.Content, r.Content...)
	}
	a.Unknown = errors.Is(err, registry.ErrNotFound)
	return a
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
