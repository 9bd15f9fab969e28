package provider

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif" // Registers the format with package image.
	_ "image/jpeg"
	_ "image/png"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Limits on a response.
const (
	MaxResponseBytes = 32 << 20
	maxCalls         = 1000
)

// Call is a tool call as the model wrote it.
type Call struct {
	// Name is the declared name of the tool.
	Name string
	// Params are the params as the model wrote them. They are not checked and may be
	// invalid JSON.
	Params []byte
	// Fault says why the call must not run, for the model. It is "" if the call may
	// run.
	Fault string
	// Search is set if the call is not for a tool, but a search for tools that the
	// client has to answer. Params are the params of the search.
	Search bool

	id   json.RawMessage // as the model wrote it; nil if there is none
	kind string          // kind of call, if the format has several
	item object          // the whole call, for values that the answer must repeat
}

// callOf returns the call in o, whose id and params have these keys.
func callOf(o object, id, arguments string) Call {
	c := Call{id: idOf(o[id]), Name: o.text("name"), Params: params(o[arguments]), kind: o.text("type"), item: o}
	if other := MisplacedParams(o, arguments); other != "" {
		c.Fault = fmt.Sprintf("The params of this call are in %q instead of %q, so it was not run.", other, arguments)
	}
	return c
}

// MisplacedParams returns the member of a call that has its params instead of key; "" if key exists
// or no member does. Without its params, a call would do something else.
func MisplacedParams(call map[string]json.RawMessage, key string) string {
	if _, ok := call[key]; ok {
		return ""
	}
	for _, other := range []string{"arguments", "input", "args", "parameters", "params", "inputSchema"} {
		if _, ok := call[other]; ok {
			return other
		}
	}
	return ""
}

// ID returns the id of the call as the model wrote it, or nil if there is none.
func (c *Call) ID() json.RawMessage { return c.id }

// Answer is the outcome of one call. The zero value is an empty success.
type Answer struct {
	Tool       string // name of the tool that ran, for texts; "" if it is the name in the call
	Content    []registry.Content
	Structured json.RawMessage // used if Content is empty, and by the format mcp
	IsError    bool
	Unknown    bool              // the tool does not exist; IsError is also set
	Tools      []json.RawMessage // for a search, the declarations of the tools that it found
	Typed      bool              // the tool was declared with an output schema, which Structured matches
}

// isTyped reports whether a provider to which the output schema was declared
// receives the structured result instead of the content.
func (a Answer) isTyped() bool { return a.Typed && !a.IsError && !jsonx.IsNull(a.Structured) }

// ErrorAnswer returns an answer that reports an error.
func ErrorAnswer(text string) Answer {
	return Answer{Content: []registry.Content{registry.TextContent(text)}, IsError: true}
}

// cutOff is the fault of the last call if the model ran out of tokens, because its
// params may be incomplete.
const cutOff = "The call was cut off by the limit on output tokens, so it was not run. Repeat it in full, with less text or in smaller steps."

// noOutput replaces an empty result, because some APIs reject empty text, and
// models mistake it for a failure.
const noOutput = "(no output)"

// textBlock is a text block in the format of OpenAI and Anthropic.
type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type part struct{ registry.Content }

// mediaType returns the MIME type without parameters, in lower case.
func (p part) mediaType() string {
	name, _, _ := strings.Cut(p.MIMEType, ";")
	return strings.ToLower(strings.TrimSpace(name))
}

// isImage reports whether the part is an image that OpenAI and Anthropic
// accept.
func (p part) isImage() bool {
	switch p.mediaType() {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return p.Data != nil
	}
	return false
}

func (p part) isPDF() bool { return p.Data != nil && p.mediaType() == "application/pdf" }

// soundFormat returns OpenAI's name for an audio format, or "" if OpenAI does not
// accept it.
func (p part) soundFormat() string {
	if p.Data == nil {
		return ""
	}
	return map[string]string{"audio/wav": "wav", "audio/mpeg": "mp3"}[p.mediaType()]
}

