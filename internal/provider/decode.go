package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Decode decodes a response: the whole response of the API, the message in it, only the
// calls, or the stream of its events. A response without calls is a Turn without calls, not
// an error. The error is an *[UnreadableError].
func (f Format) Decode(data []byte) (*Turn, error) {
	if len(data) > MaxResponseBytes {
		return nil, f.unreadable("it is larger than the limit of %d bytes", MaxResponseBytes)
	}
	if !bytes.HasPrefix(data, []byte{0}) { // text
		data = bytes.TrimSpace(text.WithoutMark(data))
	}
	if len(data) == 0 {
		return nil, f.unreadable("it is empty")
	}
	camel := false
	events, err := f.splitStream(data)
	if err == nil && events == nil {
		data, camel = f.asSent(data)
	} else if err == nil {
		var response any
		for i := range events {
			var is bool
			events[i], is = f.asSent(events[i])
			camel = camel || is
		}
		if err = foreignError(asObject(events[0])); err == nil {
			response, err = f.join(events)
		}
		if err == nil {
			data, err = jsonx.Marshal(response)
		}
	}
	if err != nil {
		return nil, f.unreadable("%s", err)
	}
	if err := registry.CheckJSON(data); err != nil {
		line, _, _ := bytes.Cut(data, []byte("\n"))
		if what := foreignError(asObject(line)); what != nil && registry.CheckJSON(line) == nil {
			return nil, f.unreadable("%s", what)
		}
		return nil, f.unreadable("it is not valid JSON: %s", err.Message)
	}
	t := &Turn{format: f, camel: camel}
	err = apiError(asObject(data))
	if err == nil {
		err = f.decode(t, data)
	}
	if err != nil {
		if err == errUnrecognized {
			return nil, f.unrecognized(data)
		}
		return nil, f.unreadable("%s", err)
	}
	if len(t.Calls) == 0 {
		if other := f.looksLike(data); other != "" { // the message is in this format, but its calls are in another
			return nil, f.unreadable("it contains no call of this format; it looks like format %s", other)
		}
	}
	if len(t.Calls) > maxCalls {
		return nil, f.unreadable("it contains %d calls, but the limit is %d", len(t.Calls), maxCalls)
	}
	t.message = registry.MendSurrogates(f.messageOf(data))
	if err := t.mend(data); err != nil {
		return nil, f.unreadable("%s", err)
	}
	if t.camel {
		t.message = inCamelCase(t.message)
	}
	return t, nil
}

// camelNames are names in the objects of Mistral's, OpenRouter's and Cohere's SDKs for TypeScript, each
// followed by that of the API.
const camelNames = "toolCalls tool_calls toolCallId tool_call_id callId call_id finishReason finish_reason " +
	"incompleteDetails incomplete_details imageUrl image_url documentUrl document_url documentName document_name " +
	"inputAudio input_audio fileData file_data"

// asSent returns data with the names of the API, and whether some were in camelCase.
func (f Format) asSent(data json.RawMessage) (out json.RawMessage, camel bool) {
	if f.Name != "mistral" && !strings.HasPrefix(f.Name, "openai") {
		return data, false
	}
	return renamed(data, strings.Fields(camelNames))
}

// inCamelCase returns a message with the names that those SDKs take.
func inCamelCase(message json.RawMessage) json.RawMessage {
	names := strings.Fields(camelNames)
	slices.Reverse(names)
	message, _ = renamed(message, names)
	return message
}

// renamed gives members of raw other names, and reports whether there are any. names has pairs of an old and a
// new name.
func renamed(raw json.RawMessage, names []string) (json.RawMessage, bool) {
	for i := 0; i < len(names); i += 2 {
		if bytes.Contains(raw, []byte(names[i])) {
			v, err := jsonx.Parse(raw, jsonx.Options{})
			if err != nil || !rename(v, names) {
				return raw, false
			}
			return v.JSON(), true
		}
	}
	return raw, false
}

