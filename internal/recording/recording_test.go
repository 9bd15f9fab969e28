package recording

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

func plain() Options {
	return Options{Text: func(s string) string { return s }, Params: func(p json.RawMessage) json.RawMessage { return p }}
}

func plainErrors() Errors {
	return Errors{
		Encode: func(_ context.Context, r registry.Result, err error) (registry.Result, *Failure) {
			if err == nil {
				return r, nil
			}
			return r, &Failure{Text: err.Error()}
		},
		Decode: func(f *Failure) error { return errors.New(f.Text) },
	}
}

func TestFolders(t *testing.T) {
	f := NewFolders("/home/ada/work", "/home/ada")
	for text, want := range map[string]string{
		"/home/ada/work/a.txt":            "${toolreg:project}/a.txt",
		"in /home/ada/work.":              "in ${toolreg:project}.",
		"file:///home/ada/x":              "file://${toolreg:home}/x",
		"/home/ada/workshop, /home/adam":  "${toolreg:home}/workshop, /home/adam",
		"/home/ada.old /mnt/home/ada":     "/home/ada.old /mnt/home/ada",
		"${toolreg:home}":                 "${toolreg:text}home}",
		"${toolreg:text}/home/ada":        "${toolreg:text}text}${toolreg:home}",
		"nothing":                         "nothing",
		"/home/ada/work:/home/ada/work":   "${toolreg:project}:${toolreg:project}",
		"/home/ada\n\"/home/ada/work\"\t": "${toolreg:home}\n\"${toolreg:project}\"\t",
	} {
		if got := f.hide(text); got != want {
			t.Errorf("hide(%q) = %q, want %q", text, got, want)
		}
	}
	other := NewFolders("/src", "/home/ben")
	if got := other.show(f.hide("/home/ada/work/a /home/ada/b ${toolreg:x}")); got != "/src/a /home/ben/b ${toolreg:x}" {
		t.Errorf("elsewhere: %q", got)
	}
}

