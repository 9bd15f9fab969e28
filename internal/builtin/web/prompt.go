package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

const (
	processorTimeout = 2 * time.Minute
	processorOutput  = 1 << 20
	processorTail    = 2_000 // bytes of stderr shown after a failure
)

// processorInput is the input that the program of fetch.processor reads from
// stdin.
type processorInput struct {
	URL     string `json:"url"`
	Prompt  string `json:"prompt"`
	Content string `json:"content"`
}

// ask runs the program of fetch.processor to answer the prompt about the
// fetched page. If no program is set, it returns the page with a note.
func (f *webFetch) ask(ctx context.Context, c *fetchCall, page registry.Result) (registry.Result, error) {
	var argv []string
	if f.opts.Processor != nil {
		var err error
		if argv, err = f.opts.Processor(); err != nil {
			return tool.Failed("the setting fetch.processor: " + err.Error()), nil
		}
	}
	text := page.Text()
	if len(argv) == 0 || text == "" {
		why := "the setting fetch.processor is not set, so the prompt was not applied; this is the page itself"
		if text == "" {
			why = "the page is not text, so the prompt was not applied"
		}
		page.Content = append([]registry.Content{registry.TextContent("[" + why + "]")}, page.Content...)
		return page, nil
	}
	input, err := json.Marshal(processorInput{URL: c.url.String(), Prompt: c.Prompt, Content: text})
	if err != nil {
		return registry.Result{}, err
	}
	late := fmt.Errorf("fetch.processor did not answer within %s", processorTimeout)
	inner, cancel := context.WithTimeoutCause(ctx, processorTimeout, late)
	defer cancel()
	out, err := f.opts.ConfineProcessor.Run(inner, process.Spec{
		Argv: argv, Dir: f.opts.ProcessorDir, Env: f.opts.ProcessorEnv, Stdin: input, MaxOutput: processorOutput,
	})
	switch {
	case context.Cause(ctx) != nil:
		return tool.Failed("the call was canceled"), fmt.Errorf("answering a prompt: %w", context.Cause(ctx))
	case errors.Is(err, late):
		return registry.ErrorResult(registry.ErrorTimeout, late.Error()), nil
	case err != nil || out.ExitCode != 0:
		return tool.Failed(processorFailure(out, err)), nil
	}
	answer := registry.TextResult(strings.TrimRight(string(out.Stdout), "\n"))
	answer.Summary = page.Summary + ", prompt answered by fetch.processor"
	return answer, nil
}

// processorFailure describes how the program failed, with the end of its
// output.
func processorFailure(out process.Outcome, err error) string {
	text := fmt.Sprintf("fetch.processor failed: %v", cmp.Or(err, out.Err()))
	said := strings.ToValidUTF8(string(out.Stderr[max(0, len(out.Stderr)-processorTail):]), "")
	if said = strings.TrimSpace(said); said != "" {
		text += "\n" + said
	}
	return text + "\nWithout prompt the call returns the page itself."
}
