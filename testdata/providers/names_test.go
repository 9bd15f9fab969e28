package providers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// names collects the declared names of a format.
type names struct {
	t    *testing.T
	seen map[string]bool
}

func newNames(t *testing.T) *names { return &names{t: t, seen: map[string]bool{}} }

func (n *names) add(name string) {
	n.t.Helper()
	if name == "" || n.seen[name] {
		n.t.Errorf("the name %q is empty or stands twice", name)
	}
	n.seen[name] = true
}

// want compares how many tools are declared: none goes lost unnoticed.
func (n *names) want(got, want int) {
	n.t.Helper()
	if got != want {
		n.t.Errorf("%d tools are declared, want %d", got, want)
	}
}

func allFormats() []string {
	return []string{"gemini", "gemini-interactions", "openai", "openai-responses", "anthropic", "bedrock", "mistral", "mcp", "json-schema", "prompt", "typescript"}
}

// TestLeftOut: the tools that a provider cannot be told of are left out, all
// others are declared without anything that would be refused.
func TestLeftOut(t *testing.T) {
	for _, format := range allFormats() {
		var want []string
		if format == "anthropic" || format == "bedrock" {
			want = append(want, oddParams)
		}
		checkLint(t, want, "--format", format)
	}
	checkLint(t, unsayable(), "--format", "gemini", "--gemini-parameters")
}

func checkLint(t *testing.T, want []string, args ...string) {
	t.Helper()
	var doc struct {
		Findings []struct{ Severity, Code, Tool, Message string }
	}
	out := toolreg(t, shared.settings, "", append([]string{"schema", "--lint", "--json", "--source", "mcp:*"}, args...)...)
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, f := range doc.Findings {
		switch {
		case f.Code == "declaration_left_out":
			left = append(left, f.Tool)
		case f.Code == "schema_invalid": // nobody would refuse what is declared of it
		case f.Severity == "error" && f.Code != "too_many_tools":
			t.Errorf("%v: %s: %s", args, f.Tool, f.Message)
		}
	}
	slices.Sort(left)
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("%v: left out are %q, want %q", args, left, want)
	}
}

// TestStable: a declaration hangs on the settings alone. Two runs, and one in
// which the servers answer in the opposite order, give the same bytes.
func TestStable(t *testing.T) {
	server := httptest.NewServer(inTurn(t))
	defer server.Close()
	late := filepath.Join(t.TempDir(), "late.json")
	if err := writeSettings(late, server.URL, shared.captures); err != nil {
		t.Fatal(err)
	}
	for i, format := range allFormats() {
		first := toolreg(t, shared.settings, "", "schema", "--format", format)
		settings := shared.settings
		if i == 0 { // the order is kept for one run
			settings = late
		}
		if second := toolreg(t, settings, "", "schema", "--format", format); string(first) != string(second) {
			t.Errorf("%s: two runs differ", format)
		}
	}
}

// inTurn stands before the servers and lets none but the last answer before the
// one behind it has.
func inTurn(t *testing.T) http.Handler {
	target, err := url.Parse(shared.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	place := map[string]int{}
	answered := make([]chan struct{}, len(shared.captures)+1)
	once := make([]sync.Once, len(shared.captures))
	for i := range answered {
		answered[i] = make(chan struct{})
	}
	for i, c := range shared.captures {
		place["/"+c.server] = i
	}
	close(answered[len(shared.captures)])
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i, ok := place[r.URL.Path]
		if !ok || r.Method != http.MethodPost {
			proxy.ServeHTTP(w, r)
			return
		}
		select {
		case <-answered[i+1]:
		case <-r.Context().Done():
		}
		proxy.ServeHTTP(w, r)
		once[i].Do(func() { close(answered[i]) })
	})
}

// TestReversedSettings: with the servers in the opposite order each tool whose
// name no other has is declared under the same name.
func TestReversedSettings(t *testing.T) {
	reversed := slices.Clone(shared.captures)
	slices.Reverse(reversed)
	settings := filepath.Join(t.TempDir(), "reversed.json")
	if err := writeSettings(settings, shared.url, reversed); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"openai", "gemini", "anthropic"} {
		forward, back := declaredBy(t, shared.settings, format), declaredBy(t, settings, format)
		same := 0
		for key, name := range forward {
			if back[key] == name {
				same++
			} else if !clashes(key) {
				t.Errorf("%s: %s is declared as %q and as %q", format, key, name, back[key])
			}
		}
		if same < 250 {
			t.Errorf("%s: only %d names are the same", format, same)
		}
	}
}

