// Package openapi makes tools of the operations of HTTP APIs that OpenAPI documents describe. A
// [Source] is one entry of the setting openapi: it gets the document, from a file or an address,
// has package spec read it, and sends the requests of calls.
//
// Credentials come only from the settings, and go only to the origin that the settings name.
package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/openapi/spec"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/timing"
)

// Source is one API as a source of tools. It implements [registry.Source] and io.Closer,
// and is safe for concurrent use.
type Source struct {
	opts Options

	mu     sync.Mutex
	info   Info
	client *client           // nil until needed
	listed map[string]listed // the operations, by the names of their tools
	files  []fileFact        // of the document as it was last read
	tried  time.Time         // when the last Discover ended; zero before the first
}

// listed is what is known of an operation that the document lists.
type listed struct {
	at     int // its place in the document
	method string
	names  []string // by which include and exclude may select it
}

// Info is the status of an API.
type Info struct {
	Name     string
	State    State
	BaseURL  string // of the first operation; "" if it is not known
	Duration time.Duration
	Err      error     // why it failed
	CachedAt time.Time // when the document was requested, if that was before this run
}

// State is the state of an API's document.
type State int

// The states.
const (
	Unread State = iota
	Ready
	Failed
)

// New returns a Source that has read nothing yet.
func New(o Options) *Source {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Warn == nil {
		o.Warn = func(registry.Diagnostic) {}
	}
	if o.Memory == nil {
		o.Memory = noMemory{}
	}
	return &Source{opts: o, info: Info{Name: o.API.Name}}
}

// Name returns "openapi:NAME".
func (s *Source) Name() string { return registry.APIPrefix + s.opts.API.Name }

// Settings returns the entry of the API.
func (s *Source) Settings() settings.API { return s.opts.API }

// Info returns the current status.
func (s *Source) Info() Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// NeedsLogin returns an error that wraps [registry.ErrNeedsLogin] if a person has to log in
// before calls can be made.
func (s *Source) NeedsLogin(ctx context.Context) error {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	if c == nil || c.login == nil || c.api.OAuth.Grant != settings.GrantAuthorizationCode {
		return nil
	}
	if _, err := c.login.Token(ctx); errors.Is(err, registry.ErrNeedsLogin) {
		return s.fail(err)
	}
	return nil
}

// fail is [failure] with the API's current client.
func (s *Source) fail(err error) error {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	return failure(s.opts.API.Name, c, err)
}

// Try calls the first GET operation of the document that needs no params, to check an API that a
// person has just added. tool is its name; "" if there is none. It takes no longer than getting the
// document may take.
func (s *Source) Try(ctx context.Context, tools []*registry.Tool) (tool string, result registry.Result, err error) {
	ctx, cancel := timing.Limit(ctx, s.opts.API.ConnectTimeout, nil)
	defer cancel()
	s.mu.Lock()
	operations := s.listed
	s.mu.Unlock()
	var first *registry.Tool
	for _, t := range tools {
		var schema struct{ Required []string }
		op := operations[t.ServerTool]
		if op.method == http.MethodGet && json.Unmarshal(t.InputSchema, &schema) == nil &&
			len(schema.Required) == 0 && (first == nil || op.at < operations[first.ServerTool].at) {
			first = t
		}
	}
	if first == nil {
		return "", result, nil
	}
	result, err = first.Run(ctx, registry.Call{Tool: first.Name, Params: json.RawMessage("{}")})
	return first.Name, result, err
}

// Close closes the open connections.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.transport.CloseIdleConnections()
	}
	return nil
}

// Discover reads the document and returns a tool for each of its operations. The error
// matches [registry.ErrSourceFailed], or is a *document.Error if the entry is invalid.
func (s *Source) Discover(ctx context.Context) ([]registry.Tool, []registry.Diagnostic, error) {
	return s.discover(ctx, false)
}

func (s *Source) discover(ctx context.Context, again bool) ([]registry.Tool, []registry.Diagnostic, error) {
	start := time.Now()
	tools, diags, err := s.findTools(ctx, again)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = time.Now()
	s.info.State, s.info.Err, s.info.Duration = Ready, err, time.Since(start)
	if err != nil {
		s.info.State = Failed
	}
	return tools, diags, err
}

