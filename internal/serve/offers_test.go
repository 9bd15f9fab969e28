package serve

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcptest"
)

// Only changed prompts and resources are registered again, because clients are notified
// of each.
func TestUnchangedOffersAreNotRegisteredAgain(t *testing.T) {
	of := func(description string) offers {
		o := offers{prompts: map[string]*prompt{}, resources: map[string]*resource{}}
		for _, server := range []string{"a", "b"} {
			o.addPrompt(nil, mcpclient.Prompt{Server: server, Name: "greet", Description: description})
		}
		o.addPrompt(nil, mcpclient.Prompt{Server: "a", Name: "other"})
		addResource(o.resources, "x://a", &resource{is: &mcp.Resource{URI: "x://a", Description: description}}, nil)
		return o
	}
	for _, tt := range []struct {
		name, now          string
		prompts, resources int
	}{{"the same", "one", 0, 0}, {"another description", "two", 2, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			before, now := of("one"), of(tt.now)
			if n := len(changed(declared(before.prompts), declared(now.prompts), seenOfPrompt)); n != tt.prompts {
				t.Errorf("%d prompts", n)
			}
			if n := len(changed(before.resources, now.resources, seenOfResource)); n != tt.resources {
				t.Errorf("%d resources", n)
			}
		})
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