func (p part) dataURL() string {
	return "data:" + p.mediaType() + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

func (p part) fileName() string {
	if base := path.Base(p.URI); p.URI != "" && base != "/" && base != "." {
		return base
	}
	return "file.pdf"
}

// asText returns the text of a part, or a description of a part that is not text.
func (p part) asText() string {
	switch {
	case p.Data != nil:
		return p.Note() + " cannot be shown"
	case p.Type == registry.ContentResourceLink:
		return p.Note()
	}
	return strings.ReplaceAll(p.Text, "\x00", "\uFFFD") // some servers read no further than a NUL
}

// notes are the texts and descriptions in an answer.
type notes []string

func (n *notes) add(text string) { *n = append(*n, text) }

// result joins the texts. It marks an error as such, for formats that have no field
// for this.
func (n notes) result(isError bool) string {
	text := strings.Join(n, "\n")
	if isBlank(text) {
		text = noOutput
	}
	if isError {
		return "Error: " + text
	}
	return text
}

// split returns the texts of an answer and, separately, what media returns for its other parts, for
// each of which note returns a text.
func (a Answer) split(media func(part) any, note func(part) string) (text notes, apart []any) {
	for _, c := range a.Content {
		p := part{c}
		if m := media(p); m != nil {
			apart = append(apart, m)
			text.add(note(p))
		} else {
			text.add(p.asText())
		}
	}
	return text, apart
}

// textOrList returns the text of an answer or, if there are media, the list of its parts: texts in
// blocks of type kind, and what media returns.
func (a Answer) textOrList(kind string, marksErrors bool, media func(part) any) any {
	var text notes
	var list []any
	if marksErrors = marksErrors && a.IsError; marksErrors {
		list = append(list, textBlock{kind, "Error:"})
	}
	for _, c := range a.Content {
		p := part{c}
		if m := media(p); m != nil {
			list = append(list, m)
			continue
		}
		text.add(p.asText())
		if s := p.asText(); !isBlank(s) {
			list = append(list, textBlock{kind, s})
		}
	}
	if len(text) == len(a.Content) {
		return text.result(marksErrors)
	}
	return list
}

// blocks returns the blocks of a result, for APIs that accept only text in an error, and reject
// blank text.
func (a Answer) blocks(text func(string) any, media func(i int, p part) []any) (out []any) {
	for i, c := range a.Content {
		p := part{c}
		if m := media(i, p); m != nil && !a.IsError {
			out = append(out, m...)
		} else if s := p.asText(); !isBlank(s) {
			out = append(out, text(s))
		}
	}
	if len(out) == 0 {
		out = []any{text(noOutput)}
	}
	return out
}

type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// mediaLimits are an API's limits on one image or file; zero means no limit. See docs/providers.md
// for their sources.
type mediaLimits struct {
	image, file int // bytes
	pixels      int // width and height of an image
}

// fit replaces media that are too large for the API by texts: otherwise the API would reject this
// and every later request of the conversation.
func (l mediaLimits) fit(a Answer) Answer {
	a.Content = slices.Clone(registry.OrStructured(a.Content, a.Structured))
	for i, c := range a.Content {
		if why := l.exceeded(part{c}); why != "" {
			a.Content[i] = registry.TextContent(c.Note() + " cannot be shown: " + why)
		}
	}
	return a
}

// exceeded says which limit a part exceeds, "" for none.
func (l mediaLimits) exceeded(p part) string {
	limit, isImage := l.file, strings.HasPrefix(p.mediaType(), "image/")
	if isImage {
		limit = l.image
	}
	if limit > 0 && len(p.Data) > limit {
		return fmt.Sprintf("the model takes at most %d bytes; get a smaller one", limit)
	}
	if width, height := size(p.Data); isImage && l.pixels > 0 && max(width, height) > l.pixels {
		return fmt.Sprintf(
			"it has %d by %d pixels, and the model takes at most %d by %d; get a smaller one, or a part of it",
			width, height, l.pixels, l.pixels)
	}
	return ""
}

// size returns the size of an image in pixels, or 0 if it is unknown.
func size(data []byte) (width, height int) {
	if len(data) >= 30 && bytes.HasPrefix(data, []byte("RIFF")) {
		le := binary.LittleEndian
		switch string(data[8:16]) {
		case "WEBPVP8X":
			return int(le.Uint32(data[24:])&0xffffff) + 1, int(le.Uint32(data[26:])>>8) + 1
		case "WEBPVP8L":
			bits := le.Uint32(data[21:])
			return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
		case "WEBPVP8 ":
			return int(le.Uint16(data[26:]) & 0x3fff), int(le.Uint16(data[28:]) & 0x3fff)
		}
	}
	c, _, _ := image.DecodeConfig(bytes.NewReader(data))
	return c.Width, c.Height
}

// object is a JSON object whose values are not decoded yet.
type object map[string]json.RawMessage

func (o object) json() json.RawMessage {
	out, _ := jsonx.Marshal(o) // of valid JSON
	return out
}

// asObject returns the members of raw, or nil if it is not an object.
func asObject(raw json.RawMessage) object {
	if jsonx.KindOf(raw) != jsonx.Object {
		return nil
	}
	return maps.Collect(jsonx.Members(raw))
}

// asText returns the string in raw, or "" if it is not a string.
func asText(raw json.RawMessage) string {
	s, _ := jsonx.Text(raw)
	return s
}

func isText(raw json.RawMessage) bool { return jsonx.KindOf(raw) == jsonx.String }

func (o object) has(key string) bool { _, ok := o[key]; return ok }

func (o object) text(key string) string { return asText(o[key]) }

// either returns the value of the first key that exists: some clients use
// camelCase, others snake_case.
func (o object) either(keys ...string) json.RawMessage {
	for _, k := range keys {
		if raw, ok := o[k]; ok {
			return raw
		}
	}
	return nil
}

// params returns params that are an object or a string that contains one. It
// returns nil for null, which some models write for a tool without params.
func params(raw json.RawMessage) []byte {
	if isText(raw) {
		raw = []byte(asText(raw))
	}
	if jsonx.IsNull(raw) {
		return nil
	}
	return raw
}

// idOf returns an id that the answer must repeat, or nil if there is none. Mistral's streams have
// "null" in place of an id. JSON-RPC and some models use numbers.
func idOf(raw json.RawMessage) json.RawMessage {
	if id := asText(raw); jsonx.KindOf(raw) != jsonx.Number && (id == "" || id == "null") {
		return nil
	}
	return raw
}

func (c Call) idText() string { return cmp.Or(asText(c.id), string(c.id)) }
