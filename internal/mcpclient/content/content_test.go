package content

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// TestDisplayVectors compares results with recordings of the Gemini CLI.
func TestDisplayVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/display.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Name          string
			Parts         []json.RawMessage
			PartsText     string
			MCPResult     json.RawMessage
			ReturnDisplay *string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, c := range file.Cases {
		if c.ReturnDisplay == nil { // the CLI crashed, or the case is about something else
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			parts := c.Parts
			if c.PartsText != "" {
				parts, _ = jsonx.Elements(json.RawMessage(c.PartsText))
			}
			got := displayParts(parts)
			if c.MCPResult != nil {
				got = Result("t", c.MCPResult).Display.Text
			}
			if diff := cmp.Diff(*c.ReturnDisplay, got); diff != "" {
				t.Errorf("display (-want +got):\n%s", diff)
			}
		})
		compared++
	}
	if compared < 20 {
		t.Errorf("only %d cases compared", compared)
	}
	if got := displayParts(nil); got != "```json\n[]\n```" {
		t.Errorf("no parts: %q", got)
	}
}

// displayParts displays the parts of a recorded function response by the rules
// of displayResult; several parts become a list.
func displayParts(parts []json.RawMessage) string {
	shown := make([]string, len(parts))
	for i, p := range parts {
		s, js := displayPart(p)
		if js == nil {
			if len(parts) == 1 {
				return s
			}
			js = json.RawMessage(jsonx.Quote(s))
		}
		shown[i] = string(js)
	}
	if len(parts) == 1 {
		return fence(json.RawMessage(shown[0]))
	}
	return fence(json.RawMessage("[" + strings.Join(shown, ",") + "]"))
}

// displayPart returns the text of a part, or its JSON.
func displayPart(part json.RawMessage) (string, json.RawMessage) {
	if s, ok := jsonx.Text(part); ok {
		return s, nil
	}
	response := jsonx.Get(part, "functionResponse")
	if jsonx.IsNull(response) {
		return "", part
	}
	content := jsonx.Get(jsonx.Get(response, "response"), "content")
	blocks, listed := jsonx.Elements(content)
	if !listed {
		return "", response
	}
	if s, ok := joinTexts(blocks); ok {
		return s, nil
	}
	return "", content
}

