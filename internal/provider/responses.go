package provider

import (
	"cmp"
	_ "embed" // for the image
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// openaiResponses declares functions for OpenAI's Responses API, in which strict is
// true if it is absent. It is therefore always written.
func openaiResponses() Format {
	return Format{
		Name:    "openai-responses",
		Summary: "OpenAI Responses API tools",
		expects: "output, or a list of its items",
		decode:  decodeResponses,
		media:   mediaLimits{image: 20 << 20, file: 50 << 20 / 4 * 3},
		callID:  "call_id",
		join:    joinResponses,
		reply:   replyResponses,
		rule: nameRule{extra: "-", max: 64, reserved: func(name string) bool { // namespaces of the API itself
			return name == "tool_search" || name == "file_search" || name == "image_gen"
		}},
		strict:  true,
		prepare: (*encoder).prepareOpenAI,
		search:  responsesSearch, namespaces: true,
		write: func(e *encoder, t *tool) {
			e.declare(t, `{"type":"function",`, "parameters")
			e.flag("strict", &t.strict)
			e.flag("defer_loading", t.def.Provider.DeferLoading)
			e.callers(t, isAnthropicCaller)
			if async := t.def.Provider.Async; async != nil && *async &&
				slices.ContainsFunc(t.def.Provider.AllowedCallers, isOpenAICaller) {
				e.omitField(t, "async", errors.New("code waits for the result of a call"))
			} else {
				e.flag("async", async)
			}
			e.writeFurther(t, "output_schema", t.def.DeclaredOutputSchema(), e.openAIOutput)
			e.raw("}")
		},
	}
}

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
		kind := item.text("type") // a tool of the API itself may have been run by the server
		if answered[item.text("call_id")] && strings.HasSuffix(kind, "_call") &&
			kind != "function_call" && kind != "custom_tool_call" {
			continue
		}
		if err := t.addResponses(item); err != nil {
			return err
		}
	}
	return t.responsesEnded(o, items)
}

// itemsOf returns the items of a response, and the ids of calls that items whose type ends in
// answer have already answered.
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

// addResponses adds an item to the turn if it is a call that the client has to
// answer.
func (t *Turn) addResponses(item object) error {
	c := callOf(item, "call_id", "arguments")
	switch c.kind {
	case "", "function": // a declaration
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
		c.id = idOf(item["id"])
		c.Fault = "toolreg does not approve calls to servers that the API contacts itself, so it was not run. Call a declared function."
	default:
		if runByServer(item) {
			return nil
		}
		if c.Search = c.kind == kindSearch; c.Search {
			break
		}
		c.Fault = "Calls of type " + strings.TrimSuffix(strings.TrimSuffix(c.kind, "_call"), "_tool") +
			" are not supported. Call a declared function."
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
		return !strings.HasSuffix(kind, "_call") || idOf(item["call_id"]) == nil
	}
}

// outputItem is an output item of the Responses API. Which fields are set depends on its kind;
// Caller is set if the model did not make the call itself.
type outputItem struct {
	Type      string          `json:"type"`
	ID        json.RawMessage `json:"call_id,omitempty"`
	LocalID   json.RawMessage `json:"id,omitempty"`
	Execution string          `json:"execution,omitempty"`
	Status    string          `json:"status,omitempty"`
	Tools     any             `json:"tools,omitempty"` // a list; an empty one counts
	Output    any             `json:"output,omitempty"`
	Most      json.RawMessage `json:"max_output_length,omitempty"`
	Caller    json.RawMessage `json:"caller,omitempty"`
	Namespace json.RawMessage `json:"namespace,omitempty"`
}

// shellChunk is the output of a command that was not run.
type shellChunk struct {
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
	Outcome struct {
		Type string `json:"type"`
		Code int    `json:"exit_code"`
	} `json:"outcome"`
}

type approvalResponse struct {
	Type    string          `json:"type"`
	ID      json.RawMessage `json:"approval_request_id"`
	Approve bool            `json:"approve"`
	Reason  string          `json:"reason"`
}

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
	item := outputItem{Type: c.kind + "_output", ID: c.id}
	if c.kind == "function_call" { // a custom tool's output has no such field
		item.Namespace = c.echoed("namespace")
	}
	if c.kind != kindLocalShell && c.kind != kindComputer {
		item.Caller = c.echoed("caller")
	}
	switch c.kind {
	case kindSearch: // this answer has no field for text
		return outputItem{Type: "tool_search_output", ID: c.id, Execution: "client", Status: "completed",
			Tools: append([]json.RawMessage{}, a.Tools...)}
	case kindShell:
		chunk := shellChunk{Stderr: a.words()}
		chunk.Outcome.Type, chunk.Outcome.Code = "exit", 1
		item.Output = []shellChunk{chunk}
		if most := asObject(c.item["action"])["max_output_length"]; jsonx.KindOf(most) == jsonx.Number {
			item.Most = most
		}
	case kindLocalShell:
		item.ID, item.LocalID, item.Output = nil, c.id, a.words()
	case kindPatch:
		item.Status, item.Output = "failed", a.words()
	case kindComputer: // only a person may acknowledge its safety checks
		picture := part{registry.Content{Data: noScreen, MIMEType: "image/png"}}
		item.Output = mediaBlock{Type: "computer_screenshot", ImageURL: picture.dataURL()}
	case kindApproval:
		return approvalResponse{"mcp_approval_response", c.id, false, a.words()}
	default:
		item.Output = a.responsesOutput()
	}
	return item
}

