//lint:file-ignore SA1019 tests use features that a later revision deprecates, as today's servers do

package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// handle is the handler of a tool.
type handle func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error)

func (o *options) addTools(s *mcp.Server, quit exits) {
	add := func(name, description, schema string, h handle) {
		if text, err := os.ReadFile(o.description); err == nil {
			description = string(text)
		}
		s.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)},
			mcp.ToolHandler(h))
	}
	const echoSchema = `{"type":"object","properties":{"text":{"type":"string","description":"what to say"}},"required":["text"]}`
	switch {
	case o.tools > 0:
		for i := range o.tools {
			add(fmt.Sprintf("tool_%d", i+1), fmt.Sprintf("Generated tool %d.", i+1), echoSchema, with(echo))
		}
		return
	case o.names != "":
		for name := range strings.SplitSeq(o.names, ",") {
			add(name, "Echoes as "+name+".", echoSchema, with(echo))
		}
		return
	}
	add("echo", "Gives back its text.", echoSchema, with(echo))
	s.AddTool(&mcp.Tool{
		Name: "add", Description: "Adds two numbers.",
		InputSchema: json.RawMessage(
			`{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"number"}},"required":["a","b"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}`),
		Annotations:  &mcp.ToolAnnotations{Title: "Addition", ReadOnlyHint: true},
	}, mcp.ToolHandler(with(sum)))
	s.AddTool(&mcp.Tool{
		Name: "liar", Description: "Promises a sum and gives none.", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}`),
	}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "no sum"}},
			StructuredContent: json.RawMessage(`{"sum":"five"}`)}, nil
	})
	add("image", "Gives every kind of content.", `{"type":"object"}`, kinds)
	add("fail", "Fails.", `{"type":"object"}`,
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r := say("it went wrong")
			r.IsError = true
			return r, nil
		})
	add("slow", "Sleeps until it is cancelled or the seconds are over.",
		`{"type":"object","properties":{"seconds":{"type":"number"},"marker":{"type":"string","description":"file that gets the word cancelled"},"started":{"type":"string","description":"file that gets the word started"}}}`,
		with(slow, slowParams{Seconds: 30}))
	add("env", "Tells environment variables.",
		`{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"}}},"required":["names"]}`,
		with(environment))
	add("big", "Gives a text of many bytes.",
		`{"type":"object","properties":{"bytes":{"type":"integer"}},"required":["bytes"]}`, with(big))
	add("progress", "Tells of its progress.", `{"type":"object","properties":{"steps":{"type":"integer"}}}`,
		with(progress, struct{ Steps int }{3}))
	add("ask", "Asks the person for a name.", `{"type":"object"}`, ask)
	if o.roots {
		add("roots", "Asks for the roots, over HTTP on the stream that belongs to no call.", `{"type":"object"}`, roots)
	}
	add("crash", "Ends the server.", `{"type":"object"}`,
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			fmt.Fprintln(os.Stderr, "crashing as told")
			quit.with(3)
			<-ctx.Done()
			return nil, ctx.Err()
		})
}

func addExtras(s *mcp.Server) {
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	for _, uri := range []string{"test://one", "test://two"} {
		s.AddResource(&mcp.Resource{URI: uri, Name: uri},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{}, nil
			})
	}
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// with returns the handler that calls h with the params, in which defaults stand for those that
// are missing. Invalid params are a tool error.
func with[P any](h func(context.Context, *mcp.CallToolRequest, P) (*mcp.CallToolResult, error), defaults ...P) handle {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var p P
		if len(defaults) > 0 {
			p = defaults[0]
		}
		if err := json.Unmarshal(r.Params.Arguments, &p); err != nil {
			result := say("bad params: " + err.Error())
			result.IsError = true
			return result, nil
		}
		return h(ctx, r, p)
	}
}

func echo(_ context.Context, _ *mcp.CallToolRequest, p struct{ Text string }) (*mcp.CallToolResult, error) {
	return say(p.Text), nil
}

