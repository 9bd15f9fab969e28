package discover

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// limits maps the tools of a source to their time limits.
func limits(t *testing.T, s registry.Source) map[string]time.Duration {
	t.Helper()
	tools, _, err := s.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]time.Duration{}
	for _, tool := range tools {
		out[tool.Name] = tool.Timeout
	}
	return out
}

func TestTimeLimitsOfTools(t *testing.T) {
	const tools = `[{"name":"none","command":["cat"]},{"name":"own","command":["cat"],"timeout":"2s"},{"name":"off","command":["cat"],"timeout":0}]`
	want := map[string]time.Duration{"none": 10 * time.Minute, "own": 2 * time.Second, "off": 0}
	dir := t.TempDir()
	command := newCommand(CommandOptions{Discovery: settings.Command{Argv: []string{"/bin/echo", tools}}, Options: Options{ProjectRoot: dir}})
	if diff := cmp.Diff(want, limits(t, command)); diff != "" {
		t.Errorf("discovered tools (-want +got):\n%s", diff)
	}
	for head, none := range map[string]time.Duration{"": 10 * time.Minute, `"timeout":"1m",`: time.Minute, `"timeout":0,`: 0} {
		dir := t.TempDir()
		writeFile(t, dir, "plugin.json", `{"id":"p",`+head+`"tools":`+tools+`}`)
		want["none"] = none
		found := FindPlugins(t.Context(), PluginPlace{Path: dir})
		if diff := cmp.Diff(want, limits(t, NewPlugin(found[0], pluginOptions(PluginOptions{Options: Options{ProjectRoot: dir}})))); diff != "" {
			t.Errorf("plugin with %s (-want +got):\n%s", head, diff)
		}
	}
}

func TestMediaType(t *testing.T) {
	for data, want := range map[string]string{
		"":                                    "",
		"GIF89a is a format":                  "",
		"BMW fährt":                           "",
		"a\x00b":                              "",
		"\xff\xfea\x00":                       "",
		"GIF89a\x01\x00\x01\x00":              "image/gif",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR": "image/png",
		"RIFF\x24\x00\x00\x00WAVEfmt ":        "audio/wav",
		"OggS\x00\x02":                        "audio/ogg",
		"II*\x00\x08":                         "image/tiff",
		"\x00\x00\x00 ftypavif\x00":           "image/avif",
		"fLaC is a codec":                     "",
		"%PDF-1.7\nplain":                     "application/pdf",
		"PK\x03\x04\x14\x00":                  "application/zip",
	} {
		if got := mediaType([]byte(data)); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	}
}

func TestReadRunningErrors(t *testing.T) {
	for raw, want := range map[string]string{
		`{"timeout":-1}`:              "its timeout is not whole milliseconds",
		`{"output":"json"}`:           `neither "text" nor "result"`,
		`{"output":1}`:                `neither "text" nor "result"`,
		`{"confirm":true}`:            "its confirm: ",
		`{"confirm":{"when":".x ="}}`: "not a jq expression",
		`{"confirm":{"when":1}}`:      "its confirm: ",
		`{"confirm":{"if":"x"}}`:      `unknown field "if"`,
	} {
		var o object
		if err := json.Unmarshal([]byte(raw), &o); err != nil {
			t.Fatal(err)
		}
		if _, err := readRunning(o, 0, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
}

// TestEndlessConditionNeedsConfirmation checks that a condition that does not
// finish is treated as true.
func TestEndlessConditionNeedsConfirmation(t *testing.T) {
	c, err := readConfirmation(json.RawMessage(`{"when":"[range(1e12)] | length > 0"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if got := c.reason(ctx, json.RawMessage("{}")); !strings.Contains(got, "failed") {
		t.Error(got)
	}
}

func TestWholeResult(t *testing.T) {
	for printed, want := range map[string]string{
		``:                    "its output is not a result",
		`[]`:                  "it is not an object",
		`{"llmContent":7}`:    "its llmContent: expected a string or a list of parts",
		`{"llmContent":[{}]}`: `part 1: type is ""`,
		`{"returnDisplay":7}`: "its returnDisplay is not a string, a diff",
		`{"metadata":[]}`:     "its metadata is not an object",
		`{"locations":[{}]}`:  "a location takes path",
		`{"isError":1}`:       "isError",
		`{"a":1,"a":2}`:       "duplicate key",
	} {
		r := wholeResult(t.Context(), []byte(printed), "/root", nil)
		if !r.IsError || !strings.Contains(r.Text(), want) || !strings.HasSuffix(r.Text(), printed) {
			t.Errorf("%s: %q, want %q", printed, r.Text(), want)
		}
	}
	r := wholeResult(t.Context(), []byte(`{"llmContent":[{"type":"image","data":"iVBORw==","mimeType":"image/png"},
		{"type":"resource","resource":{"uri":"x:y","text":"t"}},{"type":"resource_link","uri":"x:z","name":"n"}],
		"returnDisplay":[{"id":"1","content":"c","status":"pending"}],"structuredContent":{"a":1}}`), "/root", json.RawMessage(`{"required":["a"]}`))
	want := registry.Result{
		Content: []registry.Content{
			{Type: registry.ContentImage, Data: []byte("\x89PNG"), MIMEType: "image/png"},
			{Type: registry.ContentResource, URI: "x:y", Text: "t"},
			{Type: registry.ContentResourceLink, URI: "x:z", Name: "n"},
		},
		Display:    registry.Display{Todos: []registry.Todo{{ID: "1", Content: "c", Status: "pending"}}},
		Structured: json.RawMessage(`{"a":1}`),
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	broken := wholeResult(t.Context(), []byte(`{"structuredContent":{}}`), "/root", json.RawMessage(`{"required":["a"]}`))
	if !broken.IsError || !strings.Contains(broken.Text(), "does not match its outputSchema") {
		t.Error(broken.Text())
	}
}
