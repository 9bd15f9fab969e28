package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Kinds of calls of the Responses API that the client answers, besides
// functions and custom tools.
const (
	kindSearch     = "tool_search_call"
	kindShell      = "shell_call"
	kindLocalShell = "local_shell_call"
	kindPatch      = "apply_patch_call"
	kindComputer   = "computer_call"
	kindApproval   = "mcp_approval_request"
)

// decodeResponses decodes a response of OpenAI's Responses API, the list of its
// output items, or one item.
func decodeResponses(t *Turn, raw json.RawMessage) error {
	o := asObject(raw)
	list, ok := jsonx.Elements(raw)
	if !ok {
		if err := apiError(o); err != nil {
			return err
		}
		switch {
		case asObject(o["output"]).has("message"): // a response of Bedrock
			return errUnrecognized
		case o.has("output"):
			if list, ok = jsonx.Elements(o["output"]); !ok {
				return errors.New("output is not a list")
			}
		case strings.HasSuffix(o.text("type"), "_call"), o.text("type") == kindApproval:
			list = []json.RawMessage{raw}
		default:
			return errUnrecognized
		}
	}
	items, answered := itemsOf(list, "_output")
	for _, item := range items {
		if answered[item.text("call_id")] && isBuiltinCall(item.text("type")) {
			continue
		}
		if err := t.addResponses(item); err != nil {
			return err
		}
	}
	return t.responsesEnded(o, items)
}

// itemsOf returns the items of a response, and the ids of the calls that others of them, whose type
// ends in answer, have answered already.
func itemsOf(list []json.RawMessage, answer string) (items []object, answered map[string]bool) {
	items, answered = make([]object, len(list)), map[string]bool{}
	for i, raw := range list {
		items[i] = asObject(raw)
		if strings.HasSuffix(items[i].text("type"), answer) {
			answered[items[i].text("call_id")] = true
		}
	}
	return items, answered
}

// responsesEnded checks how a response ended, which may be known only from its items.
func (t *Turn) responsesEnded(o object, items []object) error {
	reason, last := o.text("status"), object(nil)
	for _, last = range items {
		parts, _ := jsonx.Elements(last["content"])
		for _, raw := range parts {
			if part := asObject(raw); part.text("type") == "refusal" {
				return t.ended("refusal", part.text("refusal"), false, false)
			}
		}
		if reason == "" && last.text("status") == "in_progress" {
			reason = "in_progress"
		}
	}
	if reason == "incomplete" && o.has("output") {
		reason = cmp.Or(asObject(o["incomplete_details"]).text("reason"), "max_output_tokens")
	}
	called := strings.HasSuffix(last.text("type"), "_call") && !runByServer(last)
	return t.ended(reason, "", len(t.Calls) > 0, called && last.text("status") != "completed")
}

// isBuiltinCall reports whether a call is for one of the API's own tools, which the
// server may have run itself.
func isBuiltinCall(kind string) bool {
	return strings.HasSuffix(kind, "_call") && kind != "function_call" && kind != "custom_tool_call"
}

// addResponses adds an item to the turn if it is a call that the client has to
// answer.
func (t *Turn) addResponses(item object) error {
	c := Call{id: textID(item["call_id"]), Name: item.text("name"), Params: params(item["arguments"]), kind: item.text("type"), item: item}
	switch c.kind {
	case "":
		return errUnrecognized
	case "function_call_output", "custom_tool_call_output":
		return errors.New("it contains answers to calls; send only the output of the last response")
	case "function_call":
		if c.id == nil && jsonx.KindOf(item["arguments"]) == jsonx.Object { // a step of gemini-interactions
			return errUnrecognized
		}
		if item.text("status") == "incomplete" {
			c.Fault = cutOff
		}
	case kindApproval:
		c.id = textID(item["id"])
		c.Fault = "toolreg does not approve calls to servers that the API contacts itself, so it was not run. Call a declared function."
	default:
		if runByServer(item) {
			return nil
		}
		if c.Search = c.kind == kindSearch; c.Search {
			break
		}
		c.Fault = "Calls of type " + strings.TrimSuffix(strings.TrimSuffix(c.kind, "_call"), "_tool") + " are not supported. Call a declared function."
	}
	t.Calls = append(t.Calls, c)
	return nil
}

// runByServer reports whether an item needs no answer from the client. Calls that
// need one have an id for it.
func runByServer(item object) bool {
	switch kind := item.text("type"); kind {
	case "file_search_call", "web_search_call", "image_generation_call", "code_interpreter_call", "mcp_call":
		return true
	case kindSearch:
		return item.text("execution") != "client"
	case kindShell:
		return asObject(item["environment"]).text("type") == "container_reference"
	case kindLocalShell, kindPatch, kindComputer, "custom_tool_call":
		return false
	default: // a kind that is newer than this program
		return !strings.HasSuffix(kind, "_call") || textID(item["call_id"]) == nil
	}
}