func TestResult(t *testing.T) {
	text := func(s string) []registry.Content { return []registry.Content{registry.TextContent(s)} }
	tests := []struct {
		name, raw string
		want      registry.Result
	}{
		{
			"text", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			registry.Result{Summary: "t returned 2 text", Content: append(text("a"), text("b")...), Display: registry.Display{Text: "ab"}},
		},
		{"nothing", `{"content":[]}`, registry.Result{Summary: "t returned no content"}},
		{
			"structured alone, raw", `{"structuredContent":{"z":1,"a":12345678901234567891},"content":[]}`,
			registry.Result{
				Summary: "t returned 1 text", Content: text(`{"z":1,"a":12345678901234567891}`), Structured: json.RawMessage(`{"z":1,"a":12345678901234567891}`),
			},
		},
		{
			"structured beside blank text", `{"content":[{"type":"text","text":" "}],"structuredContent":{"a":1}}`,
			registry.Result{Summary: "t returned 1 text", Content: text(`{"a":1}`), Structured: json.RawMessage(`{"a":1}`)},
		},
		{
			"content null", `{"content":null}`,
			registry.Result{Summary: "t returned no content"},
		},
		{
			"structured null", `{"content":[],"structuredContent":null}`,
			registry.Result{Summary: "t returned 1 text", Content: text("null"), Structured: json.RawMessage("null")},
		},
		{
			"error", `{"content":[{"type":"text","text":"bad"}],"isError":true,"_meta":{"a":1}}`,
			registry.Result{
				Summary: "t failed with 1 text", Content: text("bad"), Display: registry.Display{Text: "bad"},
				IsError: true, ErrorCategory: registry.ErrorExecution, Meta: json.RawMessage(`{"a":1}`),
			},
		},
		{
			"isError of the wrong type counts", `{"content":[],"isError":"yes"}`,
			registry.Result{Summary: "t failed with no content", IsError: true, ErrorCategory: registry.ErrorExecution},
		},
		{
			"before 2024-11-05", `{"toolResult":5}`,
			registry.Result{
				Summary: "t returned 1 text", Content: text(`{"toolResult":5}`),
				Display: registry.Display{Text: "```json\n{\n  \"name\": \"t\",\n  \"response\": {\n    \"toolResult\": 5\n  }\n}\n```"},
			},
		},
		{
			"a result in the form before 2024-11-05", `{"toolResult":{"content":[{"type":"text","text":"no"}],"isError":true}}`,
			registry.Result{
				Summary: "t failed with 1 text", Content: text("no"), IsError: true, ErrorCategory: registry.ErrorExecution,
				Display: registry.Display{Text: "no"},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Result("t", json.RawMessage(tt.raw))); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlock(t *testing.T) {
	tests := []struct {
		name, raw string
		want      registry.Content
	}{
		{
			"annotated", `{"type":"text","text":"a","annotations":{"priority":0.50},"_meta":{"k":[1e400]}}`,
			registry.Content{Type: registry.ContentText, Text: "a", Annotations: json.RawMessage(`{"priority":0.50}`), Meta: json.RawMessage(`{"k":[1e400]}`)},
		},
		{"annotated by PHP", `{"type":"text","text":"a","annotations":[],"_meta":[]}`, registry.TextContent("a")},
		{"image", `{"type":"image","data":"iVBORw==","mimeType":"image/png"}`, registry.Content{Type: registry.ContentImage, Data: []byte("\x89PNG"), MIMEType: "image/png"}},
		{"base64 without padding", `{"type":"audio","data":"AAE","mimeType":"audio/wav"}`, registry.Content{Type: registry.ContentAudio, Data: []byte{0, 1}, MIMEType: "audio/wav"}},
		{"base64 in lines, escaped", `{"type":"image","data":"iVBO\nRw\u003d=","mimeType":"image/png"}`, registry.Content{Type: registry.ContentImage, Data: []byte("\x89PNG"), MIMEType: "image/png"}},
		{"empty image", `{"type":"image","data":"","mimeType":"image/png"}`, registry.TextContent("[image image/png without data]")},
		{"invalid base64", `{"type":"image","data":"***"}`, registry.TextContent(`{"type":"image","data":"***"}`)},
		{"unknown type", `{"type":"hologram","x":1}`, registry.TextContent(`{"type":"hologram","x":1}`)},
		{"no type", `{"text":"a"}`, registry.TextContent(`{"text":"a"}`)},
		{"not an object", `5`, registry.TextContent(`5`)},
		{"a text alone", `"a\u00e9"`, registry.TextContent("aé")},
		{"null", `null`, registry.TextContent(`null`)},
		{"text of the wrong type", `{"type":"text","text":["a"]}`, registry.TextContent(`{"type":"text","text":["a"]}`)},
		{
			"resource", `{"type":"resource","resource":{"uri":"u","text":""}}`,
			registry.Content{Type: registry.ContentResource, URI: "u"},
		},
		{
			"resource with metadata", `{"type":"resource","resource":{"uri":"u","text":"a","_meta":{"k":1}},"_meta":{"k":2}}`,
			registry.Content{Type: registry.ContentResource, URI: "u", Text: "a", Meta: json.RawMessage(`{"k":2}`), ResourceMeta: json.RawMessage(`{"k":1}`)},
		},
		{"resource whose empty text was omitted", `{"type":"resource","resource":{"uri":"u","mimeType":"text/plain"}}`, registry.Content{Type: registry.ContentResource, URI: "u", MIMEType: "text/plain"}},
		{"resource with other contents", `{"type":"resource","resource":{"uri":"u","data":"a"}}`, registry.TextContent(`{"type":"resource","resource":{"uri":"u","data":"a"}}`)},
		{"omitted empty text", `{"type":"text","annotations":{"priority":1}}`, registry.Content{Type: registry.ContentText, Annotations: json.RawMessage(`{"priority":1}`)}},
		{"text under another name", `{"type":"text","value":"a"}`, registry.TextContent(`{"type":"text","value":"a"}`)},
		{
			"link", `{"type":"resource_link","uri":"u","name":"n","size":7}`,
			registry.Content{Type: registry.ContentResourceLink, URI: "u", Name: "n", Size: 7},
		},
		{"link to nothing", `{"type":"resource_link","name":"n"}`, registry.TextContent(`{"type":"resource_link","name":"n"}`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := Block(json.RawMessage(tt.raw))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

// TestIndentationDoesNotExplode checks that deeply nested content is displayed
// unchanged.
func TestIndentationDoesNotExplode(t *testing.T) {
	raw := `{"content":[` + strings.Repeat("[", 5000) + strings.Repeat("5,", 5000) + "5" + strings.Repeat("]", 5000) + `]}`
	if got := Result("t", json.RawMessage(raw)).Display.Text; len(got) > 2*len(raw) {
		t.Errorf("%d bytes shown of %d", len(got), len(raw))
	}
}

func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a"}]}`, `{"content":[{"type":"image","data":"aGk="}],"isError":1}`,
		`{"content":[{"type":"resource","resource":{"uri":"u","blob":"AA=="}}],"_meta":{},"structuredContent":[1.0,-0,1e21]}`,
		`{"content":[null,{"text":{}}]}`, `[]`, `{"a":"\ud800","content":5}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		r := Result("t", data)
		for _, c := range r.Content {
			if _, err := json.Marshal(c); err != nil {
				t.Errorf("content %+v: %v", c, err)
			}
		}
		if r.Structured != nil && !json.Valid(r.Structured) || r.Meta != nil && !json.Valid(r.Meta) {
			t.Errorf("structured %q, _meta %q", r.Structured, r.Meta)
		}
		if body, ok := strings.CutPrefix(r.Display.Text, "```json\n"); ok && !strings.Contains(string(data), "```") {
			if !json.Valid([]byte(strings.TrimSuffix(body, "\n```"))) {
				t.Errorf("display %q", r.Display.Text)
			}
		}
	})
}

func BenchmarkResult20MB(b *testing.B) {
	raw := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat(`line of text\n`, 20<<20/14) + `"}]}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		Result("t", raw)
	}
}

// Texts are quoted as JSON.stringify does, which keeps line separators.
func TestStringsOfJavaScript(t *testing.T) {
	for s, want := range map[string]string{
		"a\"\\\n\x01é": `"a\"\\\n\u0001é"`, "\u2028\u2029": "\"\u2028\u2029\"", `\u2028`: `"\\u2028"`, "\xff": "\"\ufffd\"", "<&>": `"<&>"`,
	} {
		if got := jsString(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}
