package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/provider/gemini"
	"github.com/toolreg/toolreg/internal/provider/rewrite"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// geminiFormat declares functions for the Gemini API (FunctionDeclaration): MCP
// tools with parametersJsonSchema, unchanged; all others with parameters, sanitized
// and adapted to the API's type Schema. According to the documentation, a name has
// at most 64 letters, digits, underscores, colons, dots and dashes, and begins with
// a letter or underscore. Vertex AI does not accept colons, but registered names
// have none.
func geminiFormat() Format {
	return Format{
		Name:    "gemini",
		Summary: "Gemini API function declarations",
		expects: "candidates, a content with parts, or a list of function calls",
		decode:  decodeGemini,
		media:   mediaLimits{image: 20 << 20 / 4 * 3, file: 20 << 20 / 4 * 3},
		join:    joinGemini,
		reply:   replyGemini,
		rule:    nameRule{extra: ".-", letterFirst: true, max: 64},
		request: layout{open: `[{"functionDeclarations":[`, between: ",", close: "]}]", empty: "[]"},
		prepare: (*encoder).prepareGemini,
		refuse:  func(t *tool) error { return t.unfit },
		write: func(e *encoder, t *tool) {
			key := "parametersJsonSchema"
			if t.byParameters {
				key = "parameters"
			}
			e.declare(t, "{", key)
			if !e.opts.GeminiReference {
				if behavior := t.def.Provider.Behavior; behavior != "" {
					e.text("behavior", behavior)
				}
				e.writeFurther(t, "responseJsonSchema", t.def.DeclaredOutputSchema(), e.outputSchema)
			}
			e.raw("}")
		},
	}
}

// prepareGemini sanitizes a schema as Gemini CLI does and, if the API would still
// reject it, adapts it to the API's type Schema. A schema that this type cannot
// express is declared with parametersJsonSchema instead.
func (e *encoder) prepareGemini(t *tool) {
	if e.opts.GeminiReference {
		e.prepareReference(t)
		return
	}
	t.byParameters = e.opts.GeminiParameters || !t.def.OfServer()
	switch {
	case !t.byParameters:
	case t.bare && !t.def.OfServer(), // Gemini CLI declares {} for a tool without params
		t.def.Source == registry.SourceBuiltin && unclosed(t.schema):
		t.schema = jsonx.NewObject()
	case gemini.Foreign(t.schema):
		e.fitGemini(t)
	default:
		if t.def.SentInput != nil { // what Gemini CLI would declare, if the API takes it
			t.schema = e.reread(t.def.SentInput)
		}
		if changes, whole := gemini.Sanitize(t.schema); whole && !gemini.Foreign(t.schema) && gemini.Takes(t.schema) {
			e.changed(t, changes)
			return
		}
		t.schema = e.reread(t.def.InputSchema)
		e.fitGemini(t)
	}
}

// prepareReference changes a schema exactly as Gemini CLI does.
func (e *encoder) prepareReference(t *tool) {
	t.byParameters = !t.def.OfServer()
	if !t.bare || !t.byParameters { // for a server's tool without a schema it declares an object without properties
		t.schema = e.reread(t.def.AsSent().InputSchema)
	} else {
		t.schema = jsonx.NewObject()
	}
	if t.byParameters {
		changes, whole := gemini.Sanitize(t.schema)
		e.changed(t, changes)
		if !whole {
			e.diagnose(registry.SeverityWarning, "schema_partly_sanitised", t,
				"an anyOf in its schema is not a list; the rest is declared unchanged",
				"fix it at the source of the tool")
		}
	}
	gemini.Respell(t.schema)
}

// fitGemini rewrites a schema for which sanitizing is not sufficient.
func (e *encoder) fitGemini(t *tool) {
	fitted, err := e.fitter.Fit(t.schema)
	if err == nil && len(fitted.Lost) > 0 && !e.opts.GeminiParameters {
		err = errors.New(strings.Join(fitted.Lost, "; "))
	}
	switch {
	case err == nil:
		t.schema = fitted.Schema
		changes, _ := gemini.Sanitize(t.schema)
		fitted.Changes = append(fitted.Changes, changes...)
		for _, what := range fitted.Lost {
			fitted.Changes = append(fitted.Changes, "omitted: "+what)
		}
		e.changed(t, fitted.Changes)
	case e.opts.GeminiParameters:
		t.unfit = fmt.Errorf("parameters cannot express its schema: %w", err)
	default:
		t.byParameters = false
		e.changed(t, rewrite.TypeRoot(t.schema))
		e.diagnose(registry.SeverityInfo, "schema_as_json_schema", t,
			fmt.Sprintf("declared with parametersJsonSchema, since parameters cannot express all of it: %v", err),
			"--gemini-parameters uses parameters for as much as possible")
	}
}

