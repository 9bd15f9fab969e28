package provider

import (
	"encoding/base64"
	"fmt"
	"path"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// noOutput replaces an empty result, because some APIs reject empty text, and
// models mistake it for a failure.
const noOutput = "(no output)"

// textBlock is a text block in the format of OpenAI and Anthropic.
type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// part is one part of an answer.
type part struct{ registry.Content }

// parts returns the parts of an answer.
func (a Answer) parts() []part {
	out := make([]part, len(a.Content))
	for i, c := range a.Content {
		out[i] = part{c}
	}
	return out
}

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
	switch p.mediaType() {
	case "audio/wav":
		return "wav"
	case "audio/mpeg":
		return "mp3"
	}
	return ""
}

func (p part) dataURL() string {
	return "data:" + p.mediaType() + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

// fileName returns a name for an attached file.
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
		return p.note() + " cannot be shown"
	case p.Type == registry.ContentResourceLink:
		text := "[resource " + p.URI
		for _, more := range []string{p.Name, p.MIMEType, p.Description} {
			if more != "" {
				text += ", " + more
			}
		}
		return text + "]"
	}
	return p.Text
}

// note describes a part that is not text.
func (p part) note() string {
	name := ""
	if p.URI != "" {
		name = " " + p.URI
	}
	return fmt.Sprintf("[%s%s, %s, %d bytes]", p.Type, name, p.mediaType(), len(p.Data))
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

// split returns the texts of an answer, and apart from them what media makes of its other parts.
func (a Answer) split(media func(part) any) (text notes, apart []any) {
	for _, p := range a.parts() {
		if m := media(p); m != nil {
			apart = append(apart, m)
		} else {
			text.add(p.asText())
		}
	}
	return text, apart
}

// textOrList returns the text of an answer, or a list if it has media: the text in a block of a
// type, and the media.
func (a Answer) textOrList(kind string, marksErrors bool, media func(part) any) any {
	marked := marksErrors && a.IsError
	text, list := a.split(media)
	switch {
	case len(list) == 0:
		return text.result(marked)
	case len(text) == 0 && !marked:
		return list
	}
	return append([]any{textBlock{kind, text.result(marked)}}, list...)
}

// blocks returns the blocks of a result for APIs that take only text in an error, and reject blank
// text.
func (a Answer) blocks(text func(string) any, media func(i int, p part) []any) (out []any) {
	for i, p := range a.parts() {
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

// message is a message of a conversation.
type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
