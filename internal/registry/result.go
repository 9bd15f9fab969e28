package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// ContentType is the type of one content part, as in MCP (revision 2025-11-25).
type ContentType string

// The content types of MCP.
const (
	ContentText         ContentType = "text"
	ContentImage        ContentType = "image"
	ContentAudio        ContentType = "audio"
	ContentResource     ContentType = "resource"
	ContentResourceLink ContentType = "resource_link"
)

// Content is one part of a result. The fields used depend on Type: text: Text;
// image, audio: Data and MIMEType; resource: URI, MIMEType and either Text or
// Data; resource_link: URI, Name, Title, Description, MIMEType.
type Content struct {
	Type        ContentType
	Text        string
	Data        []byte
	MIMEType    string
	URI         string
	Name        string
	Title       string
	Description string
	Size        int64           // resource_link, bytes; 0 unknown
	Annotations json.RawMessage // as sent, nil if none
	Meta        json.RawMessage // _meta as sent, nil if none

	ResourceMeta json.RawMessage // resource: the _meta of its contents as sent, nil if none
}

// Contents are the contents of a resource, as MCP encodes them.
type Contents struct {
	URI      string          `json:"uri"`
	MIMEType string          `json:"mimeType,omitempty"`
	Text     *string         `json:"text,omitempty"`
	Blob     []byte          `json:"blob,omitzero"`
	Meta     json.RawMessage `json:"_meta,omitempty"`
}

// Contents returns those of a part that is a resource.
func (c Content) Contents() *Contents {
	out := &Contents{URI: c.URI, MIMEType: c.MIMEType, Blob: c.Data, Meta: c.ResourceMeta}
	if c.Data == nil {
		out.Text = &c.Text // also if it is empty
	}
	return out
}

// TextContent returns a text part.
func TextContent(text string) Content { return Content{Type: ContentText, Text: text} }

// MarshalJSON encodes c as an MCP content block.
func (c Content) MarshalJSON() ([]byte, error) {
	out := struct {
		Type        ContentType     `json:"type"`
		Text        *string         `json:"text,omitempty"`
		Data        *[]byte         `json:"data,omitempty"`
		URI         string          `json:"uri,omitempty"`
		Name        string          `json:"name,omitempty"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		MIMEType    string          `json:"mimeType,omitempty"`
		Size        int64           `json:"size,omitempty"`
		Resource    *Contents       `json:"resource,omitempty"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
		Meta        json.RawMessage `json:"_meta,omitempty"`
	}{Type: c.Type, Annotations: ReadHints(c.Annotations), Meta: Meta(c.Meta)}
	switch c.Type {
	case ContentText:
		out.Text = &c.Text
	case ContentImage, ContentAudio:
		data := c.Data
		if data == nil {
			data = []byte{} // an empty string, not null
		}
		out.Data, out.MIMEType = &data, c.MIMEType
	case ContentResource:
		out.Resource = c.Contents()
	default:
		out.URI, out.Name, out.Title, out.Description = c.URI, cmp.Or(c.Name, c.URI), c.Title, c.Description
		out.MIMEType, out.Size = c.MIMEType, c.Size
	}
	return jsonx.Marshal(out)
}

// FileDiff is a change to one file, shown as a unified diff.
type FileDiff struct {
	FileDiff        string  `json:"fileDiff"`
	FileName        string  `json:"fileName"`
	OriginalContent *string `json:"originalContent"` // nil if there was no file
	NewContent      string  `json:"newContent"`
}

// Todo is one entry of a todo list.
type Todo struct {
	ID       string `json:"id"`
	Content  string `json:"content"`
	Status   string `json:"status"`
	Priority string `json:"priority,omitempty"`
}

// Display is what a person sees of a result: a diff, a todo list or Markdown
// text, whichever is set first. The zero value is empty text.
type Display struct {
	Text  string
	Diff  *FileDiff
	Todos []Todo
	// Plain says that the result is not Markdown, regardless of the tool's
	// definition.
	Plain bool
}

// IsZero reports whether there is nothing to show.
func (d Display) IsZero() bool { return d.Text == "" && d.Diff == nil && d.Todos == nil }

// MarshalJSON encodes the display as a string, a diff object or a list.
func (d Display) MarshalJSON() ([]byte, error) {
	switch {
	case d.Diff != nil:
		return jsonx.Marshal(d.Diff)
	case d.Todos != nil:
		return jsonx.Marshal(d.Todos)
	}
	return jsonx.Marshal(d.Text)
}

// ErrorCategory is the stage in which a call failed.
type ErrorCategory string

// The error categories.
const (
	ErrorValidation   ErrorCategory = "validation"
	ErrorExecution    ErrorCategory = "execution"
	ErrorCancellation ErrorCategory = "cancellation"
	ErrorTimeout      ErrorCategory = "timeout"
)

// Location is a place in a file that a call read or changed. Line starts at 1;
// 0 means the whole file.
type Location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// rawLocation is the JSON of a location whose path is not UTF-8, which JSON cannot hold
// as text.
type rawLocation struct {
	Path []byte `json:"pathBytes"` // in Base64
	Line int    `json:"line,omitempty"`
}

