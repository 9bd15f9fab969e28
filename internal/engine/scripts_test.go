package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/script"
)

// TestMain lets the test binary act as the engine of scripts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "script-engine" {
		if script.Execute(context.Background()) != nil {
			syscall.Exit(1)
		}
		syscall.Exit(0) // os.Exit takes a second with the race detector
	}
	os.Exit(m.Run())
}

// withScripts returns a session that can run scripts.
func (w *world) withScripts() *Session {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	s := w.session(Options{})
	s.Scripts.engine = []string{self, "script-engine"}
	return s
}

// outcome runs a script and returns its text.
func outcome(t testing.TB, s *Session, text string) string {
	t.Helper()
	result, err := s.Scripts.Run(t.Context(), "x.star", []byte(text), nil, registry.Call{}, false)
	if err != nil {
		return err.Error()
	}
	return result.Text()
}

// record makes a server record the tools that are called, as SERVER/TOOL.
func (w *world) record(server string, called *[]string) {
	inner := w.servers[server].handler
	w.servers[server].handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			Method string
			Params struct{ Name string }
		}
		// The SDK refuses encoded names, which are sent again as they are.
		refused := strings.HasPrefix(r.Header.Get("Mcp-Name"), "=?base64?")
		if json.Unmarshal(body, &request) == nil && request.Method == "tools/call" && !refused {
			w.mu.Lock()
			*called = append(*called, server+"/"+request.Params.Name)
			w.mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(rw, r)
	})
}

// What a script receives besides text stays in memory until it ends, so it is bounded.
func TestScriptsHoldLittleMedia(t *testing.T) {
	t.Parallel()
	s := newWorld(t, "limits: {result: 1MB}\n").withScripts()
	r := &scriptRun{Scripts: s.Scripts, taken: map[string]bool{}}
	image := registry.Result{Content: []registry.Content{{Type: registry.ContentImage, Data: make([]byte, 600_000), MIMEType: "image/png"}}}
	if reply := r.reply(&image); reply.Err != "" || len(reply.Parts) != 1 {
		t.Errorf("the first image: %+v", reply)
	}
	if reply := r.reply(&image); !strings.Contains(reply.Err, "(limits.result)") || len(reply.Parts) != 0 {
		t.Errorf("the second image: %+v", reply)
	}
	if len(r.media) != 1 {
		t.Errorf("%d images are held", len(r.media))
	}
}

// BenchmarkScript compares a thousand calls of tools inside the process with the same calls in a
// script, which includes the start of its engine.
func BenchmarkScript(b *testing.B) {
	const calls = 1000
	for name, params := range map[string]string{"todo_read": `{}`, "read_file": `{"file_path":"a.txt"}`} {
		w := newWorld(b, "scripts: {calls: 0}\n")
		w.write("a.txt", "hello\n")
		s := w.withScripts()
		b.Run(name+"/calls", func(b *testing.B) {
			for b.Loop() {
				for range calls {
					f, err := s.Tools.Find(b.Context(), name, Query{Call: true})
					if err != nil {
						b.Fatal(err)
					}
					if _, err = s.Calls.Call(b.Context(), f, registry.Call{Tool: name, Params: json.RawMessage(params)}); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(name+"/script", func(b *testing.B) {
			for b.Loop() {
				if got := outcome(b, s, fmt.Sprintf("for i in range(%d): tools.%s(**%s)", calls, name, params)); got != "" {
					b.Fatal(got)
				}
			}
		})
	}
}

// Every tool of a large registry can be called in a script, whatever its name.
func TestEveryNameIsReachable(t *testing.T) {
	t.Parallel()
	odd := []string{"a.b", "a-b", "a.b-c.d", "-", ".", "9", "9lives", "größe", "工具x", "🙂y", "for", "None", "while", "lambda", "_", "__", "a__b", "tools", "call", "params",
		"__init__", "keys", "get", "a b", "a/b", `a"b`, `a\b`, strings.Repeat("long", 30), "Case", "case"}
	names := strings.Join(odd, ",")
	var others strings.Builder
	for i := range 436 {
		fmt.Fprintf(&others, ",t-%d.x", i)
	}
	servers := []string{"one:" + names, "two:" + names + others.String(), "hub:hub,spoke", "for:in,spoke"}
	w := newWorld(t, "approvalMode: yolo\n", servers...)
	var called []string
	for _, server := range servers {
		name, _, _ := strings.Cut(server, ":")
		w.record(name, &called)
	}
	s := w.withScripts()
	whole, err := s.Tools.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(whole.Tools()); n != 512 {
		t.Errorf("%d tools", n)
	}
	var text strings.Builder
	var want []string
	for _, tool := range whole.Tools() {
		server, ok := strings.CutPrefix(tool.Source, registry.MCPPrefix)
		if !ok {
			continue
		}
		uses := []string{fmt.Sprintf("tools[%q]", tool.Name)}
		if script.IsIdentifier(tool.Name) {
			uses = append(uses, "tools."+tool.Name)
		}
		name := tool.OriginalName()
		if server != "hub" && registry.ValidName(name) == name { // tools.hub is a tool
			uses = append(uses, fmt.Sprintf("tools[%q][%q]", server, name))
		}
		for _, use := range uses {
			want = append(want, server+"/"+tool.OriginalName())
			fmt.Fprintf(&text, "%s(text = 'x')\n", use)
		}
	}
	s.Settings.Script.Calls = 0
	if got := outcome(t, s, text.String()); got != "" {
		t.Error(got)
	}
	if diff := cmp.Diff(want, called); diff != "" {
		t.Errorf("called (-want +got):\n%s", diff)
	}
	called = nil
	if got := outcome(t, s, "tools.hub(text = 'x')\ntools['hub__spoke'](text = 'x')\ntools.hub.spoke(text = 'x')"); !strings.Contains(got, `x.star:3:16: no tool named "hub__spoke"`) || !strings.Contains(got, `did you mean tools["hub__spoke"]?`) {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"hub/hub", "hub/spoke"}, called); diff != "" {
		t.Errorf("called (-want +got):\n%s", diff)
	}
}