// rename renames members of v and of what is in it, except for params.
func rename(v *jsonx.Value, names []string) (found bool) {
	for i := 0; i < len(names) && v.Is(jsonx.Object); i += 2 {
		if v.Get(names[i]) != nil && v.Get(names[i+1]) == nil {
			v.Rename(names[i], names[i+1])
			found = true
		}
	}
	for _, m := range v.Fields() {
		found = m.Name != "arguments" && rename(m.Value, names) || found
	}
	for _, element := range v.Elements() {
		found = rename(element, names) || found
	}
	return found
}

// mend gives an id to a single call without one, since some servers write an empty id. In the
// message it also replaces names that the API would reject: models invent such names of tools, and
// the API would reject every later request of the conversation.
func (t *Turn) mend(data []byte) error {
	key := t.format.callID
	anonymous := key != "" && slices.ContainsFunc(t.Calls, func(c Call) bool { return c.id == nil })
	if anonymous && len(t.Calls) > 1 {
		return fmt.Errorf("%d calls, of which at least one has no %s, cannot be answered; request the response again",
			len(t.Calls), key)
	}
	wrong := map[string]bool{}
	for _, c := range t.Calls {
		if t.format.repeated(c.Name) != c.Name {
			wrong[c.Name] = true
		}
	}
	if !anonymous && len(wrong) == 0 {
		return nil
	}
	id := fmt.Sprintf("c%08x", crc32.ChecksumIEEE(data)) // of a form that every API takes
	if anonymous {
		t.Calls[0].id = quoted(id)
	}
	message, err := jsonx.Parse(t.message, jsonx.Options{})
	if err != nil { // there is no message
		return nil
	}
	for _, call := range callsIn(message) {
		own := call.Get(key)
		if anonymous && (call.Get("function") != nil || call.Get("name").IsText(t.Calls[0].Name)) &&
			(own == nil || idOf(own.JSON()) == nil) {
			call.Set(key, jsonx.NewString(id))
		}
		for _, named := range []*jsonx.Value{call, call.Get("function"), call.Get("custom")} {
			if name := named.Get("name"); name.Is(jsonx.String) && wrong[name.Text()] {
				named.Set("name", jsonx.NewString(t.format.repeated(name.Text())))
			}
		}
	}
	t.message = message.JSON()
	return nil
}

// callsIn returns the parts of a model's message that may be calls.
func callsIn(message *jsonx.Value) []*jsonx.Value {
	items := slices.Clone(message.Items)
	for _, list := range []string{"tool_calls", "content"} {
		items = append(items, message.Get(list).Elements()...)
	}
	for i, call := range items {
		if use := call.Get("toolUse"); use != nil {
			items[i] = use
		}
	}
	return items
}

// Reply returns the messages to append to the conversation after the model's own
// message. There are none if there were no calls. answers has one element for each
// of Calls, in order; a missing one is replaced by an error result.
func (t *Turn) Reply(answers []Answer) []any {
	if len(t.Calls) == 0 {
		return nil
	}
	all := make([]Answer, len(t.Calls))
	for i := range all {
		if i < len(answers) {
			all[i] = t.format.media.fit(answers[i])
		} else {
			all[i] = ErrorAnswer("the call was not run")
		}
	}
	out := t.format.reply(t, all)
	for i := range out {
		if t.camel {
			raw, _ := jsonx.Marshal(out[i]) // of texts and valid JSON
			out[i] = inCamelCase(raw)
		}
	}
	return out
}

func (f Format) unreadable(format string, args ...any) error {
	return &UnreadableError{Format: f.Name, Reason: fmt.Sprintf(format, args...)}
}

// unrecognized returns an error that says what was expected.
func (f Format) unrecognized(data json.RawMessage) error {
	if what := foreignError(asObject(data)); what != nil {
		return f.unreadable("%s", what)
	}
	if other := f.looksLike(data); other != "" {
		return f.unreadable("%s; it looks like format %s", errUnrecognized, other)
	}
	return f.unreadable("%s: %s", errUnrecognized, f.expects)
}

