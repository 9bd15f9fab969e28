package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
