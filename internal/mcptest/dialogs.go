//lint:file-ignore SA1019 tests use features that a later revision deprecates, as today's servers do

package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// everyField is a form with every kind of field that the protocol has.
const everyField = `{"type":"object","properties":{
"name":{"type":"string","title":"Full name","description":"As in the passport","minLength":2,"maxLength":40},
"mail":{"type":"string","format":"email"},
"born":{"type":"string","format":"date"},
"age":{"type":"integer","minimum":0,"maximum":150,"default":30},
"ratio":{"type":"number"},
"news":{"type":"boolean","title":"Newsletter","default":false},
"color":{"type":"string","enum":["red","green","blue"],"default":"green"},
"size":{"type":"string","enum":["s","m"],"enumNames":["Small","Medium"]},
"level":{"type":"string","oneOf":[{"const":"lo","title":"Low"},{"const":"hi","title":"High"}]},
"days":{"type":"array","title":"Days","minItems":1,"maxItems":2,"items":{"type":"string","enum":["mon","tue","wed"]}},
"toys":{"type":"array","items":{"anyOf":[{"const":"b","title":"Ball"},{"const":"k","title":"Kite"}]},"default":["k"]}
},"required":["name","age","level","days"]}`

// addDialogs adds tools that ask, log and report progress.
func (o *options) addDialogs(s *mcp.Server) {
	add := func(name, schema string, h handle) { addTest(s, name, schema, h) }
	const object = `{"type":"object"}`
	add("form", `{"type":"object","properties":{"message":{"type":"string"},"schema":{"type":"object"}}}`,
		with(askForm, formParams{Message: "Tell me about yourself.", Schema: json.RawMessage(everyField)}))
	add("open", `{"type":"object","properties":{"url":{"type":"string"},"message":{"type":"string"}},"required":["url"]}`,
		with(askURL, urlParams{Message: "Please sign in."}))
	add("visit",
		`{"type":"object","properties":{"url":{"type":"string"},"complete":{"type":"boolean"}},"required":["url"]}`,
		visitFirst())
	add("rounds", `{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}`, with(askRounds))
	add("crowd", `{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}`, with(askAtOnce))
	add("chatty", object, chatty)
	add("sample",
		`{"type":"object","properties":{"prompt":{"type":"string"},"count":{"type":"integer"},"tools":{"type":"boolean"}},"required":["prompt"]}`,
		with(askModel, sampleParams{Count: 1}))
	add("roots", object, askRoots)
	add("log", `{"type":"object","properties":{"level":{"type":"string"},"text":{"type":"string"},"count":{"type":"integer"}}}`,
		with(logTool, logParams{Level: "warning", Text: "watch out", Count: 1}))
	add("work",
		`{"type":"object","properties":{"steps":{"type":"integer"},"pause":{"type":"integer","description":"milliseconds"},"message":{"type":"string"}}}`,
		with(work, workParams{Steps: 4, Pause: 150, Message: "working"}))
	add("mirror", `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`,
		with(mirror))
}

// input sends one input request on any revision: the SDK asks older clients
// itself.
func input(r *mcp.CallToolRequest, request mcp.InputRequest) (mcp.InputResponse, *mcp.CallToolResult) {
	if answer, ok := r.Params.InputResponses["it"]; ok {
		return answer, nil
	}
	return nil, &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"it": request}}
}

type formParams struct {
	Message string
	Schema  json.RawMessage
}

func askForm(_ context.Context, r *mcp.CallToolRequest, p formParams) (*mcp.CallToolResult, error) {
	answer, ask := input(r, &mcp.ElicitParams{Mode: "form", Message: p.Message, RequestedSchema: p.Schema})
	if ask != nil {
		return ask, nil
	}
	return sayAnswer(answer)
}

func sayAnswer(answer mcp.InputResponse) (*mcp.CallToolResult, error) {
	e, ok := answer.(*mcp.ElicitResult)
	if !ok {
		return nil, fmt.Errorf("an answer of type %T", answer)
	}
	content, err := json.Marshal(e.Content)
	return say(e.Action + " " + string(content)), err
}

type urlParams struct{ URL, Message string }

func askURL(_ context.Context, r *mcp.CallToolRequest, p urlParams) (*mcp.CallToolResult, error) {
	answer, ask := input(r, &mcp.ElicitParams{Mode: "url", Message: p.Message, URL: p.URL, ElicitationID: "e1"})
	if ask != nil {
		return ask, nil
	}
	return sayAnswer(answer)
}

// visitFirst refuses the first call until an address was visited.
func visitFirst() handle {
	type params struct {
		URL      string
		Complete bool
	}
	visited := false
	return with(func(ctx context.Context, r *mcp.CallToolRequest, p params) (*mcp.CallToolResult, error) {
		if visited {
			return say("welcome"), nil
		}
		visited = true
		if p.Complete {
			session := r.Session
			time.AfterFunc(300*time.Millisecond, func() {
				_ = session.NotifyElicitationComplete(context.WithoutCancel(ctx),
					&mcp.ElicitationCompleteParams{ElicitationID: "v1"})
			})
		}
		return nil, mcp.URLElicitationRequiredError([]*mcp.ElicitParams{{Mode: "url",
			Message: "Sign in first.", URL: p.URL, ElicitationID: "v1"}})
	})
}