// findTools is Discover without the status. If again is set, a recent failure is ignored.
func (s *Source) findTools(ctx context.Context, again bool) ([]registry.Tool, []registry.Diagnostic, error) {
	if s.opts.API.Err != nil {
		return nil, nil, s.opts.API.Err
	}
	run := ctx
	limit := s.opts.API.ConnectTimeout
	ctx, cancel := timing.Limit(ctx, limit, fmt.Errorf("no answer within %s (connectTimeout)", limit))
	defer cancel()
	client, err := s.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	known, err := s.opts.Memory.Load(ctx)
	if err != nil {
		return nil, nil, s.fail(err)
	}
	if isKept := known.Fresh && known.Operations != nil; known.Failure != nil &&
		s.opts.API.IsRemote() && !isKept && !again {
		return nil, nil, known.Failure
	}
	s.mu.Lock()
	known.Fresh = known.Fresh || s.opts.Unasked && s.tried.IsZero() && s.opts.API.IsRemote()
	s.files = known.Facts.Files
	s.mu.Unlock()
	doc, err := s.readDocument(ctx, client, known)
	if err != nil {
		err = s.fail(err)
		if run.Err() == nil {
			s.opts.Memory.Save(run, Known{Failure: err})
		}
		return nil, nil, err
	}
	return s.tools(client, doc)
}

const (
	// askPause is the minimum time between two requests for the document of an API in use.
	askPause = time.Minute
	// retryPause is the same for an API that failed.
	retryPause = time.Second
)

// Due reports whether it is time to request the document again: it is at an address, or the API
// failed. It is false before the first Discover.
func (s *Source) Due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.tried.IsZero():
		return false
	case s.info.State == Failed:
		return time.Since(s.tried) >= retryPause
	}
	return s.opts.API.IsRemote() && time.Since(s.tried) >= askPause
}

// Again reads the document again, and reports whether a Discover would find other tools than the
// last one.
func (s *Source) Again(ctx context.Context) (changed bool, err error) {
	before, was := s.Info().State, s.sums()
	if _, _, err = s.discover(ctx, true); err != nil {
		return false, err
	}
	return before != Ready || was != s.sums(), nil
}

// sums identifies the content of the document.
func (s *Source) sums() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, f := range s.files {
		b.WriteString(f.Name + " " + f.Sum + "\n")
	}
	return b.String()
}

// Files returns the known files of a document on disk; nil for a document at an address.
func (s *Source) Files() []string {
	if s.opts.API.IsRemote() {
		return nil
	}
	out := []string{expand.From(s.opts.ProjectRoot, s.opts.API.Spec)}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		out = append(out, f.Name)
	}
	return out
}

// connect returns the client of the API, with its settings expanded.
func (s *Source) connect(ctx context.Context) (*client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	api := s.opts.API
	if s.opts.Expand != nil {
		var err error
		if api, err = s.opts.Expand(ctx, api); err != nil {
			return nil, failure(s.opts.API.Name, nil, err)
		}
	}
	c, err := newClient(api, &s.opts)
	if err != nil {
		return nil, failure(s.opts.API.Name, nil, err)
	}
	if s.opts.Expand != nil && canChange(s.opts.API) {
		c.creds.Reread(func(ctx context.Context) (credentials, error) {
			api, err := s.opts.Expand(ctx, s.opts.API)
			if err != nil {
				return credentials{}, err
			}
			return c.credentialsOf(api, &s.opts), nil
		})
	}
	s.client = c
	return c, nil
}

