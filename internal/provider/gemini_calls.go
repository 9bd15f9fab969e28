package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

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
		return t.ended(feedback.text("blockReason"), cmp.Or(feedback.text("blockReasonMessage"), "the prompt was blocked"), false, false)
	}
	switch {
	case o.has("candidates"):
		return t.geminiCandidates(o)
	case asObject(o["toolCall"]).has("functionCalls"):
		return t.geminiLive(asObject(o["toolCall"]))
	case o.has("serverContent"), o.has("toolCallCancellation"), o.has("setupComplete"), o.has("sessionResumptionUpdate"), o.has("goAway"):
		return nil // a message of the Live API without calls
	case o.has("promptFeedback"), o.has("usageMetadata"), o.has("modelVersion"):
		return errors.New("it has no candidates; request the response again")
	case o.text("role") == "user":
		return errors.New("it is a content of role user; send the model's content")
	case o.has("parts") || o.text("role") == "model":
		_, err := t.geminiContent(o)
		return err
	case o.has("functionCall"), o.has("function_call"), o.has("text"), o.has("thought"), o.has("toolCall"), o.has("toolResponse"):
		_, err := t.geminiPart(o)
		return err
	case o.text("name") != "" && o.has("args"):
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
	candidates, ok := jsonx.Elements(o["candidates"])
	if !ok {
		return errors.New("candidates is not a list")
	}
	if len(candidates) == 0 {
		return errors.New("candidates is empty; request the response again")
	}
	calling := 0
	for _, raw := range candidates {
		candidate := asObject(raw)
		before := len(t.Calls)
		last, err := t.geminiContent(asObject(candidate["content"]))
		has := len(t.Calls) > before
		if err = cmp.Or(err, t.ended(candidate.text("finishReason"), candidate.text("finishMessage"), has, last)); err != nil {
			return err
		}
		if has {
			calling++
		}
	}
	if calling > 1 {
		return fmt.Errorf("%d of its candidates call functions; send the content of the one with which the conversation continues", calling)
	}
	return nil
}

// geminiContent adds the calls of a content, and reports whether its last part is one.
func (t *Turn) geminiContent(content object) (last bool, err error) {
	parts, ok := jsonx.Elements(content["parts"])
	if !ok && !jsonx.IsNull(content["parts"]) {
		return false, errors.New("parts is not a list")
	}
	for _, raw := range parts {
		if last, err = t.geminiPart(asObject(raw)); err != nil {
			return false, err
		}
	}
	return last, nil
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
	t.Calls = append(t.Calls, Call{id: textID(call["id"]), Name: call.text("name"), Params: params(call["args"])})
	return nil
}

// A content with functionResponse parts, as replyGemini writes it, and the
// message for the Live API.
type (
	geminiToolResponse struct {
		Response struct {
			Responses []geminiResponse `json:"functionResponses"`
		} `json:"toolResponse"`
	}
	geminiReply struct {
		Role  string `json:"role"`
		Parts []any  `json:"parts"`
	}
	geminiReplyPart struct {
		Response geminiResponse `json:"functionResponse"`
	}
	geminiResponse struct {
		ID       json.RawMessage `json:"id,omitempty"`
		Name     string          `json:"name"`
		Response map[string]any  `json:"response"`
		Parts    []geminiMedia   `json:"parts,omitempty"`
	}
	geminiMedia struct {
		InlineData geminiBlob `json:"inlineData"`
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
	var live geminiToolResponse
	var beside []any
	for i, a := range answers {
		r, media := t.geminiResponse(i, a)
		out.Parts = append(out.Parts, geminiReplyPart{r})
		live.Response.Responses = append(live.Response.Responses, r)
		beside = append(beside, media...)
	}
	if t.live {
		return []any{live}
	}
	out.Parts = append(out.Parts, beside...)
	return []any{out}
}

// geminiResponse answers one call. It returns media that cannot be part of the
// response separately.
func (t *Turn) geminiResponse(i int, a Answer) (r geminiResponse, beside []any) {
	r = geminiResponse{ID: t.Calls[i].id, Name: t.Calls[i].Name}
	text := notes{}
	for _, p := range a.parts() {
		if !t.geminiTakes(p) {
			text.add(p.asText())
			continue
		}
		text.add(p.note())
		m := geminiMedia{geminiBlob{p.mediaType(), p.Data}}
		if t.siblings {
			beside = append(beside, m)
		} else {
			r.Parts = append(r.Parts, m)
		}
	}
	switch {
	case a.IsError:
		r.Response = map[string]any{"error": text.result(false)}
	case a.isTyped():
		r.Response = map[string]any{"output": a.Structured}
	default:
		r.Response = map[string]any{"output": text.result(false)}
	}
	return r, beside
}

// geminiTakes reports whether a part can be sent as media. The API rejects the
// whole request if it has other types. It accepts fewer types within a response
// than separately (documentation of function calling, "multimodal function
// responses").
func (t *Turn) geminiTakes(p part) bool {
	if len(p.Data) == 0 {
		return false
	}
	switch p.mediaType() {
	case "image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain":
		return true
	case "image/heic", "image/heif",
		"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac",
		"video/mp4", "video/mpeg", "video/quicktime", "video/webm", "video/x-flv", "video/wmv", "video/3gpp":
		return t.siblings
	}
	return false
}