// askRounds asks count times, one after the other.
func askRounds(ctx context.Context, r *mcp.CallToolRequest, p struct{ Count int }) (*mcp.CallToolResult, error) {
	question := func(n int) *mcp.ElicitParams {
		return &mcp.ElicitParams{
			Mode: "form", Message: fmt.Sprintf("Question %d of %d", n, p.Count),
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
		}
	}
	if r.Session.InitializeParams().ProtocolVersion >= firstModern {
		n, _ := strconv.Atoi(r.Params.RequestState)
		if n >= p.Count {
			return say(fmt.Sprintf("asked %d times", n)), nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"it": question(n + 1)},
			RequestState: strconv.Itoa(n + 1)}, nil
	}
	accepted := 0
	for n := range p.Count {
		answer, err := r.Session.Elicit(ctx, question(n+1))
		if err != nil {
			return nil, err
		}
		if answer.Action == "accept" {
			accepted++
		}
	}
	return say(fmt.Sprintf("accepted %d of %d", accepted, p.Count)), nil
}

// askAtOnce asks count times without waiting for answers in between; it works up
// to revision 2025-11-25.
func askAtOnce(ctx context.Context, r *mcp.CallToolRequest, p struct{ Count int }) (*mcp.CallToolResult, error) {
	answers := make(chan string, p.Count)
	for range p.Count {
		go func() {
			answer, err := r.Session.Elicit(ctx,
				&mcp.ElicitParams{Mode: "form", Message: "At once?",
					RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
			if err != nil {
				answers <- "error"
				return
			}
			answers <- answer.Action
		}()
	}
	counts := map[string]int{}
	for range p.Count {
		counts[<-answers]++
	}
	return say(fmt.Sprintf("%d answers", counts["accept"]+counts["decline"]+counts["error"])), nil
}

// chatty logs while its question is open, for revisions up to 2025-11-25.
func chatty(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answered := make(chan error, 1)
	go func() {
		_, err := r.Session.Elicit(ctx,
			&mcp.ElicitParams{Mode: "form", Message: "Well?",
				RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
		answered <- err
	}()
	tick := time.Tick(time.Millisecond)
	for {
		select {
		case err := <-answered:
			return say("answered"), err
		case <-tick:
			if err := r.Session.Log(ctx,
				&mcp.LoggingMessageParams{Level: "warning", Data: "still waiting"}); err != nil {
				return nil, err
			}
		}
	}
}

type sampleParams struct {
	Prompt string
	Count  int
	Tools  bool
}

func askModel(ctx context.Context, r *mcp.CallToolRequest, p sampleParams) (*mcp.CallToolResult, error) {
	params := &mcp.CreateMessageWithToolsParams{MaxTokens: 100, SystemPrompt: "Be brief.",
		Messages: []*mcp.SamplingMessageV2{{Role: "user", Content: []mcp.Content{&mcp.TextContent{Text: p.Prompt}}}}}
	if p.Tools {
		params.Tools = []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	}
	if p.Count == 1 && !p.Tools {
		answer, ask := input(r, params)
		if ask != nil {
			return ask, nil
		}
		return sayMessage(answer)
	}
	var out []string
	for range p.Count {
		text := ""
		answer, err := r.Session.CreateMessageWithTools(ctx, params)
		if err != nil {
			text = err.Error()
		} else if t, ok := answer.Content[0].(*mcp.TextContent); ok {
			text = t.Text
		}
		out = append(out, text)
	}
	return say(strings.Join(out, "\n")), nil
}

func sayMessage(answer mcp.InputResponse) (*mcp.CallToolResult, error) {
	var content []mcp.Content
	var model string
	switch m := answer.(type) {
	case *mcp.CreateMessageResult:
		content, model = []mcp.Content{m.Content}, m.Model
	case *mcp.CreateMessageWithToolsResult:
		content, model = m.Content, m.Model
	}
	if len(content) == 0 {
		return nil, fmt.Errorf("an answer of type %T without content", answer)
	}
	text, ok := content[0].(*mcp.TextContent)
	if !ok {
		return nil, fmt.Errorf("content of type %T", content[0])
	}
	return say(model + " says " + text.Text), nil
}

func askRoots(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answer, ask := input(r, &mcp.ListRootsParams{})
	if ask != nil {
		return ask, nil
	}
	roots, ok := answer.(*mcp.ListRootsResult)
	if !ok {
		return nil, fmt.Errorf("an answer of type %T", answer)
	}
	return sayRoots(roots.Roots), nil
}

func sayRoots(roots []*mcp.Root) *mcp.CallToolResult {
	lines := make([]string, len(roots))
	for i, root := range roots {
		lines[i] = root.URI
	}
	return say(strings.Join(lines, "\n"))
}

type logParams struct {
	Level, Text string
	Count       int
}

func logTool(ctx context.Context, r *mcp.CallToolRequest, p logParams) (*mcp.CallToolResult, error) {
	for range p.Count {
		if err := r.Session.Log(ctx,
			&mcp.LoggingMessageParams{Level: mcp.LoggingLevel(p.Level), Logger: "db", Data: p.Text}); err != nil {
			return nil, err
		}
	}
	return say("logged"), nil
}

type workParams struct {
	Steps, Pause int
	Message      string
}

func work(ctx context.Context, r *mcp.CallToolRequest, p workParams) (*mcp.CallToolResult, error) {
	for i := range p.Steps {
		err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1),
			Total: float64(p.Steps), Message: p.Message,
		})
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(p.Pause) * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return say("worked"), nil
}

// mirror reports which params were in the header and which in the params.
func mirror(_ context.Context, r *mcp.CallToolRequest, p struct{ Region string }) (*mcp.CallToolResult, error) {
	header := "none"
	if r.Extra != nil && r.Extra.Header != nil {
		header = strconv.Quote(r.Extra.Header.Get("Mcp-Param-Region"))
	}
	return say(fmt.Sprintf("header %s, param %q", header, p.Region)), nil
}
