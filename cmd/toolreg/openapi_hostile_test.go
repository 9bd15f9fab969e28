//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// requestLog is a web server that keeps what it was asked.
type requestLog struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // the first line, the headers and the body of each
}

// newRequestLog starts a server. Requests are kept before answer is called; nil answers
// with an empty JSON object.
func newRequestLog(t *testing.T, answer http.HandlerFunc) *requestLog {
	t.Helper()
	l := &requestLog{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_ = r.Write(&b)
		l.mu.Lock()
		l.requests = append(l.requests, b.String())
		l.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *requestLog) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// apiListing is what list --all --json prints.
type apiListing struct {
	Tools []struct {
		Name, Source string
		InputSchema  struct{ Properties map[string]json.RawMessage }
	}
	Hidden      []struct{ Name, Source, Reason string }
	Diagnostics []struct{ Severity, Source, Message, Hint string }
}

func (l apiListing) has(name string) bool {
	for _, tool := range l.Tools {
		if tool.Name == name {
			return true
		}
	}
	return false
}

// said returns all texts about what is not a tool.
func (l apiListing) said() string {
	var b strings.Builder
	for _, h := range l.Hidden {
		fmt.Fprintln(&b, "hidden:", h.Name, h.Reason)
	}
	for _, d := range l.Diagnostics {
		fmt.Fprintln(&b, d.Severity, d.Message, d.Hint)
	}
	return b.String()
}

// writeFiles writes files, by paths relative to dir.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func listAPI(t *testing.T, cmd *exec.Cmd) (out apiListing) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A hostile document loses the operations that are hostile, or itself, with the reason.
// The other operations and the built-in tools are not affected, nothing outside the
// document's folder is read and no other server is contacted. What doubles at each level
// could not be read to its end.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	elsewhere := newRequestLog(t, nil)
	const good = `  /good: {get: {operationId: good, responses: {"200": {description: OK}}}}` + "\n"
	body := func(schema string) string {
		return `  /bad: {post: {operationId: bad, requestBody: {content: {application/json: {schema: ` + schema + `}}}, responses: {"200": {description: OK}}}}` + "\n"
	}
	document := func(paths, components string) string {
		return "openapi: 3.1.0\ninfo: {title: Evil, version: '1'}\npaths:\n" + good + paths + components
	}
	references := func(key string) string {
		var b strings.Builder
		b.WriteString("components:\n  schemas:\n")
		for i := range 60 {
			fmt.Fprintf(&b, "    A%d: {%s}\n", i, fmt.Sprintf(key, i+1, i+1))
		}
		b.WriteString("    A60: {type: string}\n")
		return b.String()
	}
	aliases := "x0: &x0 [a, a, a, a, a, a, a, a, a]\n"
	for i := range 12 {
		aliases += fmt.Sprintf("x%d: &x%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d, ", i), 9), ", "))
	}
	for _, tt := range []struct {
		name  string
		files map[string]string
		// what becomes of the operation bad: "tool", "quarantined", or "document" if the
		// whole document is lost
		bad  string
		says string
		size int64 // of the document, if not as written
	}{
		{"references that double at each level", map[string]string{"doc/api.yaml": document(body("{$ref: '#/components/schemas/A0'}"), references(`type: object, properties: {l: {$ref: '#/components/schemas/A%d'}, r: {$ref: '#/components/schemas/A%d'}}`))}, "tool", "", 0},
		{"combined references that double at each level", map[string]string{"doc/api.yaml": document(body("{$ref: '#/components/schemas/A0'}"), references(`allOf: [{$ref: '#/components/schemas/A%d'}, {$ref: '#/components/schemas/A%d'}]`))}, "", "", 0},
		{"a cycle of allOf", map[string]string{"doc/api.yaml": document(body("{$ref: '#/components/schemas/A'}"), "components: {schemas: {A: {allOf: [{$ref: '#/components/schemas/B'}]}, B: {allOf: [{$ref: '#/components/schemas/A'}]}}}\n")}, "", "", 0},
		{"a reference to itself", map[string]string{"doc/api.yaml": document(body("{$ref: '#/components/schemas/A'}"), "components: {schemas: {A: {$ref: '#/components/schemas/A'}}}\n")}, "quarantined", "api.yaml:", 0},
		{"a path that refers to itself", map[string]string{"doc/api.yaml": document("  /bad: {$ref: '#/paths/~1bad'}\n", "")}, "", "api.yaml:", 0},
		{"aliases that double at each level", map[string]string{"doc/api.yaml": aliases + document(body("{enum: *x12}"), "")}, "document", "alias", 0},
		{"100 MB", map[string]string{"doc/api.yaml": document("", "")}, "document", "limits.document", 100e6},
		{"a hundred thousand levels", map[string]string{"doc/api.yaml": `{"openapi":"3.1.0","x":` + strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5) + `}`}, "document", "api.yaml", 0},
		{"a reference to another host", map[string]string{"doc/api.yaml": document(body("{$ref: '"+elsewhere.URL+"/schema.json#/A'}"), "")}, "quarantined", "api.yaml:5", 0},
		{"a reference out of the folder", map[string]string{"outside.yaml": "A: {type: object, properties: {outside-secret: {type: string}}}\n", "doc/api.yaml": document(body("{$ref: '../outside.yaml#/A'}"), "")}, "quarantined", "api.yaml:5", 0},
		{"a reference to a link that leaves the folder", map[string]string{"outside.yaml": "A: {type: object, properties: {outside-secret: {type: string}}}\n", "doc/api.yaml": document(body("{$ref: 'link.yaml#/A'}"), "")}, "quarantined", "api.yaml:5", 0},
		{"a reference to an absolute path", map[string]string{"doc/api.yaml": document(body("{$ref: 'file:///etc/passwd#/A'}"), "")}, "quarantined", "api.yaml:5", 0},
		{"a path without a slash", map[string]string{"doc/api.yaml": document("  '@"+strings.TrimPrefix(elsewhere.URL, "http://")+"/bad': {get: {operationId: bad, responses: {}}}\n", "")}, "quarantined", "api.yaml:5", 0},
		{"a path that leaves the base", map[string]string{"doc/api.yaml": document("  /x/../../bad: {get: {operationId: bad, responses: {}}}\n", "")}, "quarantined", "api.yaml:5", 0},
		{"a path that is another host", map[string]string{"doc/api.yaml": document("  //"+strings.TrimPrefix(elsewhere.URL, "http://")+"/bad: {get: {operationId: bad, responses: {}}}\n", "")}, "", "", 0},
		{"operations that are no objects", map[string]string{"doc/api.yaml": document("  /bad: {get: [1], post: null, parameters: {a: 1}}\n  /worse: 7\n", "")}, "", "", 0},
		{"an expression too large to compile", map[string]string{"doc/api.yaml": document(body("{type: object, properties: {a: {type: string, pattern: '((a{1000}){1000}){1000}'}}}"), "")}, "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, command := inProject(t)
			writeFiles(t, dir, tt.files)
			writeFiles(t, dir, map[string]string{"s.yaml": "openapi:\n  evil: {spec: doc/api.yaml, baseUrl: '" + elsewhere.URL + "'}\n"})
			if err := os.Symlink("../outside.yaml", filepath.Join(dir, "doc", "link.yaml")); err != nil {
				t.Fatal(err)
			}
			if tt.size > 0 {
				if err := os.Truncate(filepath.Join(dir, "doc", "api.yaml"), tt.size); err != nil {
					t.Fatal(err)
				}
			}
			got := listAPI(t, command("--settings", "s.yaml", "list", "--all", "--json"))
			if !got.has("read_file") {
				t.Error("the built-in tools are gone")
			}
			if got.has("good") == (tt.bad == "document") {
				t.Errorf("good is a tool: %v\n%s", got.has("good"), got.said())
			}
			switch tt.bad {
			case "tool":
				if !got.has("bad") {
					t.Errorf("the operation is no tool\n%s", got.said())
				}
			case "quarantined", "document":
				if got.has("bad") {
					t.Error("the operation is a tool")
				}
			}
			said := strings.ReplaceAll(got.said(), dir, "")
			if !strings.Contains(said, tt.says) {
				t.Errorf("says %q, want %q in it", said, tt.says)
			}
			if tt.bad == "quarantined" && !strings.Contains(said, "hidden: bad ") {
				t.Errorf("it is not shown as hidden:\n%s", said)
			}
			if data, _ := json.Marshal(got); bytes.Contains(data, []byte("outside-secret")) {
				t.Error("a file outside the folder was read")
			}
		})
	}
	t.Cleanup(func() {
		if got := elsewhere.all(); len(got) > 0 {
			t.Errorf("a listing contacted a server: %q", got)
		}
	})
}

