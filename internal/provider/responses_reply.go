package provider

import (
	_ "embed" // for the image
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Output items of the Responses API. Caller is set if the call was not made by the
// model itself.
type (
	functionOutput struct {
		Type      string          `json:"type"`
		ID        json.RawMessage `json:"call_id"`
		Output    any             `json:"output"`
		Caller    json.RawMessage `json:"caller,omitempty"`
		Namespace json.RawMessage `json:"namespace,omitempty"`
	}
	searchOutput struct {
		Type      string            `json:"type"`
		ID        json.RawMessage   `json:"call_id"`
		Execution string            `json:"execution"`
		Status    string            `json:"status"`
		Tools     []json.RawMessage `json:"tools"`
	}
	shellOutput struct {
		Type   string          `json:"type"`
		ID     json.RawMessage `json:"call_id"`
		Output []shellChunk    `json:"output"`
		Most   json.RawMessage `json:"max_output_length,omitempty"`
		Caller json.RawMessage `json:"caller,omitempty"`
	}
	shellChunk struct {
		Stdout  string       `json:"stdout"`
		Stderr  string       `json:"stderr"`
		Outcome shellOutcome `json:"outcome"`
	}
	shellOutcome struct {
		Type string `json:"type"`
		Code int    `json:"exit_code"`
	}
	localShellOutput struct {
		Type   string          `json:"type"`
		ID     json.RawMessage `json:"id"`
		Output string          `json:"output"`
	}
	patchOutput struct {
		Type   string          `json:"type"`
		ID     json.RawMessage `json:"call_id"`
		Status string          `json:"status"`
		Output string          `json:"output"`
		Caller json.RawMessage `json:"caller,omitempty"`
	}
	computerOutput struct {
		Type   string          `json:"type"`
		ID     json.RawMessage `json:"call_id"`
		Output screenshot      `json:"output"`
	}
	screenshot struct {
		Type string `json:"type"`
		URL  string `json:"image_url"`
	}
	approvalResponse struct {
		Type    string          `json:"type"`
		ID      json.RawMessage `json:"approval_request_id"`
		Approve bool            `json:"approve"`
		Reason  string          `json:"reason"`
	}
)

// noScreen is the answer to a computer_call, which can only be an image. It shows a
// text.
//
//go:embed no_screen.png
var noScreen []byte

// replyResponses writes an output item of the right kind for each call.
func replyResponses(t *Turn, answers []Answer) []any {
	out := make([]any, len(answers))
	for i, a := range answers {
		out[i] = t.Calls[i].responsesItem(a)
	}
	return out
}

// responsesItem answers one call. The registry has no counterparts of the API's own
// tools, so the answers to their calls have a text that says so.
func (c Call) responsesItem(a Answer) any {
	caller := c.given("caller")
	switch c.kind {
	case kindSearch: // this answer has no field for text
		return searchOutput{"tool_search_output", c.id, "client", "completed", append([]json.RawMessage{}, a.Tools...)}
	case kindShell:
		most := asObject(c.item["action"])["max_output_length"]
		if jsonx.KindOf(most) != jsonx.Number {
			most = nil
		}
		return shellOutput{c.kind + "_output", c.id, []shellChunk{{Stderr: a.words(), Outcome: shellOutcome{"exit", 1}}}, most, caller}
	case kindLocalShell:
		return localShellOutput{c.kind + "_output", c.id, a.words()}
	case kindPatch:
		return patchOutput{c.kind + "_output", c.id, "failed", a.words(), caller}
	case kindComputer: // only a person may acknowledge its safety checks
		picture := part{registry.Content{Data: noScreen, MIMEType: "image/png"}}
		return computerOutput{c.kind + "_output", c.id, screenshot{"computer_screenshot", picture.dataURL()}}
	case kindApproval:
		return approvalResponse{"mcp_approval_response", c.id, false, a.words()}
	}
	item := functionOutput{Type: c.kind + "_output", ID: c.id, Output: a.responsesOutput(), Caller: caller}
	if c.kind == "function_call" { // a custom tool's output has no such field
		item.Namespace = c.given("namespace")
	}
	return item
}

// given returns a value of the call that its answer must repeat, or nil.
func (c Call) given(key string) json.RawMessage {
	if raw := c.item[key]; !jsonx.IsNull(raw) {
		return raw
	}
	return nil
}

// words returns the texts of an answer.
func (a Answer) words() string {
	text, _ := a.split(func(part) any { return nil })
	return text.result(false)
}

// responsesOutput returns a string if there is only text, and otherwise a list of
// input items.
func (a Answer) responsesOutput() any {
	if a.isTyped() {
		return string(a.Structured)
	}
	return a.textOrList("input_text", true, responsesMedia)
}

func responsesMedia(p part) any {
	switch {
	case p.isImage():
		return struct {
			Type string `json:"type"`
			URL  string `json:"image_url"`
		}{"input_image", p.dataURL()}
	case p.isPDF():
		return struct {
			Type string `json:"type"`
			Name string `json:"filename"`
			Data string `json:"file_data"`
		}{"input_file", p.fileName(), p.dataURL()}
	}
	return nil
}
