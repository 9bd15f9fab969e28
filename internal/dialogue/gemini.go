package dialogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// decodeGemini reads a GenerateContentResponse, the chunks of a streamed one, a
// content, or a list of parts or function calls.
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
	switch {
	case o.has("candidates"):
		return t.geminiCandidates(o)
	case o.has("promptFeedback") || o.has("usageMetadata"):
		if reason := asObject(o["promptFeedback"]).text("blockReason"); reason != "" {
			return fmt.Errorf("the API blocked the prompt: %s", reason)
		}
		return nil // the last chunk of a stream
	case o.text("role") == "user":
		return errors.New("it is a user content; send the model's")
	case o.has("parts") || o.text("role") == "model":
		return t.geminiContent(o, false)
	case o.has("functionCall"), o.has("function_call"), o.has("text"), o.has("thought"):
		t.geminiPart(o)
		return nil
	case o.text("name") != "" && o.has("args"):
		t.addGemini(o)
		return nil
	}
	return errUnrecognised
}

func (t *Turn) geminiCandidates(o object) error {
	version := o.text("modelVersion")
	t.siblings = t.siblings || strings.HasPrefix(version, "gemini-1") || strings.HasPrefix(version, "gemini-2")
	candidates, ok := jsonx.Elements(o["candidates"])
	if !ok {
		return errors.New("candidates is not a list")
	}
	calling := 0
	for _, raw := range candidates {
		candidate := asObject(raw)
		before := len(t.Calls)
		if err := t.geminiContent(asObject(candidate["content"]), candidate.text("finishReason") == "MAX_TOKENS"); err != nil {
			return err
		}
		if len(t.Calls) > before {
			calling++
		}
	}
	if calling > 1 {
		return fmt.Errorf("%d of its candidates call functions; send the content of the one with which the conversation continues", calling)
	}
	return nil
}

func (t *Turn) geminiContent(content object, cut bool) error {
	parts, ok := jsonx.Elements(content["parts"])
	if !ok && !jsonx.IsNull(content["parts"]) {
		return errors.New("parts is not a list")
	}
	last := false
	for _, raw := range parts {
		last = t.geminiPart(asObject(raw))
	}
	if cut && last {
		t.Calls[len(t.Calls)-1].Fault = cutOff
	}
	return nil
}

// geminiPart adds the call of a part and reports whether it had one.
func (t *Turn) geminiPart(part object) bool {
	call := asObject(part.either("functionCall", "function_call"))
	if call == nil {
		return false
	}
	t.addGemini(call)
	return true
}

func (t *Turn) addGemini(call object) {
	t.Calls = append(t.Calls, Call{id: textID(call["id"]), Name: call.text("name"), Params: params(call["args"])})
}

// A content with functionResponse parts, as replyGemini writes it.
type (
	geminiReply struct {
		Role  string `json:"role"`
		Parts []any  `json:"parts"`
	}
	geminiReplyPart struct {
		Response geminiResponse `json:"functionResponse"`
	}
	geminiResponse struct {
		ID       json.RawMessage   `json:"id,omitempty"`
		Name     string            `json:"name"`
		Response map[string]string `json:"response"`
		Parts    []geminiMedia     `json:"parts,omitempty"`
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
// call. Media belong into the response since Gemini 3; models before it take
// them as parts of their own.
func replyGemini(t *Turn, answers []Answer) []any {
	out := geminiReply{Role: "user"}
	var beside []any
	for i, a := range answers {
		r := geminiResponse{ID: t.Calls[i].id, Name: t.Calls[i].Name}
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
		key := "output"
		if a.IsError {
			key = "error"
		}
		r.Response = map[string]string{key: text.result(false)}
		out.Parts = append(out.Parts, geminiReplyPart{r})
	}
	out.Parts = append(out.Parts, beside...)
	return []any{out}
}

// geminiTakes reports whether a part can be sent as media. Another type has the
// API refuse the whole request. Within a response fewer are taken than beside it
// (documentation of function calling, "multimodal function responses").
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