// clashes reports whether more than one server has a tool of that name, once
// it is cleaned.
func clashes(key string) bool {
	_, name, _ := strings.Cut(key, " ")
	count := 0
	for _, c := range shared.captures {
		for _, tool := range c.Tools {
			if cleaned(tool.Name) == cleaned(name) {
				count++
			}
		}
	}
	return count > 1 || name == "read_file" // a built-in tool has that name
}

// cleaned folds names that may become one.
func cleaned(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			return r
		}
		return '_'
	}, name)
}

// declaredBy maps "server tool" to the declared name.
func declaredBy(t *testing.T, settings, format string) map[string]string {
	t.Helper()
	var list struct {
		Tools []struct{ Name, Server, ServerTool string }
	}
	if err := json.Unmarshal(toolreg(t, settings, "", "list", "--json"), &list); err != nil {
		t.Fatal(err)
	}
	key := map[string]string{}
	for _, tool := range list.Tools {
		key[tool.Name] = tool.Server + " " + tool.ServerTool
	}
	var explained struct {
		Tools []struct{ Tool, Name string }
	}
	if err := json.Unmarshal(toolreg(t, settings, "", "schema", "--explain", "--json", "--format", format), &explained); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range explained.Tools {
		if e.Name != "" {
			out[key[e.Tool]] = e.Name
		}
	}
	return out
}

// TestReversible calls every tool by its declared name, in the provider's form,
// and looks which tool the server was asked for.
func TestReversible(t *testing.T) {
	type caller struct {
		call    func(id int, name string) any
		answers func(out []byte) []string // in the order of the calls
	}
	callers := map[string]caller{
		"openai":    {openAICall, openAIAnswers},
		"mistral":   {openAICall, openAIAnswers},
		"anthropic": {anthropicCall, anthropicAnswers},
	}
	for format, c := range callers {
		t.Run(format, func(t *testing.T) {
			byKey := declaredBy(t, shared.settings, format)
			var keys []string
			var calls []any
			for key, name := range byKey {
				if strings.TrimSpace(key) == "" {
					continue // a built-in tool
				}
				keys = append(keys, key)
				calls = append(calls, c.call(len(calls), name))
			}
			in, err := json.Marshal(calls)
			if err != nil {
				t.Fatal(err)
			}
			answers := c.answers(toolreg(t, shared.settings, string(in), "call", "--format", format, "--yes"))
			if len(answers) != len(keys) {
				t.Fatalf("%d answers to %d calls", len(answers), len(keys))
			}
			ran := 0
			for i, key := range keys {
				_, tool, _ := strings.Cut(key, " ")
				switch {
				case strings.Contains(answers[i], tool+" {"):
					ran++
				case !strings.Contains(answers[i], "The params do not match") && !uncallable(tool):
					t.Errorf("%s: answered %q", key, answers[i])
				}
			}
			if ran < 50 {
				t.Errorf("only %d calls ran", ran)
			}
		})
	}
}

func openAICall(id int, name string) any {
	return object{"id": fmt.Sprint("c", id), "type": "function", "function": object{"name": name, "arguments": "{}"}}
}

func openAIAnswers(out []byte) (texts []string) {
	for line := range strings.Lines(string(out)) {
		var m struct{ Content string }
		if json.Unmarshal([]byte(line), &m) == nil {
			texts = append(texts, strings.TrimPrefix(m.Content, "Error: "))
		}
	}
	return texts
}

func anthropicCall(id int, name string) any {
	return object{"type": "tool_use", "id": fmt.Sprint("c", id), "name": name, "input": object{}}
}

func anthropicAnswers(out []byte) (texts []string) {
	var m struct {
		Content []struct{ Content []struct{ Text string } }
	}
	if json.Unmarshal(out, &m) != nil {
		return nil
	}
	for _, result := range m.Content {
		text := ""
		for _, block := range result.Content {
			text += block.Text
		}
		texts = append(texts, text)
	}
	return texts
}

// uncallable reports whether a nasty tool's own schema is no valid one, so that
// no call of it is let through.
func uncallable(tool string) bool { return tool == "draft3" || tool == "outside_within" }
