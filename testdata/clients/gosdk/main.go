// Gosdk does with toolreg what testdata/npm/client.mjs does, through the Go SDK's
// client: gosdk FEATURES REVISION stdio COMMAND ARGUMENT… or http URL TOKEN.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// client is a session with what it was asked and told.
type client struct {
	*mcp.ClientSession
	file     string // which it has written, unlike that of any other client
	answer   mcp.ElicitResult
	asked    []string
	progress chan string
	changed  chan struct{}
}

func run(ctx context.Context, args []string) error {
	features, revision, transport, where := args[0], args[1], args[2], args[3:]
	c := &client{file: "go-" + revision + "-" + transport + ".txt", progress: make(chan string, 1000), changed: make(chan struct{}, 10)}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			c.asked = append(c.asked, r.Params.Message)
			return &c.answer, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.progress <- r.Params.Message
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.changed <- struct{}{} },
	})
	var over mcp.Transport = &mcp.StreamableClientTransport{Endpoint: where[0], HTTPClient: &http.Client{Transport: bearer(where[len(where)-1])}}
	if transport == "stdio" {
		command := exec.CommandContext(ctx, where[0], where[1:]...)
		command.Stderr = os.Stderr
		over = &mcp.CommandTransport{Command: command}
	}
	var err error
	if c.ClientSession, err = sdk.Connect(ctx, over, &mcp.ClientSessionOptions{ProtocolVersion: revision}); err != nil {
		return err
	}
	defer c.Close()
	do := map[string]func(context.Context, string) error{
		"list": c.list, "call": c.call, "asked": c.ask, "cancel": c.cancel, "progress": c.follow, "changed": c.change,
	}
	for feature := range strings.SplitSeq(features, ",") {
		name, arg, _ := strings.Cut(feature, ":")
		if err := do[name](ctx, arg); err != nil {
			fmt.Println("failed", name, err)
			continue
		}
		fmt.Println("ok", name)
	}
	return nil
}

type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// text calls a tool and returns the text of its result.
func (c *client) text(ctx context.Context, name string, arguments any) (string, error) {
	params := &mcp.CallToolParams{Name: name, Arguments: arguments}
	params.SetProgressToken(name)
	r, err := c.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if r.IsError {
		out.WriteString("error: ")
	}
	for _, part := range r.Content {
		if t, ok := part.(*mcp.TextContent); ok {
			out.WriteString(t.Text)
		}
	}
	return out.String(), nil
}

// want returns an error unless a call has the wanted text.
func (c *client) want(ctx context.Context, text, name string, arguments any) error {
	switch got, err := c.text(ctx, name, arguments); {
	case err != nil:
		return err
	case !strings.HasPrefix(got, text):
		return fmt.Errorf("%s: %q", name, got)
	}
	return nil
}

func (c *client) has(ctx context.Context, names ...string) error {
	found := map[string]bool{}
	for tool, err := range c.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		found[tool.Name] = true
	}
	for _, name := range names {
		if !found[name] {
			return fmt.Errorf("there is no tool %s", name)
		}
	}
	return nil
}

func (c *client) list(ctx context.Context, _ string) error {
	return c.has(ctx, "read_file", "echo", "form")
}

func (c *client) call(ctx context.Context, _ string) error {
	return errors.Join(c.want(ctx, "hello", "echo", map[string]any{"text": "hello"}), c.want(ctx, "error: ", "read_file", map[string]any{"path": 5}))
}

func (c *client) ask(ctx context.Context, _ string) error {
	write := map[string]any{"file_path": c.file, "content": "x"}
	c.answer = mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "yes"}}
	if err := c.want(ctx, "Created", "write_file", write); err != nil {
		return err
	}
	if err := os.Remove(c.file); err != nil || !slices.ContainsFunc(c.asked, func(m string) bool { return strings.Contains(m, c.file) }) {
		return fmt.Errorf("asked %q, %w", c.asked, err)
	}
	c.answer = mcp.ElicitResult{Action: "decline"}
	if err := c.want(ctx, "error: ", "write_file", write); err != nil {
		return err
	}
	c.answer = mcp.ElicitResult{Action: "accept", Content: map[string]any{"who": "me"}}
	return c.want(ctx, `accept {"who":"me"}`, "form", map[string]any{"schema": json.RawMessage(`{"type":"object","properties":{"who":{"type":"string"}}}`)})
}

func (c *client) cancel(ctx context.Context, _ string) error {
	until, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	go func() {
		<-c.progress
		stop()
	}()
	if _, err := c.text(until, "work", map[string]any{"steps": 100000, "pause": 20}); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the call ended with %w", err)
	}
	return c.want(ctx, "hello", "echo", map[string]any{"text": "hello"})
}

func (c *client) follow(ctx context.Context, _ string) error {
	if err := c.want(ctx, "", "work", map[string]any{"steps": 3, "message": "my step"}); err != nil {
		return err
	}
	for seen := 0; seen < 3; {
		select {
		case message := <-c.progress: // some may be of the canceled call
			if strings.Contains(message, "my step") {
				seen++
			}
		case <-time.After(10 * time.Second):
			return fmt.Errorf("progress came %d times", seen)
		}
	}
	return nil
}

func (c *client) change(ctx context.Context, file string) error {
	settings, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(settings, "excludeTools: [echo]\n"...), 0o600)
	}
	if err != nil {
		return err
	}
	for c.has(ctx, "echo") == nil {
		select {
		case <-c.changed: // one may be left from the start
		case <-time.After(30 * time.Second):
			return errors.New("no notification within 30 s")
		}
	}
	return nil
}
