package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/mcptest"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serve/offer"
	"github.com/toolreg/toolreg/internal/serve/question"
)

// newOffering is a server over HTTP whose resources and templates have its name as content.
func newOffering(t *testing.T, name string, uris ...string) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{SubscribeHandler: func(context.Context, *mcp.SubscribeRequest) error { return nil }, UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{name}}}, nil
		}})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: name}}}, nil
	}
	for _, uri := range uris {
		if strings.Contains(uri, "{") {
			server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: uri, Name: name}, read)
		} else {
			server.AddResource(&mcp.Resource{URI: uri, Name: name}, read)
		}
	}
	prompts := []string{"review"}
	if name == "a" { // which wants the name that is kept for b
		prompts = append(prompts, "b__review")
	}
	for _, prompt := range prompts {
		server.AddPrompt(&mcp.Prompt{Name: prompt}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: name + " " + prompt, Messages: []*mcp.PromptMessage{}}, nil
		})
	}
	endSessions(t, server)
	return serveUpstream(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}

// readAs reads a resource and returns its text, or the error.
func readAs(t *testing.T, c *mcp.ClientSession, uri string) string {
	t.Helper()
	r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return err.Error()
	}
	return r.Contents[0].Text
}

func connectTo(t *testing.T, endpoint, revision string) *mcp.ClientSession {
	t.Helper()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "reader", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A URI is read from the first server, in the order of the settings, whose resource or template it is,
// whatever exact URIs and templates later servers list. A client with a profile reads from the
// servers of its profile alone, and does not learn what others have.
func TestResourcesAreResolvedInTheView(t *testing.T) {
	from := newSession(t, map[string]string{
		"a": newOffering(t, "a", "good://{id}", "own://a", "both://x") + ";legacy",
		"b": newOffering(t, "b", "good://5", "good://{+x}", "both://x", "own://b") + ";legacy",
	})
	t.Cleanup(from.Close)
	all := func(ctx context.Context, s *engine.Session) (*registry.Registry, []engine.Found, error) {
		reg, err := s.Tools.All(ctx)
		return reg, nil, err
	}
	only := func(name string) offer.Profile {
		return offer.Profile{Name: name, Select: all, Tools: func(*registry.Tool) bool { return false }, Servers: func(server string) bool { return server == name }}
	}
	s := serverFrom(t, from, Options{Profiles: func(*engine.Session) offer.Profiles { return offer.Profiles{only("a"), only("b")} }})
	url := listen(t, s, nil).URL
	for profile, want := range map[string]map[string]string{
		"":   {"good://5": "a", "good://a/b": "b", "both://x": "a", "own://a": "a", "own://b": "b"},
		"/a": {"good://5": "a", "good://a/b": "not found", "both://x": "a", "own://a": "a", "own://b": "not found"},
		"/b": {"good://5": "b", "good://a/b": "b", "both://x": "b", "own://a": "not found", "own://b": "b"},
	} {
		for _, revision := range []string{"2025-11-25", wire.FirstModern} {
			c := connectTo(t, url+"/mcp"+profile, revision)
			for uri, want := range want {
				if got := readAs(t, c, uri); got != want && !(want == "not found" && strings.Contains(got, "not found")) {
					t.Errorf("profile %q, %s: %s is read from %q, want %q", profile, revision, uri, got, want)
				}
				if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); revision != wire.FirstModern && (err == nil) == (want == "not found") {
					t.Errorf("profile %q: subscribing to %s: %v", profile, uri, err)
				}
			}
			absent, other := readAs(t, c, "own://none"), readAs(t, c, map[string]string{"": "own://none", "/a": "own://b", "/b": "own://a"}[profile])
			if hidden := strings.NewReplacer("own://a", "own://none", "own://b", "own://none").Replace(other); hidden != absent {
				t.Errorf("profile %q: what only others have is answered by %q, not by %q", profile, other, absent)
			}
			listed, err := c.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range listed.Resources {
				if want := want[r.URI]; r.Name != want {
					t.Errorf("profile %q: %s is listed from %q, want %q", profile, r.URI, r.Name, want)
				}
			}
			done, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "good://{id}"}, Argument: mcp.CompleteParamsArgument{Name: "id"}})
			if completes := err == nil && len(done.Completion.Values) > 0; completes != (profile != "/b") {
				t.Errorf("profile %q: completion of a template: %v, %v", profile, done, err)
			}
			if got, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "b__review"}); (err == nil && got.Description == "b review") != (profile != "/a") {
				t.Errorf("profile %q: a prompt: %+v, %v", profile, got, err)
			}
		}
	}
}