func (s *Source) tools(c *client, doc *spec.Document) ([]registry.Tool, []registry.Diagnostic, error) {
	operations := doc.Operations
	var diags []registry.Diagnostic
	s.noteOperations(operations)
	if limit := s.opts.Limits.Tools; limit > 0 && len(operations) > limit {
		operations = s.selected(operations)
		if len(operations) > limit {
			diags = append(diags, registry.Diagnostic{Severity: registry.SeverityWarning,
				Code: "listing_cut", Source: s.Name(),
				Message: fmt.Sprintf("the document has %d operations; only the first %d are tools (limits.tools)",
					len(operations), limit),
				Hint: "select operations with include or exclude in the entry of the API"})
			operations = operations[:limit]
		}
	}
	tools := make([]registry.Tool, len(operations))
	usable := 0
	for i := range operations {
		tools[i] = s.tool(c, &operations[i])
		p := operations[i].Problem
		if p == nil {
			usable++
			continue
		}
		diags = append(diags, registry.Diagnostic{Severity: registry.SeverityInfo, Code: "operation_unusable",
			Source: s.Name(), Tool: tools[i].Name, Message: p.String()})
	}
	if usable == 0 { // there is at least one operation
		return nil, nil, s.fail(fmt.Errorf("no operation can be used: %s", operations[0].Problem))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.info.BaseURL = c.base; c.base == "" {
		s.info.BaseURL = doc.Server
	}
	return tools, diags, nil
}

func (s *Source) noteOperations(operations []spec.Operation) {
	all := make(map[string]listed, len(operations))
	for i := range operations {
		op := &operations[i]
		all[op.Name] = listed{at: i, method: op.Method,
			names: append([]string{op.Name, op.ID, op.Method + " " + op.Path}, op.Tags...)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = all
}

// selected returns the operations that include and exclude select, or all if they select none.
func (s *Source) selected(operations []spec.Operation) []spec.Operation {
	hides := s.Filter()
	if hides == nil {
		return operations
	}
	var out []spec.Operation
	for i := range operations {
		if hides(&registry.Tool{Definition: registry.Definition{Source: s.Name(),
			ServerTool: operations[i].Name}}) == nil {
			out = append(out, operations[i])
		}
	}
	if out == nil {
		return operations
	}
	return out
}

func (s *Source) tool(c *client, op *spec.Operation) registry.Tool {
	api := &s.opts.API
	t := registry.Tool{
		Definition: registry.Definition{
			Name: op.Name, ServerTool: op.Name, Server: api.Name, Source: s.Name(), Category: registry.CategoryNetwork,
			Permissions: []string{"network"}, DisplayName: op.Summary, Description: op.Description, Tags: op.Tags,
			Annotations: op.Annotations(), InputSchema: op.Input, OutputSchema: op.Output,
		},
		Identity: s.identity(op), Trusted: api.Trust, Declared: api.Origin.String(),
		Behavior: registry.Behavior{Timeout: api.Timeout},
	}
	if op.Deprecated {
		t.Description += "\n\nDeprecated."
	}
	if op.Problem != nil {
		t.Quarantine = document.NewError([]document.Problem{*op.Problem})
		return t
	}
	call := &operation{opts: &s.opts, client: c, op: op}
	t.Run, t.Check, t.Subject, t.Preview = call.run, call.checkParams, call.subject, call.preview
	return t
}

// Names returns the names that include and exclude can use, sorted. It knows the operations after
// Discover.
func (s *Source) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, operation := range s.listed {
		out = append(out, operation.names...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Filter applies include and exclude, which are globs over operationId, tags and "METHOD
// /path"; nil if neither is set. It knows the operations after Discover.
func (s *Source) Filter() registry.Filter {
	api := &s.opts.API
	if !api.Include.Set && !api.Exclude.Set {
		return nil
	}
	include, exclude := api.Include.Sourced(), api.Exclude.Sourced()
	return func(t *registry.Tool) *registry.Hidden {
		if t.Source != s.Name() {
			return nil
		}
		s.mu.Lock()
		names := s.listed[t.ServerTool].names
		s.mu.Unlock()
		if e, ok := registry.MatchAny(exclude, names...); ok {
			return &registry.Hidden{Reason: "listed in exclude of API " + api.Name, Setting: e.Setting}
		}
		if _, ok := registry.MatchAny(include, names...); ok || !api.Include.Set {
			return nil
		}
		return &registry.Hidden{Reason: "not listed in include of API " + api.Name, Setting: api.Origin.String()}
	}
}

// identity returns what identifies an operation: the settings of its API as written, with
// only the names of secrets, and where its requests go.
func (s *Source) identity(op *spec.Operation) json.RawMessage {
	a := &s.opts.API
	var headers, auth []string
	for _, h := range a.Headers {
		headers = append(headers, h.Name)
	}
	for _, way := range a.Auth {
		switch {
		case way.Basic != nil:
			auth = append(auth, "basic")
		case way.APIKey != nil:
			auth = append(auth, "apiKey "+way.APIKey.In+" "+way.APIKey.Name)
		case way.OAuth != nil:
			auth = append(auth, "oauth")
		default:
			auth = append(auth, "bearer")
		}
	}
	request := op.Method + " " + op.Path
	if a.URL == "" {
		request = op.Method + " " + op.Server + op.Path
	}
	out, err := jsonx.Marshal(struct {
		Spec    string   `json:"spec"`
		BaseURL string   `json:"baseUrl,omitempty"`
		Headers []string `json:"headers,omitempty"`
		Auth    []string `json:"auth,omitempty"`
		Request string   `json:"request"`
	}{secret.MaskKnown(a.Spec), secret.MaskKnown(a.URL), headers, auth, request})
	if err != nil {
		return json.RawMessage("{}") // only strings: cannot fail
	}
	return out
}
