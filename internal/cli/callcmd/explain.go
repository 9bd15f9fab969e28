package callcmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/provider"
	"github.com/toolreg/toolreg/internal/registry"
)

// answerOf converts the outcome of a call to the answer for the model.
func answerOf(r registry.Result, err error) provider.Answer {
	if err == nil {
		return provider.Answer{Content: r.Content, Structured: r.Structured, IsError: r.IsError}
	}
	a := provider.ErrorAnswer(exec.Explain(err))
	if errors.Is(err, exec.ErrTimeout) { // add the output so far
		a.Content = append(a.Content, r.Content...)
	}
	a.Unknown = errors.Is(err, registry.ErrNotFound)
	return a
}

// maxListed limits how many tools are named if one is unknown.
const maxListed = 50

// explainUnknown lists the existing tools, beginning with similar names.
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
