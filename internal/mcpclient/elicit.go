package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The answers to an elicitation (revision 2025-11-25).
const (
	actionAccept  = "accept"
	actionDecline = "decline"
	actionCancel  = "cancel"
)

// maxElicitDepth bounds the nesting of a requested schema, which is flat by the
// protocol's rules.
const maxElicitDepth = 20

// elicit is the SDK's handler: it asks the person through Options.Elicit.
func (s *Source) elicit(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p := r.Params
	e := Elicitation{Server: s.opts.Server.Name, Mode: p.Mode, Message: cut(p.Message, maxNote), URL: p.URL, ID: p.ElicitationID}
	if e.Mode == "" {
		e.Mode = "form"
	}
	if p.RequestedSchema != nil {
		// The SDK checks what is accepted with a library that a reference to
		// itself drives into a stack overflow, which nothing can catch.
		if refers(p.RequestedSchema, 0) {
			s.log().Warn("elicitation declined: its schema holds references")
			return &mcp.ElicitResult{Action: actionDecline}, nil
		}
		schema, err := json.Marshal(p.RequestedSchema)
		if err != nil {
			return &mcp.ElicitResult{Action: actionDecline}, nil
		}
		e.Schema = schema
	}
	a := s.put(ctx, e)
	if a.Action != actionAccept || e.Mode == "url" {
		return &mcp.ElicitResult{Action: a.Action}, nil
	}
	content := map[string]any{}
	if len(a.Content) > 0 {
		if err := json.Unmarshal(a.Content, &content); err != nil {
			return &mcp.ElicitResult{Action: actionCancel}, nil
		}
	}
	return &mcp.ElicitResult{Action: actionAccept, Content: content}, nil
}

// put asks the person and returns an action that the protocol knows. It returns
// when ctx is done even if the person never answers.
func (s *Source) put(ctx context.Context, e Elicitation) Answer {
	if s.opts.Elicit == nil || e.Mode == "url" && !isWebAddress(e.URL) {
		return Answer{Action: actionDecline}
	}
	answers := make(chan Answer, 1)
	go func() {
		a, err := s.opts.Elicit(ctx, e)
		if err != nil {
			a = Answer{Action: actionCancel}
		}
		answers <- a
	}()
	select {
	case a := <-answers:
		if slices.Contains([]string{actionAccept, actionDecline, actionCancel}, a.Action) {
			return a
		}
		return Answer{Action: actionDecline}
	case <-ctx.Done():
		return Answer{Action: actionCancel}
	}
}

// answerURLs deals with a call that failed because the person has to visit
// addresses first (error -32042), and reports whether to send it again.
func (s *Source) answerURLs(ctx context.Context, err error) bool {
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || refused.Code != mcp.CodeURLElicitationRequired {
		return false
	}
	var data struct {
		Elicitations []struct {
			Mode          string `json:"mode"`
			Message       string `json:"message"`
			URL           string `json:"url"`
			ElicitationID string `json:"elicitationId"`
		} `json:"elicitations"`
	}
	if json.Unmarshal(refused.Data, &data) != nil || len(data.Elicitations) == 0 {
		return false
	}
	for _, q := range data.Elicitations {
		e := Elicitation{Server: s.opts.Server.Name, Mode: "url", Message: cut(q.Message, maxNote), URL: q.URL, ID: q.ElicitationID}
		if q.Mode != "url" || s.put(ctx, e).Action != actionAccept {
			return false
		}
	}
	return true
}

func isWebAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// refers reports whether a decoded schema holds a reference anywhere, or is
// nested too deeply to tell.
func refers(v any, depth int) bool {
	if depth > maxElicitDepth {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "$ref" || k == "$dynamicRef" || k == "$recursiveRef" || refers(e, depth+1) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if refers(e, depth+1) {
				return true
			}
		}
	}
	return false
}
