package main

import (
	"context"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Clients of older and newer protocol revisions work through the proxies: questions,
// progress and changes arrive while a call or a stream is still open.
func TestClientsWorkThroughProxies(t *testing.T) {
	t.Parallel()
	for file, command := range map[string][]string{"haproxy.cfg": {"haproxy", "-db", "-f", "haproxy.cfg"}, "nginx.conf": {"nginx", "-p", ".", "-e", "stderr", "-c", "whole.conf"}} {
		t.Run(file, func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skip(err)
			}
			r := &replicas{dir: t.TempDir()}
			r.write(t, file, string(r.example(t, file)))
			r.write(t, "whole.conf", "daemon off; master_process off; pid nginx.pid; error_log stderr; events {}\nhttp { access_log off; include nginx.conf; }\n")
			r.write(t, "tokens", "alice "+replicaToken+"\n")
			settings := func(args string) {
				r.write(t, "settings.json", `{"mcpServers": {"m": {"command": "mcp-testserver", "args": [`+args+`], "inheritEnv": true, "trust": true}}}`)
			}
			settings("")
			r.startProxy(t, command...)
			for _, port := range r.ports[1:] {
				r.start(t, port)
			}
			if !waitFor(func() bool { return answers("http://127.0.0.1:" + r.ports[0] + "/mcp") }, nil) {
				t.Fatal("the proxy reaches no replica")
			}
			older, modern := r.connect(t, "2025-11-25"), r.connect(t, "2026-07-28")
			for range 6 { // more calls than replicas
				if text, err := older.call("m__ask", nil); err != nil || !strings.Contains(text, "plum") {
					t.Errorf("a question: %q, %v", text, err)
				}
				if text, err := modern.call("m__echo", map[string]any{"text": "hello"}); err != nil || text != "hello" {
					t.Errorf("a call: %q, %v", text, err)
				}
			}
			for _, c := range []*proxied{older, modern} {
				if text, err := c.call("m__progress", map[string]any{"steps": 2}); err != nil || !waitFor(func() bool { return len(c.progress) >= 2 }, nil) {
					t.Errorf("%d reports of progress, %q, %v", len(c.progress), text, err)
				}
			}
			for _, c := range []*proxied{older, modern} {
				for len(c.changed) > 0 { // discard earlier changes
					<-c.changed
				}
			}
			settings(`"--names", "other"`)
			for _, c := range []*proxied{older, modern} {
				if !waitFor(func() bool { return len(c.changed) > 0 }, nil) {
					t.Errorf("a change of the tools did not arrive at a client of %s", c.session.InitializeResult().ProtocolVersion)
				}
			}
		})
	}
}

// answers reports whether a replica answers, even if it refuses the request. A proxy
// without a working replica answers 502 or 503 itself.
func answers(url string) bool {
	resp, err := http.Get(url)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode < 500
}

// proxied is a client on the other side of a proxy.
type proxied struct {
	session                    *mcp.ClientSession
	progress, changed, updated chan struct{}
}

func (r *replicas) connect(t *testing.T, revision string) *proxied {
	t.Helper()
	c := &proxied{progress: make(chan struct{}, 100), changed: make(chan struct{}, 100), updated: make(chan struct{}, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: "proxied", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "plum"}}, nil
		},
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { c.progress <- struct{}{} },
		ResourceUpdatedHandler:      func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { c.updated <- struct{}{} },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { c.changed <- struct{}{} },
	})
	var err error
	c.session, err = client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: "http://127.0.0.1:" + r.ports[0] + "/mcp", HTTPClient: &http.Client{Transport: bearer(replicaToken)}},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.session.Close() })
	return c
}

func (c *proxied) call(name string, params any) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p := &mcp.CallToolParams{Name: name, Arguments: params}
	p.SetProgressToken(name)
	result, err := c.session.CallTool(ctx, p)
	if err != nil {
		return "", err
	}
	text, _ := result.Content[0].(*mcp.TextContent)
	return text.Text, nil
}