// A server that takes more for a URI of its template than RFC 6570 does is asked for it, unless it is one of
// another template by the standard.
func TestTemplatesAreReadAsServersDo(t *testing.T) {
	own := func(name string, templates ...string) string {
		server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
		server.AddResource(&mcp.Resource{URI: "own://" + name, Name: name}, nil)
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
				switch params := r.GetParams().(type) {
				case *mcp.ReadResourceParams:
					return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: params.URI, Text: name}}}, nil
				case *mcp.ListResourceTemplatesParams:
					list := &mcp.ListResourceTemplatesResult{}
					for _, template := range templates {
						list.ResourceTemplates = append(list.ResourceTemplates, &mcp.ResourceTemplate{URITemplate: template, Name: template})
					}
					return list, nil
				}
				return next(ctx, method, r)
			}
		})
		endSessions(t, server)
		return serveUpstream(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)) + ";legacy"
	}
	from := newSession(t, map[string]string{
		"a": own("a", "repo://{owner}/{file*}", "user://{user-id}", "city://{name}/now", "odd://{", "odd://{}", "x://{v}{?q}"),
		"b": own("b", "repo://b/src/{name}"),
	})
	t.Cleanup(from.Close)
	c := connectTo(t, listen(t, serverFrom(t, from, Options{}), nil).URL+"/mcp", "2025-11-25")
	for uri, want := range map[string]string{
		"repo://a/src/main.py": "a", "repo://b/src/x": "b", "repo://b/src/x/y": "a", "user://me@example.com": "a",
		"city://New York/now": "a", "city://Zürich/now": "a", "city://a/b/now": "not found", "repo://a": "not found",
		"odd://{": "not found", "x://1?q=it's": "a", "other://repo://a/b": "not found",
	} {
		if got := readAs(t, c, uri); got != want && !(want == "not found" && strings.Contains(got, "not found")) {
			t.Errorf("%s is read from %q, want %q", uri, got, want)
		}
	}
}

// A resource, a template or a prompt stays with the server that had it first, also if an earlier
// server in the settings comes to list it, and while its server is away.
func TestResourcesStayWithTheirServer(t *testing.T) {
	evil := newOffering(t, "a", "x://1", "x://{id}", "y://1")
	good := newOffering(t, "b", "x://1", "y://{id}")
	gone := serveUpstream(t, http.NotFoundHandler())
	s := newServer(t, map[string]string{"b": good + ";legacy"})
	dir := t.TempDir()
	load := func(a, b string) *mcp.ClientSession {
		t.Helper()
		from := newSessionIn(t, dir, question.Asker{}, map[string]string{"a": a + ";legacy", "b": b + ";legacy"})
		t.Cleanup(from.Close)
		if err := s.Load(t.Context(), from); err != nil {
			t.Fatal(err)
		}
		c, _, _ := newFollower(t, listen(t, s, nil).URL, "2025-11-25")
		return c
	}
	const away = `belongs to server "b", which could not list its resources`
	for i, tt := range []struct {
		a, b string
		want map[string]string
	}{
		{gone, good, map[string]string{"x://1": "b", "y://1": "b"}},
		{evil, good, map[string]string{"x://1": "b", "x://2": "a", "y://1": "b"}},
		{evil, gone, map[string]string{"x://1": away, "x://2": "a", "y://1": away, "y://2": away}},
	} {
		c := load(tt.a, tt.b)
		for uri, want := range tt.want {
			if got := readAs(t, c, uri); !strings.Contains(got, want) {
				t.Errorf("%d: %s is read from %q, want %q", i, uri, got, want)
			}
		}
		if r, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "review"}); tt.b == good && (err != nil || r.Description != "b review") || tt.b != good && err == nil {
			t.Errorf("%d: the prompt: %v, %v", i, r, err)
		}
	}
}

// The client learns why a request to a server over HTTP failed; for a tool call, from the
// result.
func TestFailuresOfServersAreExplained(t *testing.T) {
	handler, err := mcptest.Handler("--protocol", "2025-11-25", "--offers")
	if err != nil {
		t.Fatal(err)
	}
	url := serveUpstream(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var m struct{ Method string }
		_ = json.Unmarshal(body, &m)
		if slices.Contains([]string{"tools/call", "prompts/get", "resources/read"}, m.Method) {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	s := newServer(t, map[string]string{"m": url + ";legacy"})
	c, _, _ := newFollower(t, listen(t, s, nil).URL, "2025-11-25")
	const want = "503 Service Unavailable: out of order"
	if r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "m__echo", Arguments: map[string]any{"text": "x"}}); err != nil || !r.IsError || !strings.Contains(textOf(r), want) {
		t.Errorf("a call: %v, %v", r, err)
	}
	prompts, err := c.ListPrompts(t.Context(), nil)
	if err != nil || len(prompts.Prompts) == 0 {
		t.Fatal(err)
	}
	if _, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompts.Prompts[0].Name}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a prompt: %v", err)
	}
	resources, err := c.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) == 0 {
		t.Fatal(err)
	}
	if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resources.Resources[0].URI}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a resource: %v", err)
	}
	done, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: prompts.Prompts[0].Name}, Argument: mcp.CompleteParamsArgument{Name: "a"}})
	if err != nil || done == nil {
		t.Errorf("completion: %v", err)
	}
}

// Contents that lack their URI or type have those of what was read, and an empty text is one.
func TestContentsOf(t *testing.T) {
	sent := mcpclient.Reading{Contents: []registry.Content{
		{Text: "a"},
		{URI: "b:", MIMEType: "text/html", ResourceMeta: json.RawMessage(`{"n":1}`)},
		{URI: "c:", MIMEType: "image/png", Data: []byte{0xfb, 0xff}},
	}}
	data, err := json.Marshal(contentsOf(sent, "a:", "text/plain").Contents)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"uri":"a:","mimeType":"text/plain","text":"a"},{"uri":"b:","mimeType":"text/html","text":"","_meta":{"n":1}},{"uri":"c:","mimeType":"image/png","blob":"+/8="}]`
	if string(data) != want {
		t.Errorf("%s, want %s", data, want)
	}
	if data, err := json.Marshal(contentsOf(mcpclient.Reading{}, "a:", "").Contents); err != nil || string(data) != "[]" {
		t.Errorf("no contents: %s, %v", data, err)
	}
}