// looksLike returns another format in which the data has calls, or "".
func (f Format) looksLike(data json.RawMessage) string {
	for _, other := range CallFormats() {
		var t Turn
		if other.Name != f.Name && other.decode(&t, data) == nil && len(t.Calls) > 0 {
			return other.Name
		}
	}
	return ""
}

// Message returns the model's own message, which precedes the messages of [Turn.Reply] in the
// conversation: the message in the response, or the one joined from its stream. For
// openai-responses it is the list of output items, for gemini-interactions the list of steps. It is
// nil if only calls were given, and for mcp.
func (t *Turn) Message() json.RawMessage { return t.message }

// messageOf returns the message in a response that could be decoded.
func (f Format) messageOf(data json.RawMessage) json.RawMessage {
	o := asObject(data)
	switch f.Name {
	case "openai", "mistral":
		if o.has("choices") {
			return sendable(openAIChoice(o), "tool_calls")
		}
		if o.has("tool_calls") || o.text("role") == "assistant" {
			return sendable(data, "tool_calls")
		}
	case "openai-responses", "gemini-interactions":
		items := o.either("output", "steps")
		if jsonx.KindOf(data) == jsonx.Array {
			items = data
		}
		if items != nil {
			return asObject(sendable(object{"items": items}.json(), "items"))["items"]
		}
	case "gemini":
		candidates, _ := jsonx.Elements(o["candidates"])
		if len(candidates) > 0 {
			return sendable(asObject(candidates[0])["content"], "parts")
		}
		if o.has("parts") {
			return sendable(data, "parts")
		}
	case "anthropic", "bedrock":
		if message := asObject(o["output"])["message"]; message != nil {
			return sendable(message, "content")
		}
		return f.assistant(o["content"], data)
	}
	return nil
}

// assistant returns the message with these blocks; if there are none, data may be the list of
// them.
func (f Format) assistant(content, data json.RawMessage) json.RawMessage {
	if content == nil && jsonx.KindOf(data) == jsonx.Array {
		content = data
	}
	if content == nil {
		return nil
	}
	out, _ := jsonx.Marshal(message{"assistant", content}) // nil if it fails
	return sendable(out, "content")
}

// sendable returns a message with a list of blocks in a form that its API accepts back: without
// blank texts beside other blocks, which models write before a call, and with an object in place of
// params that were cut off.
func sendable(message json.RawMessage, list string) json.RawMessage {
	o := asObject(message)
	blocks, _ := jsonx.Elements(o[list])
	kept := make([]json.RawMessage, 0, len(blocks))
	changed := false
	for _, raw := range blocks {
		if list == "items" {
			whole := len(raw)
			raw = sendable(raw, "content")
			changed = changed || len(raw) != whole
		}
		block := asObject(raw)
		if isText(block["text"]) && isBlank(block.text("text")) && (len(block) == 1 || block.text("type") == "text") {
			changed = true
			continue
		}
		mended := block.has("parsed") || block.has("parsed_arguments") // of OpenAI's SDKs
		delete(block, "parsed")
		delete(block, "parsed_arguments")
		switch use, function := asObject(block["toolUse"]), asObject(block["function"]); {
		case use.mendParams("input", false):
			block["toolUse"], mended = use.json(), true
		case function.mendParams("arguments", true):
			block["function"], mended = function.json(), true
		case block.text("type") == "tool_use":
			mended = block.mendParams("input", false)
		case block.text("type") == "function_call":
			mended = block.mendParams("arguments", block.has("call_id")) || mended
		}
		if mended {
			raw, changed = block.json(), true
		}
		kept = append(kept, raw)
	}
	if !changed || len(kept) == 0 {
		return message
	}
	o[list], _ = jsonx.Marshal(kept) // of valid JSON
	return o.json()
}

// mendParams replaces params that are not an object by the object in them, if they are a string, or
// by an empty one. inText says that the API writes params as a string. It reports whether it
// replaced anything.
func (o object) mendParams(key string, inText bool) bool {
	if o == nil || !inText && jsonx.KindOf(o[key]) == jsonx.Object {
		return false
	}
	given := params(o[key])
	whole := given
	if isText(given) { // written as JSON twice
		whole = params(given)
	}
	if jsonx.KindOf(whole) != jsonx.Object || registry.CheckJSON(whole) != nil {
		whole = []byte("{}")
	}
	if inText && bytes.Equal(whole, given) {
		return false
	}
	if o[key] = whole; inText {
		o[key] = quoted(string(whole))
	}
	return true
}