// unclosed removes additionalProperties from the schema of a built-in tool, and
// reports whether the schema has no properties. The API's type Schema supports
// neither the keyword nor an object without properties.
func unclosed(n *jsonx.Value) (empty bool) {
	schema.Walk(n, func(n *jsonx.Value) { n.Remove("additionalProperties") })
	return len(n.Get("properties").Fields()) == 0
}

// decodeGemini decodes a GenerateContentResponse, the chunks of a streamed one,
// a content, a list of parts or function calls, or a message of the Live API.
func decodeGemini(t *Turn, raw json.RawMessage) error {
	list, ok := jsonx.Elements(raw)
	if !ok {
		return t.geminiValue(asObject(raw))
	}
	for _, raw := range list {
		o := asObject(raw)
		if o.has("role") {
			return errors.New("it is a list of contents; send only the last content")
		}
		if err := t.geminiValue(o); err != nil {
			return err
		}
	}
	return nil
}

func (t *Turn) geminiValue(o object) error {
	if err := apiError(o); err != nil {
		return err
	}
	if feedback := asObject(o["promptFeedback"]); feedback.text("blockReason") != "" {
		return t.ended(feedback.text("blockReason"),
			cmp.Or(feedback.text("blockReasonMessage"), "the prompt was blocked"), false, false)
	}
	switch {
	case o.has("candidates"):
		return t.geminiCandidates(o)
	case asObject(o["toolCall"]).has("functionCalls"):
		return t.geminiLive(asObject(o["toolCall"]))
	case o.has("serverContent"), o.has("toolCallCancellation"),
		o.has("setupComplete"), o.has("sessionResumptionUpdate"), o.has("goAway"):
		return nil // a message of the Live API without calls
	case o.has("promptFeedback"), o.has("usageMetadata"), o.has("modelVersion"):
		return errors.New("it has no candidates; request the response again")
	case o.text("role") == "user":
		return errors.New("it is a content of role user; send the model's content")
	case o.has("parts") || o.text("role") == "model":
		_, err := t.geminiContent(o)
		return err
	case o.has("functionCall"), o.has("function_call"), o.has("text"),
		o.has("thought"), o.has("toolCall"), o.has("toolResponse"):
		_, err := t.geminiPart(o)
		return err
	case o.text("name") != "" && (o.has("args") || len(o) == 1 || len(o) == 2 && o.has("id")):
		return t.addGemini(o)
	}
	return errUnrecognized
}

// geminiLive decodes the toolCall in a message of the Live API.
func (t *Turn) geminiLive(message object) error {
	list, ok := jsonx.Elements(message["functionCalls"])
	if !ok {
		return errors.New("functionCalls is not a list")
	}
	t.live = true
	for _, raw := range list {
		if err := t.addGemini(asObject(raw)); err != nil {
			return err
		}
	}
	return nil
}

func (t *Turn) geminiCandidates(o object) error {
	version := o.text("modelVersion")
	t.siblings = t.siblings || strings.HasPrefix(version, "gemini-1") || strings.HasPrefix(version, "gemini-2")
	return t.alternatives(o, "candidates",
		"call functions; send only the content that continues the conversation",
		func(candidate object) error {
			before := len(t.Calls)
			last, err := t.geminiContent(asObject(candidate["content"]))
			return cmp.Or(err, t.ended(candidate.text("finishReason"),
				candidate.text("finishMessage"), len(t.Calls) > before, last))
		})
}

// geminiContent adds the calls of a content, and reports whether its last part is one.
func (t *Turn) geminiContent(content object) (last bool, err error) {
	parts, ok := jsonx.Elements(content["parts"])
	if !ok && !jsonx.IsNull(content["parts"]) {
		return false, errors.New("parts is not a list")
	}
	return eachPart(parts, t.geminiPart)
}

// geminiPart adds the call of a part and reports whether it has one. Calls that
// the server runs (toolCall, executableCode) need no answer.
func (t *Turn) geminiPart(part object) (called bool, err error) {
	call := asObject(part.either("functionCall", "function_call"))
	if call == nil {
		return false, nil
	}
	return true, t.addGemini(call)
}

func (t *Turn) addGemini(call object) error {
	if call.has("partialArgs") || string(call["willContinue"]) == "true" {
		return errors.New("a call in it has its args in pieces; request it without streamFunctionCallArguments")
	}
	t.Calls = append(t.Calls, callOf(call, "id", "args"))
	return nil
}

// A content with functionResponse parts, as replyGemini writes it.
type (
	geminiReply struct {
		Role  string `json:"role"`
		Parts []any  `json:"parts"`
	}
	geminiResponse struct {
		ID       json.RawMessage `json:"id,omitempty"`
		Name     string          `json:"name"`
		Response map[string]any  `json:"response"`
		Parts    []any           `json:"parts,omitempty"`
	}
	geminiBlob struct {
		MIMEType string `json:"mimeType"`
		Data     []byte `json:"data"`
	}
)

