package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// errUnrecognized reports that the data has no element of the format.
var errUnrecognized = errors.New("it is not in this format")

// apiError returns the error that an API returned instead of a message.
func apiError(o object) error {
	raw, ok := o["error"]
	if !ok || jsonx.IsNull(raw) {
		return nil
	}
	text := asText(raw)
	if e := asObject(raw); e != nil {
		text = e.text("message")
	}
	text = cmp.Or(text, string(raw))
	return fmt.Errorf("the API returned an error: %.500s", text)
}

// ended records why a response, or one of several choices, ended: OpenAI's finish_reason, the
// status of the Responses API, Anthropic's stop_reason, Gemini's finishReason, Bedrock's
// stopReason. detail is what the provider says about it, or "". has says whether calls were found,
// and last whether the last part is a call. The error says why none of the calls may run, or why
// there are none.
func (t *Turn) ended(reason, detail string, has, last bool) error {
	if detail != "" {
		detail = fmt.Sprintf(" (%.500s)", detail)
	}
	switch strings.ToLower(reason) {
	case "", "null", "stop", "end_turn", "stop_sequence", "completed", "complete", "steered", "eos", "eos_token":
	case "tool_calls", "tool_call", "tool_use", "function_call", "requires_action":
		if !has {
			return fmt.Errorf("it ended with %s, but has no call; request the response again", reason)
		}
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		if !has {
			return fmt.Errorf("the limit on tokens cut it off (%s) before any call; request the response again with a higher limit", reason)
		}
		if last {
			t.Calls[len(t.Calls)-1].Fault = cutOff
		}
	case "queued", "in_progress":
		return fmt.Errorf("it is not finished (%s); send it when it is", reason)
	case "requires_continuation":
		return fmt.Errorf("it is not finished (%s); continue it with its continuation_token", reason)
	case "pause_turn", "compaction":
		return fmt.Errorf("it is not finished (%s); send the message back to the API, which continues it", reason)
	default: // also reasons that are newer than this program
		return fmt.Errorf("it ended with %.100s%s, so nothing was run", reason, detail)
	}
	return nil
}

// eachPart calls add with the parts of a message, and reports whether the last of them is a call.
func eachPart(parts []json.RawMessage, add func(object) (bool, error)) (last bool, err error) {
	for _, raw := range parts {
		if last, err = add(asObject(raw)); err != nil {
			return false, err
		}
	}
	return last, nil
}

// alternatives decodes the items of the named list in a response. At most one of them may have
// calls; rule says what to do if several have.
func (t *Turn) alternatives(o object, name, rule string, decode func(object) error) error {
	list, ok := jsonx.Elements(o[name])
	if !ok {
		return fmt.Errorf("%s is not a list", name)
	}
	if len(list) == 0 {
		return fmt.Errorf("%s is empty; request the response again", name)
	}
	calling := 0
	for _, raw := range list {
		before := len(t.Calls)
		if err := decode(asObject(raw)); err != nil {
			return err
		}
		if len(t.Calls) > before {
			calling++
		}
	}
	if calling > 1 {
		return fmt.Errorf("%d of its %s %s", calling, name, rule)
	}
	return nil
}