// openAIChoice returns the message of the choice that calls tools, or else of the first.
func openAIChoice(o object) json.RawMessage {
	choices, _ := jsonx.Elements(o["choices"])
	if len(choices) == 0 {
		return nil
	}
	i := slices.IndexFunc(choices, func(c json.RawMessage) bool {
		return !jsonx.IsNull(asObject(asObject(c)["message"])["tool_calls"])
	})
	return asObject(choices[max(i, 0)])["message"]
}

// foreignError returns an error that names what a value is, if it is something in which programs keep
// responses, or a response of an API without a format of ours; otherwise nil.
func foreignError(o object) error {
	message, response := asObject(o["message"]), asObject(o["response"])
	switch {
	case o.has("done") && (message != nil || o.has("response")):
		return errors.New(
			"it is a response of Ollama's own API; use its API at /v1/chat/completions, and format openai")
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

// UnreadableError reports that data is not a response in a format.
type UnreadableError struct {
	Format string
	Reason string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("reading a response of format %s: %s", e.Format, e.Reason)
}

// splitStream returns the events of a stream; nil if the data is not a stream.
func (f Format) splitStream(data []byte) (events []json.RawMessage, err error) {
	field, _, _ := bytes.Cut(data, []byte(":"))
	switch {
	case f.join == nil:
		return nil, nil
	case slices.Contains([]string{"data", "event", "id", "retry", ""}, string(field)): // "" is a comment
		events = splitSSE(data)
	case f.Name == "bedrock" && bytes.HasPrefix(data, []byte{0}): // the first byte of a length
		events, err = splitFrames(data)
	default:
		if events = f.splitEvents(data); events == nil {
			return nil, nil
		}
	}
	for i, event := range events {
		err := registry.CheckJSON(event)
		if err != nil && i == len(events)-1 {
			return nil, errUnfinished // it is cut off
		}
		if err != nil {
			return nil, fmt.Errorf("event %d of the stream is not valid JSON: %s", i+1, err.Message)
		}
		if chunk := jsonx.Get(event, "data"); f.Name == "mistral" && jsonx.KindOf(chunk) == jsonx.Object {
			events[i] = chunk
		}
	}
	if len(events) == 0 {
		return nil, cmp.Or(err, errUnfinished)
	}
	return events, nil
}

// splitEvents returns the events of a stream that are JSON Lines or a list, as SDKs return them; nil
// if the data are others, such as one response.
func (f Format) splitEvents(data []byte) (events []json.RawMessage) {
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	switch {
	case data[0] == '[' && registry.CheckJSON(data) == nil:
		for element := range jsonx.Children(data, 0) {
			if isEvent(data[element.Start:element.End]) {
				events, _ = jsonx.Elements(data)
			}
			if events != nil || element.Key == "1" {
				return events
			}
		}
	case json.Valid(line) && (len(rest) > 0 || f.Name != "gemini") && (isEvent(line) || isEvent(second)):
		return splitLines(data)
	}
	return nil
}

// isEvent reports whether a value is an event of a stream, of any format.
func isEvent(raw json.RawMessage) bool {
	o := asObject(raw)
	if chunk := asObject(o["data"]); chunk != nil { // Mistral's SDK
		o = chunk
	}
	kind := o.text("type")
	choices, _ := jsonx.Elements(o["choices"])
	return o.either("event_type", "candidates", "messageStart", "contentBlockStart", "contentBlockDelta") != nil ||
		strings.HasPrefix(kind, "response.") || strings.HasPrefix(kind, "message_") || isBedrockException(o) != "" ||
		slices.ContainsFunc(choices, func(c json.RawMessage) bool { return asObject(asObject(c)["delta"]) != nil })
}