func FuzzFolders(f *testing.F) {
	f.Add("/home/ada/work/x ${toolreg:home} /home/ada")
	f.Add("${toolreg:${toolreg:text}project}")
	folders := NewFolders("/home/ada/work", "/home/ada")
	f.Fuzz(func(t *testing.T, s string) {
		if got := folders.show(folders.hide(s)); got != s {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}

// Everything that a source says of its tools and calls comes back.
func TestRoundTrip(t *testing.T) {
	want := registry.Result{
		Summary: "s", Content: []registry.Content{registry.TextContent("in /projects/p/a"), {Type: registry.ContentImage, Data: []byte("\x89PNG"), MIMEType: "image/png"}},
		Display: registry.Display{Text: "d", Plain: true}, IsError: true, ErrorCategory: registry.ErrorExecution,
		Structured: json.RawMessage(`{"z":1,"a":12345678901234567890}`), Meta: json.RawMessage(`{"k":[]}`), Locations: []registry.Location{{Path: "x", Line: 2}},
		Truncated: true, Asked: true, Confined: true, Denied: []string{"write /x"},
	}
	strict := true
	tools := []registry.Tool{
		{Definition: registry.Definition{Name: "a__t", Source: "mcp:a", Server: "a", ServerTool: "t", Category: registry.CategoryRead, InputSchema: json.RawMessage(`{"type":"object","a":1}`),
			Provider: registry.ProviderFields{Strict: &strict}, MCP: registry.MCPFields{Title: "T"}}, Identity: json.RawMessage(`{"command":"x"}`), Trusted: true, Unmet: "not here"},
		{Definition: registry.Definition{Name: "u", Source: "mcp:a", Server: "a", ServerTool: "u"}, Identity: json.RawMessage(`{"command":"y"}`), Standing: registry.Standing{Quarantine: errors.New("broken")}},
	}
	tools[0].Run = func(_ context.Context, call registry.Call) (registry.Result, error) {
		call.Emit(registry.TextContent("out"))
		call.Progress(registry.Progress{Done: 1, Total: 2, Message: "m"})
		return want, errors.New("failed")
	}
	tools[0].Subject = func(registry.Call) (registry.Subject, error) {
		return registry.Subject{URLs: []string{"http://a/b"}}, nil
	}
	tools[1].Run = tools[0].Run
	folders := NewFolders("/projects/p", "/home/ada")
	r := NewRecorder(folders, plainErrors())
	call := registry.Call{Params: json.RawMessage(`{"b": "/projects/p/f", "a":1}`), Emit: func(registry.Content) {}, Progress: func(registry.Progress) {}}
	live := r.Listed(t.Context(), plain(), "mcp:a", tools, []registry.Diagnostic{{Code: "c", Message: "m"}}, nil)
	if _, err := live[0].Run(t.Context(), call); err == nil {
		t.Fatal("the error of a recorded call is lost")
	}
	data, err := r.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"params":{"a":1,"b":"${toolreg:project}/f"}`) || strings.Contains(string(data), "/projects/p") {
		t.Errorf("the file is\n%s", data)
	}
	rec, err := Read("r.jsonl", data, folders, plainErrors())
	if err != nil {
		t.Fatal(err)
	}
	sources := rec.Sources(plain())
	if len(sources) != 1 || sources[0].Name() != "mcp:a" {
		t.Fatalf("sources: %v", sources)
	}
	got, diags, err := sources[0].Discover(t.Context())
	if err != nil || len(got) != 2 || len(diags) != 1 {
		t.Fatalf("listed %v, %v, %v", got, diags, err)
	}
	for i := range tools {
		if !reflect.DeepEqual(got[i].Definition, tools[i].Definition) || string(got[i].Identity) != string(tools[i].Identity) || got[i].Trusted != tools[i].Trusted || got[i].Unmet != tools[i].Unmet {
			t.Errorf("tool %d is\n%+v, want\n%+v", i, got[i], tools[i])
		}
	}
	if q := got[1].Quarantine; q == nil || q.Error() != "broken" {
		t.Errorf("quarantine: %v", q)
	}
	var output string
	var reported registry.Progress
	call.Emit = func(c registry.Content) { output += c.Text }
	call.Progress = func(p registry.Progress) { reported = p }
	if s, _ := got[0].Subject(call); len(s.URLs) != 1 {
		t.Errorf("subject: %v", s)
	}
	res, err := got[0].Run(t.Context(), call)
	if err == nil || err.Error() != "failed" || !reflect.DeepEqual(res, want) {
		t.Errorf("%v, result\n%+v, want\n%+v", err, res, want)
	}
	if output != "out" || reported != (registry.Progress{Done: 1, Total: 2, Message: "m"}) {
		t.Errorf("output %q, progress %v", output, reported)
	}
	if _, err := got[0].Run(t.Context(), call); err == nil || !strings.Contains(err.Error(), "used up") {
		t.Errorf("the second call: %v", err)
	}
}

func TestDurationIsRounded(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{99 * time.Millisecond: 0, 1234 * time.Millisecond: 1200 * time.Millisecond} {
		if got := newResult(&registry.Result{}, took).registered(); got.Duration != want {
			t.Errorf("%s becomes %s, want %s", took, got.Duration, want)
		}
	}
}

// A recording may come from anybody.
func FuzzRead(f *testing.F) {
	f.Add(`{"recording":"toolreg","version":1}` + "\n" + `{"kind":"list","source":"mcp:a","tools":[{"name":"t","source":"mcp:a","server":"a","serverTool":"t"}]}`)
	f.Add(`{"recording":"toolreg","version":1}` + "\n" + `{"kind":"call","source":"command","tool":"t","params":{"a":"${toolreg:home}"},"result":{"content":[]},"error":{"text":"x"}}`)
	f.Add(`{"recording":"toolreg","version":1}` + "\n" + `{"kind":"question","source":"plugin:a","tool":"t","params":{},"answer":"yes"}`)
	f.Fuzz(func(t *testing.T, data string) {
		rec, err := Read("f", []byte(data), NewFolders("/p", "/h"), plainErrors())
		if err != nil {
			return
		}
		call := registry.Call{Params: json.RawMessage(`{}`), Emit: func(registry.Content) {}, Progress: func(registry.Progress) {}}
		for _, s := range rec.Sources(plain()) {
			tools, _, _ := s.Discover(t.Context())
			for i := range tools {
				if tools[i].Source != s.Name() {
					t.Errorf("%s lists a tool of %s", s.Name(), tools[i].Source)
				}
				_, _ = tools[i].Run(t.Context(), call)
			}
			_, _, _ = rec.Answer(plain(), s.Name(), "t", call.Params)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	r := NewRecorder(NewFolders("/projects/p", "/home/ada"), plainErrors())
	tools := r.Listed(b.Context(), plain(), "mcp:a", []registry.Tool{{
		Definition: registry.Definition{Name: "t", Source: "mcp:a", Server: "a", ServerTool: "t"},
		Behavior: registry.Behavior{Run: func(context.Context, registry.Call) (registry.Result, error) {
			return registry.Result{Summary: "t returned 1 text", Content: []registry.Content{registry.TextContent("hello")}, Display: registry.Display{Text: "hello"}}, nil
		}},
	}}, nil, nil)
	call := registry.Call{Params: json.RawMessage(`{"text":"hello"}`), Emit: func(registry.Content) {}, Progress: func(registry.Progress) {}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tools[0].Run(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}