// Values that could change where or what a request is are refused, or encoded, and the
// headers that toolreg sets itself are never params.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	server := newRequestLog(t, nil)
	dir, command := inProject(t, "--settings", "s.yaml", "--yes")
	var headers strings.Builder
	for _, name := range []string{"Accept", "content-type", "Authorization", "HOST", "Cookie", "Content-Length", "Transfer-Encoding", "Connection", "X-Plain"} {
		fmt.Fprintf(&headers, "        - {name: %s, in: header, schema: {type: string}}\n", name)
	}
	writeFiles(t, dir, map[string]string{
		"s.yaml": "openapi:\n  evil: {spec: api.yaml, baseUrl: '" + server.URL + "/base'}\n",
		"api.yaml": `openapi: 3.0.0
info: {title: Evil, version: '1'}
servers: [{url: 'http://other.example'}]
paths:
  /things/{id}/end:
    servers: [{url: 'http://other.example'}]
    get:
      operationId: thing
      servers: [{url: 'http://other.example'}]
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: q, in: query, schema: {type: string}}
        - {name: c, in: cookie, schema: {type: string}}
` + headers.String() + `      responses: {"200": {description: OK}}
`})
	listed := listAPI(t, command("list", "thing", "--json"))
	for name := range listed.Tools[0].InputSchema.Properties {
		if !slices.Contains([]string{"id", "q", "c", "X-Plain"}, name) {
			t.Errorf("%s is a param", name)
		}
	}
	for _, tt := range []struct {
		params string
		line   string // of the request; empty if the call is refused
	}{
		{`{"id":"a"}`, "/base/things/a/end"},
		{`{"id":"a/b"}`, "/base/things/a%2Fb/end"},
		{`{"id":"a?b#c"}`, "/base/things/a%3Fb%23c/end"},
		{`{"id":"a\r\nb"}`, "/base/things/a%0D%0Ab/end"},
		{`{"id":"..."}`, "/base/things/.../end"},
		{`{"id":"a","q":"b&c=d\r\nX: e"}`, "/base/things/a/end?q=b%26c%3Dd%0D%0AX%3A%20e"},
		{`{"id":""}`, ""},
		{`{"id":"."}`, ""},
		{`{"id":".."}`, ""},
		{`{"id":"%2e%2E"}`, ""},
		{`{"id":".%2e"}`, ""},
		{`{"id":"%252e%252e"}`, ""},
		{`{"id":"../../x"}`, ""},
		{`{"id":"a","c":"b; d=e\r\nX-Evil: 1"}`, "/base/things/a/end"},
		{`{"id":"a","X-Plain":"b\r\nX-Evil: 1"}`, ""},
		{`{"id":"a","X-Plain":"b\nX-Evil: 1"}`, ""},
		{`{"id":"a","Authorization":"Bearer x"}`, ""},
	} {
		before := len(server.all())
		cmd := command("call", "thing", "--params", tt.params)
		out, err := cmd.CombinedOutput()
		sent := server.all()[before:]
		if tt.line == "" {
			if code := exitCode(err); code != 4 || len(sent) != 0 {
				t.Errorf("%s: exit code %d, requests %q\n%s", tt.params, code, sent, out)
			}
			continue
		}
		if err != nil || len(sent) != 1 {
			t.Errorf("%s: %v, requests %q\n%s", tt.params, err, sent, out)
			continue
		}
		line, rest, _ := strings.Cut(sent[0], "\r\n")
		if want := "GET " + tt.line + " HTTP/1.1"; strings.ReplaceAll(line, "+", "%20") != want {
			t.Errorf("%s: sent %q, want %q", tt.params, line, want)
		}
		if strings.Contains(rest, "\nX-Evil") || strings.Contains(rest, "; d=e") {
			t.Errorf("%s: sent %q", tt.params, sent[0])
		}
	}
}
