package registry

import (
	"encoding/json"
	"errors"
	"fmt"
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
	Data        []byte      `json:"data"` // Base64
	MIMEType    string      `json:"mimeType"`
	URI         string      `json:"uri"`
	Name        string      `json:"name"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Size        int64       `json:"size"`
	Resource    *struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     []byte `json:"blob"`
	} `json:"resource"`
	Annotations json.RawMessage `json:"annotations"`
	Meta        json.RawMessage `json:"_meta"`
}

func (p *part) content() (Content, error) {
	c := Content{Type: p.Type, Annotations: p.Annotations, Meta: p.Meta}
	switch p.Type {
	case ContentText:
		c.Text = p.Text
	case ContentImage, ContentAudio:
		c.Data, c.MIMEType = append([]byte{}, p.Data...), p.MIMEType
	case ContentResource:
		if p.Resource == nil || p.Resource.URI == "" {
			return c, errors.New("a resource must have the field resource with a uri")
		}
		c.URI, c.MIMEType, c.Text, c.Data = p.Resource.URI, p.Resource.MIMEType, p.Resource.Text, p.Resource.Blob
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