// MarshalJSON writes pathBytes instead of path if the path is not UTF-8.
func (l Location) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(l.Path) {
		return json.Marshal(rawLocation{[]byte(l.Path), l.Line})
	}
	type plain Location
	return json.Marshal(plain(l))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Location) UnmarshalJSON(data []byte) error {
	var raw rawLocation
	type plain Location
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if raw.Path != nil {
		*l = Location{string(raw.Path), raw.Line}
		return nil
	}
	return json.Unmarshal(data, (*plain)(l))
}

// Result is the outcome of a call that was made.
type Result struct {
	Summary       string        // one line for a person
	Content       []Content     // for the model
	Display       Display       // for a person; if zero, Content is shown
	Notes         []string      // of toolreg for a person, also in Display or Content, for those who saw the output before
	IsError       bool          // the tool ran and failed
	ErrorCategory ErrorCategory // "" unless IsError
	// Structured is the structured result as the tool sent it, nil if none.
	Structured json.RawMessage
	Meta       json.RawMessage // _meta of an MCP result, nil if none
	Locations  []Location
	Duration   time.Duration
	Truncated  bool   // Content is incomplete and says what is missing
	Whole      string // absolute path of the file with all of the text, if it was cut; may be empty
	Cached     bool   // from the cache of results
	Detached   bool   // the call goes on as a task, see [Call.Detach], and this is not its result
	Asked      bool   // depends on answers of a person or a model, which may differ next time
	// SavedTokens estimates the number of tokens that an override of the result
	// saves.
	SavedTokens int
	Confined    bool // the program ran in the sandbox
	// Denied are accesses that the sandbox denied, as far as the output and the proxy
	// reveal them, with the settings that would allow them.
	Denied   []string
	Attempts int // number of attempts, if more than one
}

// StoredResult is a result as files keep it. Its duration, and what only its own run can use, is not among it.
type StoredResult struct {
	Summary     string          `json:"summary,omitempty"`
	Content     []Content       `json:"content"`
	Display     string          `json:"display,omitempty"`
	Diff        *FileDiff       `json:"diff,omitempty"`
	Todos       []Todo          `json:"todos,omitempty"`
	Plain       bool            `json:"plain,omitempty"`
	IsError     bool            `json:"isError,omitempty"`
	Category    ErrorCategory   `json:"errorCategory,omitempty"`
	Structured  json.RawMessage `json:"structuredContent,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
	Locations   []Location      `json:"locations,omitempty"`
	Truncated   bool            `json:"truncated,omitempty"`
	Asked       bool            `json:"asked,omitempty"`
	SavedTokens int             `json:"savedTokens,omitempty"`
	Confined    bool            `json:"confined,omitempty"`
	Denied      []string        `json:"denied,omitempty"`
}

// Stored returns the result as files keep it.
func (r *Result) Stored() StoredResult {
	return StoredResult{Summary: r.Summary, Content: append([]Content{}, r.Content...), Display: r.Display.Text,
		Diff: r.Display.Diff, Todos: r.Display.Todos, Plain: r.Display.Plain, IsError: r.IsError,
		Category: r.ErrorCategory, Structured: r.Structured, Meta: r.Meta, Locations: r.Locations,
		Truncated: r.Truncated, Asked: r.Asked, SavedTokens: r.SavedTokens, Confined: r.Confined, Denied: r.Denied}
}

// Result returns the result that was stored.
func (r *StoredResult) Result() Result {
	return Result{Summary: r.Summary, Content: append([]Content(nil), r.Content...),
		Display: Display{Text: r.Display, Diff: r.Diff, Todos: r.Todos, Plain: r.Plain}, IsError: r.IsError,
		ErrorCategory: r.Category, Structured: r.Structured, Meta: r.Meta, Locations: r.Locations,
		Truncated: r.Truncated, Asked: r.Asked, SavedTokens: r.SavedTokens, Confined: r.Confined, Denied: r.Denied}
}

// TextResult returns a result that is one text.
func TextResult(text string) Result { return Result{Content: []Content{TextContent(text)}} }

// WithNote returns the result with a note from toolreg for the model after the
// tool's output.
func (r Result) WithNote(note string) Result {
	r.Content = slices.Clone(r.Content)
	if n := len(r.Content); n > 0 && r.Content[n-1].Type == ContentText {
		r.Content[n-1].Text += "\n" + note
	} else {
		r.Content = append(r.Content, TextContent(note))
	}
	return r
}

// WithShownNote is WithNote for a note that the person is shown too.
func (r Result) WithShownNote(note string) Result {
	r.Notes = append(slices.Clip(r.Notes), note)
	if r = r.WithNote(note); r.Display.Text != "" {
		r.Display.Text = strings.TrimSuffix(r.Display.Text, "\n") + "\n[" + note + "]\n"
	}
	return r
}

// ErrorResult returns a failed result. The text tells the model what went wrong.
func ErrorResult(category ErrorCategory, text string) Result {
	return Result{Content: []Content{TextContent(text)}, IsError: true, ErrorCategory: category}
}

// Text returns the text parts of the content joined by newlines.
func (r *Result) Text() string {
	var b bytes.Buffer
	for _, c := range r.Content {
		if c.Type != ContentText {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.Text)
	}
	return b.String()
}
