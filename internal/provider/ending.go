package provider

import (
	"errors"
	"fmt"
	"strings"
)

// ended notes the reason for which a response, or one of several choices, has ended: OpenAI's
// finish_reason, the status of the Responses API, Anthropic's stop_reason, Gemini's
// finishReason, Bedrock's stopReason. detail is what the provider says about it, "" for nothing.
// has says whether calls were found in it, and last whether one of them is the last of its
// parts. The error says why none of the calls may run, or why there are none.
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
		return fmt.Errorf("it is not finished (%s); send the message back to the API, which goes on with it", reason)
	default: // also reasons that are newer than this program
		return fmt.Errorf("it ended with %.100s%s, so nothing was run", reason, detail)
	}
	return nil
}

// foreign says what a value is that programs keep responses in, or an API of no format of
// ours returns; nil if it is none of them.
func foreign(o object) error {
	message, response := asObject(o["message"]), asObject(o["response"])
	switch {
	case o.has("done") && (message != nil || o.has("response")):
		return errors.New("it is a response of Ollama's own API; use its API at /v1/chat/completions, and format openai")
	case o.has("custom_id") && response != nil:
		return errors.New("it is a line of a batch's results; send its response.body")
	case o.has("custom_id") && o.has("result"):
		return errors.New("it is a line of a batch's results; send its result.message, if its result.type is succeeded")
	case o.has("modelOutput"):
		return errors.New("it is a line of a batch's results; send its modelOutput")
	case response.has("candidates"):
		return errors.New("the response is in its member response; send that")
	}
	return nil
}