func sum(_ context.Context, _ *mcp.CallToolRequest, p struct{ A, B float64 }) (*mcp.CallToolResult, error) {
	text := fmt.Sprintf(`{"sum":%v}`, p.A+p.B)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}},
		StructuredContent: json.RawMessage(text)}, nil
}

func kinds(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Meta: mcp.Meta{"trace": "t1"}, Content: []mcp.Content{
		&mcp.TextContent{Text: "a picture"},
		&mcp.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x00IDATfake"), MIMEType: "image/png"},
		&mcp.AudioContent{Data: []byte("RIFF fake"), MIMEType: "audio/wav"},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://text",
			MIMEType: "text/plain", Text: "inside"}},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://blob",
			MIMEType: "application/octet-stream", Blob: []byte{0, 1, 2}}},
		&mcp.ResourceLink{URI: "https://example.com/x", Name: "x", Title: "X", MIMEType: "text/html"},
	}}, nil
}

type slowParams struct {
	Seconds         float64
	Marker, Started string
}

func slow(ctx context.Context, _ *mcp.CallToolRequest, p slowParams) (*mcp.CallToolResult, error) {
	if p.Started != "" {
		if err := appendLine(p.Started, "started"); err != nil {
			return nil, err
		}
	}
	select {
	case <-time.After(time.Duration(p.Seconds * float64(time.Second))):
		return say("slept"), nil
	case <-ctx.Done():
		if p.Marker != "" {
			if err := appendLine(p.Marker, "cancelled"); err != nil {
				return nil, err
			}
		}
		return nil, ctx.Err()
	}
}

func environment(_ context.Context, _ *mcp.CallToolRequest, p struct{ Names []string }) (*mcp.CallToolResult, error) {
	lines := make([]string, len(p.Names))
	for i, name := range p.Names {
		if value, ok := os.LookupEnv(name); ok {
			lines[i] = name + "=" + value
		} else {
			lines[i] = name + " is not set"
		}
	}
	return say(strings.Join(lines, "\n")), nil
}

func big(_ context.Context, _ *mcp.CallToolRequest, p struct{ Bytes int }) (*mcp.CallToolResult, error) {
	const line = "the quick brown fox jumps over the lazy dog, again and again, line by line...\n"
	return say(strings.Repeat(line, p.Bytes/len(line)+1)[:max(0, p.Bytes)]), nil
}

func progress(ctx context.Context, r *mcp.CallToolRequest, p struct{ Steps int }) (*mcp.CallToolResult, error) {
	if err := r.Session.Log(ctx,
		&mcp.LoggingMessageParams{Level: "info", Logger: "test", Data: "starting"}); err != nil {
		return nil, err
	}
	for i := range p.Steps {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1),
			Total: float64(p.Steps), Message: fmt.Sprintf("step %d", i+1),
		})
		if err != nil {
			return nil, err
		}
	}
	return say("done"), nil
}

func roots(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	// The context of the call would tie the question to its stream.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := r.Session.ListRoots(ctx, nil)
	if err != nil {
		return nil, err
	}
	return sayRoots(answer.Roots), nil
}

// ask works on every revision: the SDK asks older clients itself.
func ask(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer, ok := r.Params.InputResponses["who"].(*mcp.ElicitResult); ok {
		return say(fmt.Sprintf("%s %v", answer.Action, answer.Content["name"])), nil
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": &mcp.ElicitParams{
		Mode: "form", Message: "What is your name?",
		RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
	}}}, nil
}

// addTest adds a tool whose description says no more than its name. That of sampling has no side
// effects, so its results may be cached.
func addTest(s *mcp.Server, name, schema string, h handle) {
	tool := &mcp.Tool{Name: name, Description: "A test of " + name + ".", InputSchema: json.RawMessage(schema)}
	if name == "sample" {
		tool.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: true}
	}
	s.AddTool(tool, mcp.ToolHandler(h))
}

