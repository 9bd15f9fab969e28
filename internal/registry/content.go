package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

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
		out[i] = c
	}
	return out, nil
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
		URI      string     `json:"uri"`
		MIMEType string     `json:"mimeType"`
		Text     string     `json:"text"`
		Blob     base64Text `json:"blob"`
	} `json:"resource"`
	Annotations json.RawMessage `json:"annotations"`
	Meta        json.RawMessage `json:"_meta"`
}

// base64Text is a JSON string with bytes, nil for null. kind is the type that it says itself.
type base64Text struct {
	data []byte
	kind string
}

// UnmarshalJSON implements [json.Unmarshaler].
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
	c, err := p.unsettled()
	return c.Settled(), err
}

func (p *part) unsettled() (Content, error) {
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
		c.URI, c.MIMEType, c.Text, c.Data = p.Resource.URI, cmp.Or(p.Resource.MIMEType, p.Resource.Blob.kind), p.Resource.Text, p.Resource.Blob.data
	case ContentResourceLink:
		if p.URI == "" {
			return c, errors.New("a resource_link must have a uri")
		}
		c.URI, c.Name, c.Title, c.Description, c.MIMEType, c.Size = p.URI, p.Name, p.Title, p.Description, p.MIMEType, p.Size
	default:
		return c, fmt.Errorf("type is %q, but must be text, image, audio, resource or resource_link", p.Type)
	}
	return c, nil
}
