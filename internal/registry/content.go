package registry

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// ParseContent parses the content of a result that a program printed: a string, or
// a list of MCP content blocks.
func ParseContent(raw json.RawMessage) ([]Content, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		return []Content{TextContent(text)}, nil
	}
	var parts []part
	if len(raw) == 0 || raw[0] != '[' {
		return nil, errors.New("expected a string or a list of parts")
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, errors.New("expected a string or a list of parts as in MCP, with data in Base64")
	}
	out := make([]Content, len(parts))
	for i, p := range parts {
		c, err := p.content()
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i+1, err)
		}
		out[i] = c.Settled()
	}
	return out, nil
}

// UnmarshalJSON decodes the output of MarshalJSON. For content from elsewhere, use [ParseContent].
func (c *Content) UnmarshalJSON(data []byte) (err error) {
	var p part
	if err = json.Unmarshal(data, &p); err == nil {
		*c, err = p.content()
	}
	return err
}

// part is an MCP content block.
type part struct {
	Type        ContentType `json:"type"`
	Text        string      `json:"text"`
	Data        base64Text  `json:"data"`
	MIMEType    string      `json:"mimeType"`
	URI         string      `json:"uri"`
	Name        string      `json:"name"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Size        int64       `json:"size"`
	Resource    *struct {
		URI      string          `json:"uri"`
		MIMEType string          `json:"mimeType"`
		Text     string          `json:"text"`
		Blob     base64Text      `json:"blob"`
		Meta     json.RawMessage `json:"_meta"`
	} `json:"resource"`
	Annotations json.RawMessage `json:"annotations"`
	Meta        json.RawMessage `json:"_meta"`
}

// base64Text is a JSON string with bytes, nil for null. kind is the type in its data URL, if it has
// one.
type base64Text struct {
	data []byte
	kind string
}

func (b *base64Text) UnmarshalJSON(raw []byte) error {
	s, ok := jsonx.Text(raw)
	switch {
	case jsonx.IsNull(raw):
		return nil
	case ok:
		b.data, b.kind, ok = DecodeBase64([]byte(s))
	}
	if !ok {
		return errors.New("not base64")
	}
	return nil
}

func (p *part) content() (Content, error) {
	c := Content{Type: p.Type, Annotations: p.Annotations, Meta: p.Meta}
	switch p.Type {
	case ContentText:
		c.Text = p.Text
	case ContentImage, ContentAudio:
		c.Data, c.MIMEType = append([]byte{}, p.Data.data...), cmp.Or(p.MIMEType, p.Data.kind)
	case ContentResource:
		if p.Resource == nil || p.Resource.URI == "" {
			return c, errors.New("a resource must have the field resource with a uri")
		}
		c.URI, c.MIMEType, c.Text, c.Data = p.Resource.URI, cmp.Or(p.Resource.MIMEType, p.Resource.Blob.kind),
			p.Resource.Text, p.Resource.Blob.data
		c.ResourceMeta = p.Resource.Meta
	case ContentResourceLink:
		if p.URI == "" {
			return c, errors.New("a resource_link must have a uri")
		}
		c.URI, c.Name, c.Title, c.Description, c.MIMEType, c.Size = p.URI, p.Name,
			p.Title, p.Description, p.MIMEType, p.Size
	default:
		return c, fmt.Errorf("type is %q, but must be text, image, audio, resource or resource_link", p.Type)
	}
	return c, nil
}

// Media returns a content part for bytes of a type, which is "" if unknown: an image, audio, or
// else a resource with this URI.
func Media(data []byte, kind, uri string) Content {
	kind = mediaType(kind)
	c := Content{Data: data, MIMEType: cmp.Or(sniffedType(data, kind), kind)}
	c.retype(uri)
	return c.Settled()
}

// retype sets Type to what the MIME type says, for images and audio.
func (c *Content) retype(uri string) {
	switch class, _, _ := strings.Cut(c.MIMEType, "/"); class {
	case "image":
		c.Type, c.URI = ContentImage, ""
	case "audio":
		c.Type, c.URI = ContentAudio, ""
	default:
		c.Type, c.URI = ContentResource, uri
	}
}

// Settled returns the part with the type that its bytes have. Servers and plugins often label
// content wrong, and a provider that rejects an image does so again in every later request. Bytes
// that are text become text, and an image without bytes becomes a text that says so.
func (c Content) Settled() Content {
	if c.Type == ContentResource {
		c.URI = cmp.Or(c.URI, attachment) // clients in Python reject results with an empty URI
	}
	if c.Data == nil {
		return c
	}
	labelled := strings.ToLower(c.MIMEType)
	c.MIMEType = mediaType(c.MIMEType)
	if class := string(c.Type); c.MIMEType != "" && !strings.Contains(c.MIMEType, "/") && c.Type != ContentResource {
		c.MIMEType = mediaType(class + "/" + c.MIMEType) // "png"
	}
	if len(c.Data) == 0 {
		return c.asText(strings.Join(strings.Fields(fmt.Sprintf("[%s %s %s without data]",
			c.Type, c.URI, c.MIMEType)), " "))
	}
	kind := sniffedType(c.Data, c.MIMEType)
	if kind == "" && c.Type != ContentResource { // encoded twice
		if data, _, ok := DecodeBase64(c.Data); ok && Sniff(data) != "" {
			c.Data, kind = data, Sniff(data)
		}
	}
	switch {
	case kind != "" && c.Type == ContentResource:
		c.MIMEType = kind
	case kind != "":
		c.MIMEType = kind
		c.retype(attachment)
	case isPlainText(c.Data) && c.Type == ContentResource &&
		(isTextType(c.MIMEType) || c.MIMEType == "" || c.MIMEType == "application/octet-stream"):
		c.Text, c.Data, c.MIMEType = string(c.Data), nil, labelled
	case isPlainText(c.Data) && c.Type == ContentImage && c.MIMEType != "image/svg+xml": // an error message
		return c.asText(string(c.Data))
	case slices.Contains([]string{"", "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}, c.MIMEType):
		// The label is wrong: Sniff recognizes every file of these types.
		c.MIMEType = "application/octet-stream"
		if c.Type != ContentResource {
			c.retype(attachment)
		}
	}
	return c
}

// attachment is the URI of a resource that has none, such as content labeled as an image or audio
// that is neither.
const attachment = "toolreg:attachment"

// sniffedType returns the type of data by its first bytes, or "". For a container of sound or
// pictures, label, the type that the sender gave, decides what is inside.
func sniffedType(data []byte, label string) string {
	kind := Sniff(data)
	class, _, _ := strings.Cut(label, "/")
	if (kind == "video/mp4" || kind == "video/webm" || kind == "audio/ogg") && (class == "audio" || class == "video") {
		return label
	}
	return kind
}

func (c Content) asText(text string) Content {
	return Content{Type: ContentText, Text: text, Annotations: c.Annotations, Meta: c.Meta}
}

// OrStructured returns the content of a result, or its structured content if there is nothing else
// but blank text.
func OrStructured(content []Content, structured []byte) []Content {
	if jsonx.IsNull(structured) {
		return content
	}
	for _, c := range content {
		if c.Type != ContentText || strings.TrimSpace(c.Text) != "" {
			return content
		}
	}
	return []Content{TextContent(string(structured))}
}

// mediaType returns a MIME type in lower case, without parameters, by its usual name.
func mediaType(kind string) string {
	name, _, _ := strings.Cut(kind, ";")
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "image/jpg", "image/pjpeg", "image/jfif":
		return "image/jpeg"
	case "image/x-png":
		return "image/png"
	case "image/svg":
		return "image/svg+xml"
	case "audio/mp3", "audio/x-mp3", "audio/x-mpeg":
		return "audio/mpeg"
	case "audio/wave", "audio/x-wav", "audio/vnd.wave":
		return "audio/wav"
	case "application/x-pdf":
		return "application/pdf"
	}
	return name
}

// Sniff returns the type of an image, sound, video or PDF file by its first bytes, or "".
func Sniff(data []byte) string {
	at := func(offset int, magic string) bool {
		return len(data) >= offset && bytes.HasPrefix(data[offset:], []byte(magic))
	}
	switch {
	case at(0, "\x89PNG"):
		return "image/png"
	case at(0, "GIF8"):
		return "image/gif"
	case at(0, "%PDF-"):
		return "application/pdf"
	case at(0, "II*\x00"), at(0, "MM\x00*"):
		return "image/tiff"
	case at(0, "fLaC"):
		return "audio/flac"
	case at(0, "\xff\xfb"), at(0, "\xff\xfa"), at(0, "\xff\xf3"), at(0, "\xff\xf2"):
		return "audio/mpeg"
	case at(0, "\xff\xf1"), at(0, "\xff\xf9"):
		return "audio/aac"
	case at(4, "ftyphei"), at(4, "ftypmif1"):
		return "image/heic"
	case at(4, "ftypavif"):
		return "image/avif"
	case at(4, "ftypM4A"):
		return "audio/mp4"
	case at(4, "ftypqt"):
		return "video/quicktime"
	case at(0, "\x1aE\xdf\xa3") && bytes.Contains(data[:min(len(data), 64)], []byte("matroska")):
		return "video/x-matroska"
	case at(0, "\x00\x00\x01\xba"), at(0, "\x00\x00\x01\xb3"):
		return "video/mpeg"
	case isPlainText(data): // such as one that begins with "BM"
		return ""
	case at(4, "moov"), at(4, "mdat"), at(4, "wide"):
		return "video/quicktime"
	}
	switch kind := mediaType(http.DetectContentType(data)); kind {
	case "application/ogg":
		return "audio/ogg"
	case "image/x-icon", "image/vnd.microsoft.icon": // too short to be sure
		return ""
	default:
		if class, _, _ := strings.Cut(kind, "/"); class == "image" || class == "audio" || class == "video" {
			return kind
		}
	}
	return ""
}

// Sendable replaces images and PDF files that are damaged by texts that say so: the API of a model
// would reject them in this and in every later request.
func Sendable(content []Content) []Content {
	out := slices.Clone(content)
	for i, c := range out {
		if isDamaged(c.Data) {
			out[i] = c.asText(c.Note() + " cannot be shown: it is damaged or cut off")
		}
	}
	return out
}

// Note describes content that is not text.
func (c Content) Note() string {
	if c.Type == ContentResourceLink {
		text := "[resource " + c.URI
		for _, more := range []string{c.Name, c.MIMEType, c.Description} {
			if more != "" {
				text += ", " + more
			}
		}
		return text + "]"
	}
	name := ""
	if c.URI != "" {
		name = " " + c.URI
	}
	return fmt.Sprintf("[%s%s, %s, %d bytes]", c.Type, name, mediaType(c.MIMEType), len(c.Data))
}

// isDamaged reports whether an image or PDF file lacks a part that every reader needs, like an
// incomplete download or a file of another kind that begins like one.
func isDamaged(data []byte) bool {
	switch Sniff(data) {
	case "application/pdf":
		return !bytes.Contains(data, []byte("startxref"))
	case "image/png":
		hasPixels := false
		for rest := data[min(8, len(data)):]; len(rest) >= 12; {
			size, name := uint64(binary.BigEndian.Uint32(rest))+12, string(rest[4:8])
			if size > uint64(len(rest)) {
				return true
			}
			hasPixels = hasPixels || name == "IDAT"
			if rest = rest[size:]; name == "IEND" {
				break
			}
		}
		return !hasPixels
	case "image/jpeg":
		_, pixels, ok := bytes.Cut(data, []byte("\xff\xda"))
		return !ok || !bytes.Contains(pixels, []byte("\xff\xd9"))
	case "image/gif":
		return len(data) < 14
	case "image/webp":
		return len(data) < 20 || uint64(binary.LittleEndian.Uint32(data[4:]))+8 > uint64(len(data))
	}
	return false
}

// isPlainText reports whether data is UTF-8 without control characters.
func isPlainText(data []byte) bool {
	for _, c := range data[:min(len(data), 4096)] {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\x1b' {
			return false
		}
	}
	return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

func isTextType(kind string) bool {
	name := kind[strings.LastIndexAny(kind, "/+.-")+1:]
	switch name {
	case "json", "xml", "yaml", "javascript", "typescript", "jsonl",
		"ndjson", "toml", "sql", "sh", "graphql", "html", "csv", "markdown":
		return true
	}
	return strings.HasPrefix(kind, "text/")
}

// DecodeBase64 decodes base64 as servers send it: in either alphabet, with or without padding, line
// breaks and a data URL's prefix, whose type it returns. On success, data is not nil.
func DecodeBase64(encoded []byte) (data []byte, kind string, ok bool) {
	if rest, found := bytes.CutPrefix(encoded, []byte("data:")); found {
		label, body, _ := bytes.Cut(rest, []byte(","))
		kind, encoded = mediaType(string(label)), body
	}
	if bytes.ContainsAny(encoded, "\r\n ") {
		encoded = bytes.Join(bytes.Fields(encoded), nil)
	}
	alphabet := base64.RawStdEncoding
	if bytes.ContainsAny(encoded, "-_") {
		alphabet = base64.RawURLEncoding
	}
	encoded = bytes.TrimRight(encoded, "=")
	data = make([]byte, alphabet.DecodedLen(len(encoded)))
	n, err := alphabet.Decode(data, encoded)
	return data[:n], kind, err == nil
}
