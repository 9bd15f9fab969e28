package mcpclient

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

func TestPromptsAndResources(t *testing.T) {
	everyWay(t, func(t *testing.T, server settings.Server) {
		s := source(t, server, func(o *Options) {
			o.Elicit = func(context.Context, ask.Elicitation) (ask.Answer, error) { return ask.Answer{Action: "accept"}, nil }
		})
		prompts, diags, err := s.Prompts(t.Context())
		want := []Prompt{{Server: "test", Name: "curious"}, {Server: "test", Name: "media", Description: "Has \x1b[31mcolour\x1b[0m and other content."},
			{Server: "test", Name: "review", Title: "Code review", Description: "Reviews code.\nThoroughly.", Arguments: []PromptArgument{
				{Name: "code", Description: "what to review", Required: true}, {Name: "style"},
			}}}
		if diff := cmp.Diff(want, prompts); diff != "" || err != nil || len(diags) > 0 {
			t.Errorf("prompts %s, %v, %v", diff, diags, err)
		}
		resources, templates, diags, err := s.Resources(t.Context())
		if len(resources) != 6 || len(templates) != 1 || templates[0].URITemplate != "test://item/{id}" || err != nil || len(diags) > 0 {
			t.Errorf("resources %+v, templates %+v, %v, %v", resources, templates, diags, err)
		}
		both, err := s.ReadResource(t.Context(), "test://both", nil)
		if err != nil || len(both.Contents) != 2 || both.Contents[0].Text != "one" || string(both.Contents[1].Data) != "\xff" {
			t.Errorf("both: %+v, %v", both, err)
		}
		_, err = s.ReadResource(t.Context(), "test://nowhere", nil)
		var refused *RefusedError
		if !errors.As(err, &refused) || !refused.Missing() {
			t.Errorf("nowhere: %v", err)
		}
		filled, err := s.GetPrompt(t.Context(), "review", map[string]string{"code": "x"}, nil)
		if err != nil || len(filled.Messages) != 2 || filled.Messages[0].Content.Text != "Review this in plain style:\nx" || filled.Messages[1].Role != "assistant" {
			t.Errorf("review: %+v, %v", filled, err)
		}
		filled, err = s.GetPrompt(t.Context(), "curious", nil, nil)
		if err != nil || len(filled.Messages) != 1 || filled.Messages[0].Content.Text != "accept" {
			t.Errorf("curious: %+v, %v", filled, err)
		}
	}, "--offers", "--page-size", "2")
}

func TestServerWithoutOffers(t *testing.T) {
	s := source(t, stdioServer(t))
	if list, diags, err := s.Prompts(t.Context()); len(list) > 0 || err != nil || len(diags) != 1 || diags[0].Code != "not_offered" {
		t.Errorf("%v, %v, %v", list, diags, err)
	}
	var none *NotOfferedError
	if _, err := s.ReadResource(t.Context(), "test://x", nil); !errors.As(err, &none) || err.Error() != `server "test" offers no resources` {
		t.Errorf("%v", err)
	}
}

// TestMalformedOffers checks that each item without a name is left out by itself, that other members of another type
// count as missing, and that a malformed answer is an error that names the request.
func TestMalformedOffers(t *testing.T) {
	hands := step{On: "initialize", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"prompts":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}}`}}
	reply := func(method, result string) step {
		return step{On: method, Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":` + result + `}`}}
	}
	s := source(t, scripted(t, refuseProbe, hands,
		reply("prompts/list", `{"prompts":[{"name":"good"},{"name":5},{},null,[],{"name":"odd","arguments":{}}]}`),
		reply("resources/list", `{"resources":[{"uri":"a:b","size":1.5,"name":"b"},{"uri":"a:c","annotations":[],"_meta":[],"icons":{}},{"name":"x"}]}`),
		step{On: "resources/templates/list", Print: []string{`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}}`}},
		reply("resources/read", `{"contents":[{"uri":"a:c","blob":"!!"}]}`),
		step{On: "prompts/get", With: `"odd"`, Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"messages":[{"role":"system","content":"Be brief."},{"role":"assistant","content":{"type":"text","text":"Yes."}}]}}`}},
		reply("prompts/get", `{"messages":"none"}`)))
	prompts, diags, err := s.Prompts(t.Context())
	if len(prompts) != 2 || prompts[0].Name != "good" || prompts[1].Name != "odd" || len(diags) != 4 || err != nil {
		t.Errorf("%v, %d diagnostics, %v", prompts, len(diags), err)
	}
	resources, templates, diags, err := s.Resources(t.Context())
	want := []Resource{{Server: "test", URI: "a:b", Name: "b"}, {Server: "test", URI: "a:c"}}
	if diff := cmp.Diff(want, resources); diff != "" || len(templates) != 0 || len(diags) != 1 || err != nil {
		t.Errorf("%s, %v, %v, %v", diff, templates, diags, err)
	}
	if _, err := s.ReadResource(t.Context(), "a:c", nil); err == nil || !strings.Contains(err.Error(), "resources/read: content 1 is neither text nor base64") {
		t.Errorf("read: %v", err)
	}
	if _, err := s.GetPrompt(t.Context(), "good", nil, nil); err == nil || !strings.Contains(err.Error(), `prompts/get: its answer has no list "messages"`) {
		t.Errorf("get: %v", err)
	}
	got, err := s.GetPrompt(t.Context(), "odd", nil, nil)
	messages := []Message{{Role: "user", Content: registry.TextContent("Be brief.")}, {Role: "assistant", Content: registry.TextContent("Yes.")}}
	if diff := cmp.Diff(messages, got.Messages); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A prompt without arguments is asked for with an empty object, without which servers refuse the request that
// validate the arguments as those of a tool.
func TestPromptWithoutArguments(t *testing.T) {
	initialize := step{On: "initialize", Print: []string{
		`{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"prompts":{}}}}`}}
	get := step{On: "prompts/get", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"description":"x","messages":[{"role":"user","content":{"type":"text","text":"got","_meta":$PARAMS}}]}}`}}
	s := source(t, scripted(t, refuseProbe, initialize, get))
	for _, arguments := range []map[string]string{nil, {}} {
		p, err := s.GetPrompt(t.Context(), "p", arguments, nil)
		if err != nil || len(p.Messages) != 1 {
			t.Fatalf("%+v, %v", p, err)
		}
		if got := string(jsonx.Get(p.Messages[0].Content.Meta, "arguments")); got != "{}" {
			t.Errorf("the server gets the arguments %s", got)
		}
	}
}
