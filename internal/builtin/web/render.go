package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/toolreg/toolreg/internal/builtin/textfile"
	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// renderedPage is a page as the model gets it: text or one typed part.
type renderedPage struct {
	text  string
	media *registry.Content
	mime  string
	facts facts  // of an HTML page that is not returned raw
	notes string // about that page, one per line
}

// render converts a page to text in a format, or to a typed part.
func render(ctx context.Context, p *webPage, format string) (*renderedPage, error) {
	kind, params := contentKind(p)
	switch {
	case len(p.Body) == 0:
		return &renderedPage{mime: kind}, nil
	case kind == "text/html" || kind == "application/xhtml+xml":
		text := decodePage(p, params, true)
		if format == "raw" {
			return &renderedPage{text: text, mime: kind}, nil
		}
		doc := parse(text)
		facts := readFacts(text, doc, p.url)
		var err error
		if format == "text" {
			text = htmlText(text)
		} else {
			text, err = markdown(ctx, text, doc, p.url)
		}
		return &renderedPage{text: facts.withData(text), mime: kind, facts: facts, notes: facts.notes(text)}, err
	case isMedia(kind) || format == "raw" && !isText(kind, params, p):
		if p.Cut {
			return nil, fmt.Errorf("is %s larger than the limit of %s", kind, tool.Size(int64(len(p.Body))))
		}
		c := registry.Media(p.Body, kind, p.Address)
		return &renderedPage{media: &c, mime: kind}, nil
	case !isText(kind, params, p):
		return nil, fmt.Errorf("is binary (%s, %s) and cannot be shown as text; format: raw returns it as data",
			tool.OneLine(kind), tool.Size(int64(len(p.Body))))
	}
	text := decodePage(p, params, false)
	if format != "raw" && isJSON(kind) {
		text = indentJSON(text)
	}
	return &renderedPage{text: text, mime: kind}, nil
}

// contentKind returns the media type of a page: the one that the server sent
// or, if that is not informative, the one that the first bytes indicate.
func contentKind(p *webPage) (kind string, params map[string]string) {
	kind, params, err := mime.ParseMediaType(p.Type)
	head := p.Body[:min(len(p.Body), textfile.SniffBytes)]
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || kind == "application/octet-stream" ||
		kind == "unknown/unknown" || !strings.Contains(kind, "/") {
		return textfile.Type(head), nil
	}
	// An image with a wrong type would be rejected by its receiver, and so would an
	// error page that is declared as an image.
	enc, ok := textfile.Detect(head)
	isText := ok && (enc == textfile.UTF8 || enc == textfile.UTF8WithBOM)
	if found := textfile.Type(head); isMedia(kind) && kind != found && (isMedia(found) || isText) {
		kind = found
	}
	return kind, params
}

func isJSON(kind string) bool { return kind == "application/json" || strings.HasSuffix(kind, "+json") }

func isMedia(kind string) bool {
	top, _, _ := strings.Cut(kind, "/")
	return (top == "image" || top == "audio" || top == "video") && kind != "image/svg+xml" || kind == "application/pdf"
}

// isText reports whether a page can be shown as text, according to its type or
// its bytes.
func isText(kind string, params map[string]string, p *webPage) bool {
	if strings.HasPrefix(strings.ToLower(params["charset"]), "utf-16") {
		return true // every other byte of UTF-16 may look like a control character
	}
	if strings.HasPrefix(kind, "text/") || isJSON(kind) ||
		strings.HasSuffix(kind, "+xml") || kind == "application/xml" {
		enc, _ := textfile.Detect(p.Body)
		return enc == textfile.UTF16LE || enc == textfile.UTF16BE || !textfile.MostlyControl(p.Body)
	}
	whole := p.Body
	if p.Cut {
		whole, _ = text.WholeRunes(whole)
	}
	return utf8.Valid(whole) && bytes.IndexByte(whole, 0) < 0
}

// decodePage returns a page as UTF-8. The encoding is determined by the byte
// order mark, the server's header, the page's own declaration, or its bytes, in
// this order.
func decodePage(p *webPage, params map[string]string, markup bool) string {
	body := p.Body
	if p.Cut {
		body, _ = text.WholeRunes(body)
	}
	declared := params["charset"]
	header := mime.FormatMediaType("text/html", map[string]string{"charset": declared})
	enc, _, certain := charset.DetermineEncoding(body[:min(len(body), 1024)], header)
	if utf8.Valid(body) && (!certain || declared == "" && !markup) {
		return strings.TrimPrefix(string(body), textfile.BOM)
	}
	if declared, _ := charset.Lookup(text.XMLEncoding(body)); !certain && declared != nil {
		enc = declared
	}
	decoded, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		decoded = body
	}
	return strings.TrimPrefix(text.Valid(decoded), textfile.BOM)
}
