package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
)

// geminiInteractions declares functions for Gemini's Interactions API, and reads and answers its
// steps. Declarations have JSON Schema, of which the API ignores some bounds; see
// docs/providers.md.
func geminiInteractions() Format {
	return Format{
		Name:    "gemini-interactions",
		Summary: "Gemini Interactions API function tools",
		expects: "an interaction with steps, or a list of its steps",
		decode:  decodeInteractions,
		callID:  "id",
		media:   mediaLimits{image: 20 << 20 / 4 * 3, file: 20 << 20 / 4 * 3},
		join:    joinInteractions,
		reply:   replyInteractions,
		rule:    nameRule{extra: ".-", letterFirst: true, max: 64},
		prepare: func(e *encoder, t *tool) { e.changed(t, rewrite.TypeRoot(t.schema)) },
		write: func(e *encoder, t *tool) {
			e.declare(t, `{"type":"function",`, "parameters")
			e.raw("}")
		},
	}
}

// decodeInteractions decodes an interaction, the list of its steps, or one step.
func decodeInteractions(t *Turn, raw json.RawMessage) error {
	o := asObject(raw)
	list, isList := jsonx.Elements(raw)
	if !isList {
		switch {
		case o.has("steps"):
			if list, isList = jsonx.Elements(o["steps"]); !isList {
				return errors.New("steps is not a list")
			}
		case isStepCall(o):
			list = []json.RawMessage{raw}
		case o.text("object") == "interaction": // it has ended without steps
		default:
			return errUnrecognized
		}
	}
	steps, answered := itemsOf(list, "_result")
	var last object
	for _, last = range steps {
		switch kind := last.text("type"); {
		case kind == "", kind == "function", last.has("call_id") && !strings.HasSuffix(kind, "_result"): // an item of the Responses API
			return errUnrecognized
		case kind == "model_output" && last.has("error"):
			return t.ended("error", asObject(last["error"]).text("message"), false, false)
		case isStepCall(last) && !answered[last.text("id")]:
			t.addStep(last)
		}
	}
	return t.interactionEnded(o, isStepCall(last))
}

// isStepCall reports whether a step is a call that the client has to answer. Kinds of calls that
// the API's server runs are known; one that is newer than this program is the client's if it
// names a tool.
func isStepCall(step object) bool {
	switch kind := step.text("type"); kind {
	case "code_execution_call", "file_search_call", "google_maps_call", "google_search_call",
		"processing_call", "retrieval_call", "url_context_call", "mcp_server_tool_call":
		return false
	default:
		return strings.HasSuffix(kind, "_call") && !step.has("call_id") && (kind == "function_call" || step.has("name"))
	}
}

func (t *Turn) addStep(step object) {
	c := callOf(step, "id", "arguments")
	if c.kind != "function_call" {
		c.Fault = "Calls of type " + strings.TrimSuffix(c.kind, "_call") +
			" are not supported. Call a declared function."
	}
	t.Calls = append(t.Calls, c)
}

// interactionEnded checks how an interaction ended. last says whether its last step is a call.
func (t *Turn) interactionEnded(o object, last bool) error {
	status, detail := o.text("status"), ""
	all, _ := jsonx.Elements(o["errors"])
	for _, raw := range all {
		detail = cmp.Or(detail, asObject(raw).text("message"))
	}
	if status == "incomplete" {
		status = "max_output_tokens"
	}
	return t.ended(status, detail, len(t.Calls) > 0, last)
}

// joinInteractions joins the events of a stream. If the SDK has continued an interaction that
// reached the limit of one request, the events of all its requests follow one another.
func joinInteractions(events []json.RawMessage) (any, error) {
	var steps []*joined
	byIndex := map[string]int{}
	whole := object{}
	for _, event := range events {
		o := asObject(event)
		switch o.text("event_type") {
		case "error":
			return nil, cmp.Or(apiError(o), apiError(object{"error": event}))
		case "interaction.created":
			clear(byIndex)
			whole = object{}
		case "interaction.status_update":
			whole["status"] = o["status"]
		case "interaction.completed":
			maps.Copy(whole, asObject(o["interaction"]))
		case "step.start":
			step := asObject(o["step"])
			if step == nil {
				return nil, errors.New("a step of the stream is missing")
			}
			byIndex[string(o["index"])] = len(steps)
			steps = append(steps, &joined{object: step, params: "arguments"})
		case "step.delta":
			i, ok := byIndex[string(o["index"])]
			if !ok {
				return nil, errors.New("a step of the stream is missing")
			}
			steps[i].addDelta(asObject(o["delta"]))
		}
	}
	switch whole.text("status") {
	case "", "queued", "in_progress":
		return nil, errUnfinished
	}
	if len(steps) > 0 {
		raw, err := jsonx.Marshal(steps)
		if err != nil {
			return nil, err
		}
		whole["steps"] = raw
	}
	whole["object"] = quoted("interaction")
	return whole, nil
}

// addDelta adds a delta to a step. The deltas of calls that the server runs are left out.
func (j *joined) addDelta(delta object) {
	switch delta.text("type") {
	case "arguments_delta":
		j.input.add([]byte(delta.text("arguments")))
	case "thought_signature":
		j.object["signature"] = delta["signature"]
	case "thought_summary":
		j.addItems("summary", []json.RawMessage{delta["content"]})
	case "text", "image", "audio", "document", "video":
		j.addItems("content", []json.RawMessage{delta.json()})
	}
}

// A function_result step and the content in it.
type (
	stepResult struct {
		Type    string          `json:"type"`
		ID      json.RawMessage `json:"call_id"`
		Name    string          `json:"name,omitempty"`
		IsError bool            `json:"is_error,omitempty"`
		Result  any             `json:"result"`
	}
	stepMedia struct {
		Type     string `json:"type"`
		MIMEType string `json:"mime_type"`
		Data     []byte `json:"data"`
	}
)

// replyInteractions writes a step of the next input for each call.
func replyInteractions(t *Turn, answers []Answer) []any {
	out := make([]any, len(answers))
	for i, a := range answers {
		c := t.Calls[i]
		out[i] = stepResult{"function_result", c.id, c.Name, a.IsError, a.textOrList("text", false, stepMediaOf)}
	}
	return out
}

// stepMediaOf returns a part in the form that the API accepts as media; nil if it accepts only
// text.
func stepMediaOf(p part) any {
	if len(p.Data) == 0 {
		return nil
	}
	switch p.mediaType() {
	case "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "image/gif", "image/bmp", "image/tiff":
		return stepMedia{"image", p.mediaType(), p.Data}
	case "application/pdf":
		return stepMedia{"document", p.mediaType(), p.Data}
	}
	return nil
}