// echoed returns a value of the call that its answer must repeat, or nil.
func (c Call) echoed(key string) json.RawMessage {
	if raw := c.item[key]; !jsonx.IsNull(raw) {
		return raw
	}
	return nil
}

func (a Answer) words() string {
	text, _ := a.split(func(part) any { return nil }, nil)
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
		return mediaBlock{Type: "input_image", ImageURL: p.dataURL()}
	case p.isPDF():
		return mediaBlock{Type: "input_file", FileName: p.fileName(), FileData: p.dataURL()}
	}
	return nil
}

// streamItem is an output item in a stream, and its arguments that came in pieces.
type streamItem struct {
	object    // at first only what identifies it
	arguments pieces
	seen      bool // an event had the item itself
}

// streamItems are the output items of a stream.
type streamItems struct {
	list  []*streamItem          // in the order of their first event
	known map[string]*streamItem // by their ids and by their place, because some servers give them other ids later
}

// find returns the item that an event is about, or a new one if the event is the first about it.
func (s *streamItems) find(about object, index json.RawMessage) *streamItem {
	var keys []string
	for _, key := range []string{"id", "call_id"} {
		if id := idOf(about[key]); id != nil {
			keys = append(keys, key+string(id))
		}
	}
	if len(index) > 0 && about.text("type") != "" {
		keys = append(keys, string(index)+about.text("type"))
	}
	item := &streamItem{object: about}
	if i := slices.IndexFunc(keys, func(key string) bool { return s.known[key] != nil }); i >= 0 {
		item = s.known[keys[i]]
	} else {
		s.list = append(s.list, item)
	}
	for _, key := range keys {
		if s.known[key] == nil {
			s.known[key] = item
		}
	}
	return item
}

func (s *streamItems) put(item object, index json.RawMessage) {
	if item != nil {
		known := s.find(item, index)
		known.object, known.seen = item, true
	}
}

// output returns the items of the stream. Arguments that only came in pieces are added.
func (s *streamItems) output() []object {
	out := []object{}
	for _, item := range s.list {
		if given := item.text("arguments"); len(item.arguments.text()) > 0 && (given == "" || given == "{}") {
			item.object["arguments"] = quoted(string(item.arguments.text()))
		}
		if item.seen {
			out = append(out, item.object)
		}
	}
	return out
}

// joinResponses joins the events of a stream of the Responses API: the response in the last event,
// and output items that only earlier events have.
func joinResponses(events []json.RawMessage) (any, error) {
	items := streamItems{known: map[string]*streamItem{}}
	for _, event := range events {
		o := asObject(event)
		switch kind := o.text("type"); kind {
		case "response.output_item.added", "response.output_item.done":
			item := asObject(o["item"])
			place := string(o["output_index"]) + item.text("type")
			if kind == "response.output_item.added" && items.known[place] != nil && items.known[place].seen {
				delete(items.known, place) // some servers give all items the same index
			}
			items.put(item, o["output_index"])
		case "response.function_call_arguments.delta", "response.function_call_arguments.done":
			item := items.find(object{"type": quoted("function_call"), "id": o["item_id"], "call_id": o["call_id"]},
				o["output_index"])
			if whole := o.text("arguments"); whole != "" {
				item.arguments = pieces{}
				item.arguments.add([]byte(whole))
			}
			item.arguments.add([]byte(o.text("delta")))
		case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
			response := asObject(o["response"])
			if response == nil {
				response = object{}
			}
			if status, _ := strings.CutPrefix(kind, "response."); status != "done" && response.text("status") == "" {
				response["status"] = quoted(status)
			}
			last, _ := jsonx.Elements(response["output"])
			for i, raw := range last {
				items.put(asObject(raw), strconv.AppendInt(nil, int64(i), 10))
			}
			raw, err := jsonx.Marshal(items.output())
			response["output"] = raw
			return response, err
		case "error":
			return nil, cmp.Or(apiError(o), apiError(object{"error": event}))
		}
	}
	return nil, errUnfinished
}

func responsesSearch(e *encoder) {
	client := e.opts.Defer.Client
	if client == nil {
		e.raw(`{"type":"tool_search"}`)
		return
	}
	e.raw(`{"type":"tool_search","execution":"client","description":`)
	e.string(client.Description)
	e.raw(`,"parameters":`)
	e.raw(string(client.InputSchema))
	e.raw("}")
}
