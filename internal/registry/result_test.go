package registry

import (
	"encoding/json"
	"testing"
)

// TestContentIsEncodedAsMCP checks field names, which programs that read results
// depend on.
func TestContentIsEncodedAsMCP(t *testing.T) {
	for _, tt := range []struct {
		content Content
		want    string
	}{
		{TextContent("a <b>\n"), `{"type":"text","text":"a <b>\n"}`},
		{TextContent(""), `{"type":"text","text":""}`},
		{Content{Type: ContentImage, Data: []byte("png"), MIMEType: "image/png"}, `{"type":"image","data":"cG5n","mimeType":"image/png"}`},
		{Content{Type: ContentAudio, MIMEType: "audio/wav"}, `{"type":"audio","data":"","mimeType":"audio/wav"}`},
		{Content{Type: ContentResource, URI: "file:///a", Text: "x"}, `{"type":"resource","resource":{"uri":"file:///a","text":"x"}}`},
		{Content{Type: ContentResource, URI: "file:///a", MIMEType: "b/c", Data: []byte("x")}, `{"type":"resource","resource":{"uri":"file:///a","mimeType":"b/c","blob":"eA=="}}`},
		{Content{Type: ContentResourceLink, URI: "file:///a", Name: "n", Title: "t", Description: "d", Size: 7, Meta: json.RawMessage(`{"k":1}`)},
			`{"type":"resource_link","uri":"file:///a","name":"n","title":"t","description":"d","size":7,"_meta":{"k":1}}`},
	} {
		got, err := tt.content.MarshalJSON()
		if err != nil || string(got) != tt.want {
			t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
		}
	}
}

func TestDisplayEncoding(t *testing.T) {
	old := "o"
	for want, d := range map[string]Display{
		`""`:    {},
		`"<x>"`: {Text: "<x>"},
		`{"fileDiff":"d","fileName":"f","originalContent":"o","newContent":"n"}`:  {Text: "x", Diff: &FileDiff{"d", "f", &old, "n"}},
		`{"fileDiff":"d","fileName":"f","originalContent":null,"newContent":"n"}`: {Diff: &FileDiff{"d", "f", nil, "n"}},
		`[{"id":"1","content":"c","status":"pending"}]`:                           {Todos: []Todo{{ID: "1", Content: "c", Status: "pending"}}},
		`[]`: {Todos: []Todo{}},
	} {
		got, err := d.MarshalJSON()
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
		if d.IsZero() != (want == `""`) {
			t.Errorf("%s: IsZero is %v", want, d.IsZero())
		}
	}
}

func TestResultText(t *testing.T) {
	r := Result{Content: []Content{TextContent("a"), {Type: ContentImage, Data: []byte("x")}, TextContent("b")}}
	if got := r.Text(); got != "a\nb" {
		t.Errorf("%q", got)
	}
	if r := ErrorResult(ErrorTimeout, "late"); !r.IsError || r.ErrorCategory != ErrorTimeout || r.Text() != "late" {
		t.Errorf("%+v", r)
	}
}

func TestFingerprintDependsOnlyOnDefinition(t *testing.T) {
	base := mcpTool("s", "t")
	base.InputSchema = json.RawMessage(`{"a":1,"b":2}`)
	same := base
	same.Name, same.InputSchema = "registered_otherwise", json.RawMessage(`{ "b":2, "a":1 }`)
	if base.Fingerprint() != same.Fingerprint() {
		t.Error("the fingerprint depends on the registered name or the order of keys")
	}
	for what, change := range map[string]func(*Tool){
		"source":       func(x *Tool) { x.Source = MCPPrefix + "r" },
		"name":         func(x *Tool) { x.ServerTool = "u" },
		"description":  func(x *Tool) { x.Description = "other" },
		"schema":       func(x *Tool) { x.InputSchema = json.RawMessage(`{"a":1,"b":3}`) },
		"outputSchema": func(x *Tool) { x.OutputSchema = json.RawMessage(`{}`) },
		"annotations":  func(x *Tool) { x.Annotations = json.RawMessage(`{}`) },
		"behind":       func(x *Tool) { x.Identity = json.RawMessage(`{"command":"x"}`) },
		"title":        func(x *Tool) { x.MCP.Title = "other" },
		"icons":        func(x *Tool) { x.MCP.Icons = json.RawMessage(`[]`) },
		"execution":    func(x *Tool) { x.MCP.Execution = json.RawMessage(`{}`) },
		"_meta":        func(x *Tool) { x.MCP.Meta = json.RawMessage(`{}`) },
	} {
		changed := base
		change(&changed)
		if changed.Fingerprint() == base.Fingerprint() {
			t.Errorf("%s does not count", what)
		}
	}
}

// A path that JSON cannot hold as text is written as its bytes, so that it still names
// the file, and comes back from a cache or a recording.
func TestLocationEncoding(t *testing.T) {
	for want, l := range map[string]Location{
		`{"path":"/p/café.txt","line":3}`:           {Path: "/p/café.txt", Line: 3},
		`{"path":""}`:                               {},
		`{"pathBytes":"L3AvY2Fm6S50eHQ=","line":3}`: {Path: "/p/caf\xe9.txt", Line: 3},
	} {
		got, err := json.Marshal(l)
		if err != nil || string(got) != want {
			t.Errorf("%+v is %s, %v; want %s", l, got, err, want)
		}
		var back Location
		if err := json.Unmarshal(got, &back); err != nil || back != l {
			t.Errorf("%s is read as %+v, %v", got, back, err)
		}
	}
}