// addChanges adds tools that change what the server offers.
func addChanges(s *mcp.Server) {
	greet := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("hello"), nil }
	addTest(s, "grow", `{"type":"object","properties":{"tools":{"type":"array","items":{"type":"string"}}}}`,
		with(func(_ context.Context, _ *mcp.CallToolRequest, p struct{ Tools []string }) (*mcp.CallToolResult, error) {
			for _, name := range slices.Sorted(slices.Values(p.Tools)) {
				addTest(s, name, `{"type":"object"}`, greet)
			}
			return say("grown"), nil
		}))
	addTest(s, "touch", `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`,
		with(func(ctx context.Context, _ *mcp.CallToolRequest, p struct{ URI string }) (*mcp.CallToolResult, error) {
			return say("touched"), s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: p.URI})
		}))
}

// addOffers adds prompts and resources of every kind.
func (o *options) addOffers(s *mcp.Server) {
	s.AddPrompt(&mcp.Prompt{Name: "review", Title: "Code review",
		Description: "Reviews code.\nThoroughly.", Arguments: []*mcp.PromptArgument{
			{Name: "code", Description: "what to review", Required: true}, {Name: "style"},
		}}, review)
	s.AddPrompt(&mcp.Prompt{Name: "media", Description: "Has \x1b[31mcolour\x1b[0m and other content."}, media)
	s.AddPrompt(&mcp.Prompt{Name: "curious"}, curious)
	for _, r := range []*mcp.Resource{
		{URI: "test://docs/notes.txt", Name: "notes", Title: "Notes", Description: "Some notes.", MIMEType: "text/plain", Size: 12},
		{URI: "test://pixel.png", Name: "pixel", MIMEType: "image/png"},
		{URI: "test://both", Name: "both"},
		{URI: "test://nasty", Name: "nasty \x1b]0;x\x07", Description: "\u202eevil"},
		{URI: "test://../../etc/passwd", Name: "climber"},
		{URI: "test://slow", Name: "slow"},
	} {
		s.AddResource(r, o.readResource)
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: "test://item/{id}", Name: "item", Description: "An item by its number.",
		MIMEType: "application/json",
	},
		o.readResource)
}

func review(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	style := cmp.Or(r.Params.Arguments["style"], "plain")
	return &mcp.GetPromptResult{Description: "A review", Messages: []*mcp.PromptMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "Review this in " + style + " style:\n" + r.Params.Arguments["code"]}},
		{Role: "assistant", Content: &mcp.TextContent{Text: "Gladly."}},
	}}, nil
}

func media(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
		{Role: "user", Content: &mcp.ImageContent{Data: []byte("\x89PNG"), MIMEType: "image/png"}},
		{Role: "user", Content: &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://x", Text: "inside \x1b[2J"}}},
	}}, nil
}

// curious asks before it answers.
func curious(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	if answer, ok := r.Params.InputResponses["who"].(*mcp.ElicitResult); ok {
		return &mcp.GetPromptResult{
			Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: answer.Action}}},
		}, nil
	}
	return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"who": &mcp.ElicitParams{
		Mode: "form", Message: "May I?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	}}}, nil
}

func (o *options) readResource(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := r.Params.URI
	text := func(s string) *mcp.ResourceContents {
		return &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: s}
	}
	var contents []*mcp.ResourceContents
	switch uri {
	case "test://docs/notes.txt":
		contents = append(contents, text("first\nsecond"))
	case "test://pixel.png":
		contents = append(contents, &mcp.ResourceContents{URI: uri,
			MIMEType: "image/png", Blob: []byte("\x89PNG\x00\xff")})
	case "test://both":
		contents = append(contents, text("one"),
			&mcp.ResourceContents{URI: "test://both/two", MIMEType: "image/png", Blob: []byte{0xff}})
	case "test://nasty", "test://../../etc/passwd":
		contents = append(contents, text("clear\x1b[2Jed"))
	case "test://slow":
		if o.started != "" {
			if err := os.WriteFile(o.started, []byte("started"), 0o600); err != nil {
				return nil, err
			}
		}
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		id, ok := strings.CutPrefix(uri, "test://item/")
		if !ok || id == "0" {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		contents = append(contents, &mcp.ResourceContents{URI: uri,
			MIMEType: "application/json", Text: `{"id":` + id + `}`})
	}
	return &mcp.ReadResourceResult{Contents: contents}, nil
}