// replyGemini writes one content of role user with a functionResponse for each
// call. Since Gemini 3, media belong in the response; earlier models accept
// them as separate parts.
func replyGemini(t *Turn, answers []Answer) []any {
	out := geminiReply{Role: "user"}
	var responses []geminiResponse
	var beside []any
	for i, a := range answers {
		r, media := t.geminiResponse(i, a)
		out.Parts = append(out.Parts, map[string]any{"functionResponse": r})
		responses = append(responses, r)
		beside = append(beside, media...)
	}
	if t.live {
		return []any{map[string]any{"toolResponse": map[string]any{"functionResponses": responses}}}
	}
	out.Parts = append(out.Parts, beside...)
	return []any{out}
}

// geminiResponse answers one call. It returns media that cannot be part of the
// response separately.
func (t *Turn) geminiResponse(i int, a Answer) (r geminiResponse, beside []any) {
	r = geminiResponse{ID: t.Calls[i].id, Name: t.Calls[i].Name}
	text, media := a.split(t.geminiMedia, part.Note)
	if t.siblings {
		beside = media
	} else {
		r.Parts = media
	}
	switch {
	case a.IsError:
		r.Response = map[string]any{"error": text.result(false)}
	case a.isTyped() && bytes.Contains(a.Structured, []byte(`"$ref"`)): // in an object it names a part for the API
		r.Response = map[string]any{"output": string(a.Structured)}
	case a.isTyped():
		r.Response = map[string]any{"output": a.Structured}
	default:
		r.Response = map[string]any{"output": text.result(false)}
	}
	return r, beside
}

// geminiMedia returns a part as media, or nil if the API does not accept it as such: other types
// would make it reject the whole request. It accepts fewer types within a response than separately
// (documentation of function calling, "multimodal function responses").
func (t *Turn) geminiMedia(p part) any {
	switch p.mediaType() {
	case "image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain":
	case "image/heic", "image/heif",
		"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac",
		"video/mp4", "video/mpeg", "video/quicktime", "video/webm", "video/x-flv", "video/wmv", "video/3gpp":
		if !t.siblings {
			return nil
		}
	default:
		return nil
	}
	if len(p.Data) == 0 {
		return nil
	}
	return map[string]any{"inlineData": geminiBlob{p.mediaType(), p.Data}}
}

// joinGemini joins the chunks of a GenerateContentResponse.
func joinGemini(events []json.RawMessage) (any, error) {
	type candidate struct {
		Content struct {
			Role  string   `json:"role"`
			Parts []object `json:"parts"`
		} `json:"content"`
		FinishReason  string `json:"finishReason,omitempty"`
		FinishMessage string `json:"finishMessage,omitempty"`
	}
	var out struct {
		Candidates     []*candidate    `json:"candidates,omitempty"`
		PromptFeedback json.RawMessage `json:"promptFeedback,omitempty"`
		ModelVersion   json.RawMessage `json:"modelVersion,omitempty"`
	}
	byIndex := map[string]*candidate{}
	for _, event := range events {
		o := asObject(event)
		if err := apiError(o); err != nil {
			return nil, err
		}
		if o.has("promptFeedback") {
			out.PromptFeedback = o["promptFeedback"]
		}
		if o.has("modelVersion") {
			out.ModelVersion = o["modelVersion"]
		}
		chunks, _ := jsonx.Elements(o["candidates"])
		for _, raw := range chunks {
			chunk := asObject(raw)
			index := strings.TrimPrefix(string(chunk["index"]), "0")
			c := byIndex[index]
			if c == nil {
				c = &candidate{}
				c.Content.Role = "model"
				byIndex[index] = c
				out.Candidates = append(out.Candidates, c)
			}
			parts, _ := jsonx.Elements(asObject(chunk["content"])["parts"])
			for _, part := range parts {
				c.Content.Parts = addPart(c.Content.Parts, asObject(part))
			}
			c.FinishReason = cmp.Or(chunk.text("finishReason"), c.FinishReason)
			c.FinishMessage = cmp.Or(chunk.text("finishMessage"), c.FinishMessage)
		}
	}
	unfinished := func(c *candidate) bool { return c.FinishReason == "" }
	blocked := asObject(out.PromptFeedback).text("blockReason") != ""
	if len(out.Candidates) == 0 && !blocked || slices.ContainsFunc(out.Candidates, unfinished) {
		return nil, errUnfinished
	}
	return out, nil
}

// addPart adds a part to a content. Consecutive texts are joined, unless one has other members,
// such as a signature.
func addPart(parts []object, part object) []object {
	isPlain := func(o object) bool {
		return isText(o["text"]) && (len(o) == 1 || len(o) == 2 && o.has("thought"))
	}
	switch n := len(parts); {
	case isPlain(part) && part.text("text") == "": // often the last one
	case isPlain(part) && n > 0 && isPlain(parts[n-1]) && string(parts[n-1]["thought"]) == string(part["thought"]):
		parts[n-1].joinText("text", part["text"])
	default:
		parts = append(parts, part)
	}
	return parts
}
