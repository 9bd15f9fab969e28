package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// prism is a running mock of one document. Requests go through a proxy that keeps them
// together with what Prism said.
type prism struct {
	document string
	url      string // of the proxy
	proxy    *http.Server

	cmd    *exec.Cmd
	direct *url.URL // of Prism

	mu        sync.Mutex
	exchanges []exchange
}

// exchange is a request and the verdict on it.
type exchange struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	verdict
}

// verdict is what Prism said to a request.
type verdict struct {
	status int
	// refusal says why the request does not match the document; empty if it does.
	refusal string
	// ended says that Prism gave no answer: some requests end its process.
	ended bool
}

func startPrism(ctx context.Context, document string) (*prism, error) {
	p := &prism{document: document}
	if err := p.launch(ctx); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.url = "http://" + listener.Addr().String()
	p.proxy = &http.Server{Handler: p.handler()}
	go p.proxy.Serve(listener)
	return p, nil
}

// startLimit is how long Prism may take to read a document.
const startLimit = 5 * time.Minute

// launch starts Prism's process, also after that has ended.
func (p *prism) launch(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	listener.Close() // Prism takes a number, not a socket
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	p.direct = &url.URL{Scheme: "http", Host: address}
	p.cmd = exec.CommandContext(ctx, "node", "node_modules/@stoplight/prism-cli/dist/index.js",
		"mock", "-h", "127.0.0.1", "-p", port, p.document)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	listening, ended := make(chan bool), make(chan string, 1)
	go func() {
		var last string
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 16<<20)
		for said := false; lines.Scan(); {
			if last = lines.Text(); !said && strings.Contains(last, "is listening") {
				said = true
				close(listening)
			}
		}
		ended <- last
	}()
	select {
	case <-listening:
		return nil
	case last := <-ended:
		p.cmd.Wait()
		return fmt.Errorf("prism ended: %s", last)
	case <-time.After(startLimit):
		p.cmd.Process.Kill()
		p.cmd.Wait()
		return fmt.Errorf("prism did not start within %s", startLimit)
	}
}

func (p *prism) relaunch(ctx context.Context) error {
	p.cmd.Process.Kill()
	p.cmd.Wait()
	return p.launch(ctx)
}

func (p *prism) stop() {
	p.proxy.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

func (p *prism) handler() http.Handler {
	reverse := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(p.direct) },
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			p.judged(judge(r.StatusCode, r.Header, body))
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			p.judged(verdict{ended: true})
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.mu.Lock()
		p.exchanges = append(p.exchanges, exchange{method: r.Method, url: r.URL, header: r.Header.Clone(), body: body})
		p.mu.Unlock()
		reverse.ServeHTTP(w, r)
	})
}

// judged adds the verdict to the latest request: there is only one at a time.
func (p *prism) judged(v verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.exchanges) > 0 {
		p.exchanges[len(p.exchanges)-1].verdict = v
	}
}

// taken returns the exchanges since it was last called.
func (p *prism) taken() []exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.exchanges
	p.exchanges = nil
	return out
}

// send gives a changed request to Prism.
func (p *prism) send(ctx context.Context, e exchange) (verdict, error) {
	target := *e.url
	target.Scheme, target.Host = p.direct.Scheme, p.direct.Host
	r, err := http.NewRequestWithContext(ctx, e.method, target.String(), bytes.NewReader(e.body))
	if err != nil {
		return verdict{}, err
	}
	r.Header = e.header.Clone()
	r.Header.Del("Content-Length")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return verdict{ended: true}, p.relaunch(ctx)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return judge(resp.StatusCode, resp.Header, body), err
}

// violation is a part of a request that does not match the document.
type violation struct {
	Location []string
	Severity string
	Code     any // a word or a status
	Message  string
}

// judge reads Prism's answer. Prism names what is wrong with a request in a header or in a
// problem document with a type of its own, which may also say that it has no response.
func judge(status int, header http.Header, body []byte) verdict {
	v := verdict{status: status}
	var problem struct {
		Type, Detail string
		Validation   []violation
	}
	var violations []violation
	_ = json.Unmarshal([]byte(header.Get("sl-violations")), &violations) // absent in most answers
	if status >= 400 && json.Unmarshal(body, &problem) == nil {
		violations = append(problem.Validation, violations...)
	}
	for _, one := range violations {
		if one.Severity == "Error" && (len(one.Location) == 0 || one.Location[0] != "response") {
			v.refusal = strings.TrimPrefix(strings.Join(one.Location, "."), "request.") + ": " + one.Message
			return v
		}
	}
	switch _, kind, _ := strings.Cut(problem.Type, "prism/errors#"); kind {
	case "UNPROCESSABLE_ENTITY", "UNAUTHORIZED", "NO_PATH_MATCHED_ERROR", "NO_METHOD_MATCHED_ERROR",
		"NO_SERVER_MATCHED_ERROR", "UNSUPPORTED_MEDIA_TYPE", "INVALID_CONTENT_TYPE":
		v.refusal = kind + ": " + problem.Detail
	}
	return v
}

// tally is what the calls of one document came to.
type tally struct {
	tools, calls, accepted int
	invalid, invalidToo    int            // refused by toolreg; by Prism too
	notes                  map[string]int // why calls were not accepted
	letThrough             []string       // Prism refused what toolreg sent although the params were made invalid
}

func (t *tally) note(text string) { t.notes[text]++ }

// tool is an element of list --json.
type tool struct {
	Name        string          `json:"name"`
	ServerTool  string          `json:"serverTool"` // the operationId
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// needs returns the params that are required with any member of the body, which is said in
// the description alone.
func (t tool) needs() []string {
	_, list, found := strings.Cut(t.Description, "With any member of the body, these are required: ")
	if !found {
		return nil
	}
	list, _, _ = strings.Cut(list, ".\n")
	return strings.Split(strings.TrimSuffix(list, "."), ", ")
}

// callAll calls every tool with generated params and then with invalid ones.
func callAll(ctx context.Context, s *session, p *prism, tools []tool,
	operations []operation, verbose func(string, ...any)) (tally, error) {
	t := tally{notes: map[string]int{}}
	for i, one := range tools {
		t.tools++
		var valid *exchange
		var params map[string]any
		for _, optional := range []amount{required, all, some} {
			g, err := newGenerator(one.InputSchema, uint64(i)*3+uint64(optional))
			if err == nil && optional != required {
				g.need(one.needs())
			}
			if err != nil {
				t.note("schema does not compile: " + head(err.Error(), 150))
				verbose("%s: schema: %v", one.Name, err)
				break
			}
			made, err := g.params(optional)
			if err != nil {
				t.note("no valid params found")
				verbose("%s: %v", one.Name, err)
				continue
			}
			p.taken()
			t.calls++
			_, err = s.request("call", map[string]any{"tool": one.Name, "params": made})
			got := p.taken()
			var failed *rpcError
			// An example may redirect to a host that cannot be reached.
			redirected := len(got) == 1 && got[0].status/100 == 3
			switch {
			case errors.As(err, &failed) && !redirected:
				t.note("toolreg: " + failed.Data.Code)
				verbose("%s: %v\n  %s", one.Name, err, encode(made))
			case err != nil && !redirected:
				return t, err
			case len(got) != 1:
				t.note(fmt.Sprintf("%d requests", len(got)))
				verbose("%s: %d requests\n  %s", one.Name, len(got), encode(made))
			case got[0].refusal != "":
				t.note("prism: " + kindOf(got[0].refusal))
				verbose("%s: prism: %s\n  %s\n  %s %s %s %s", one.Name, head(got[0].refusal, 500),
					encode(made), got[0].method, got[0].url, got[0].header, head(string(got[0].body), 500))
			case got[0].ended:
				t.note("prism: its process ended")
				verbose("%s: prism ended\n  %s %s %s",
					one.Name, got[0].method, got[0].url, head(string(got[0].body), 500))
				if err := p.relaunch(ctx); err != nil {
					return t, err
				}
			default:
				t.accepted++
				if optional != some {
					valid, params = &got[0], made
				}
			}
		}
		if valid == nil {
			continue
		}
		if err := callInvalid(ctx, s, p, one, operations, *valid, params, &t, verbose); err != nil {
			return t, err
		}
	}
	return t, nil
}

// kindOf shortens a refusal to what the refusals of one kind have in common: it leaves out
// the names and values that are quoted, and what comes after them.
func kindOf(refusal string) string {
	place, text, _ := strings.Cut(refusal, ": ")
	parts := strings.Split(place, ".")
	text, _, _ = strings.Cut(text, ": ")
	return strings.Join(parts[:min(len(parts), 2)], ".") + ": " + head(text, 80)
}

func encode(v any) string {
	data, _ := json.Marshal(v)
	return head(string(data), 600)
}

// callInvalid calls a tool with params of which one is wrong. What toolreg refuses, Prism
// must refuse as well.
func callInvalid(ctx context.Context, s *session, p *prism, one tool, operations []operation,
	valid exchange, params map[string]any, t *tally, verbose func(string, ...any)) error {
	op, ok := match(operations, valid.method, valid.url.EscapedPath())
	if !ok {
		t.note("the judge does not know the operation")
		verbose("%s: no operation for %s %s", one.Name, valid.method, valid.url)
		return nil
	}
	var schema struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(one.InputSchema, &schema); err != nil {
		return err
	}
	tried := 0
	for _, name := range slices.Sorted(maps.Keys(params)) {
		for _, change := range changes(schema.Properties[name], slices.Contains(schema.Required, name)) {
			request, ok := apply(valid, op, name, change)
			if !ok || tried == 6 {
				continue
			}
			tried++
			wrong := maps.Clone(params)
			if change.drop {
				delete(wrong, name)
			} else {
				wrong[name] = change.value
			}
			p.taken()
			_, err := s.request("call", map[string]any{"tool": one.Name, "params": wrong})
			sent := p.taken()
			var failed *rpcError
			switch {
			case err == nil:
				if len(sent) == 1 && sent[0].refusal != "" {
					t.letThrough = append(t.letThrough, fmt.Sprintf("%s %s: %s", one.Name, name, sent[0].refusal))
				}
				continue
			case !errors.As(err, &failed):
				return err
			case failed.Data.Exit != 4:
				t.note("invalid params: toolreg: " + failed.Data.Code)
				continue
			}
			v, err := p.send(ctx, request)
			if err != nil {
				return err
			}
			if v.ended {
				continue
			}
			t.invalid++
			if v.refusal != "" {
				t.invalidToo++
			} else {
				t.note("prism takes what toolreg refuses: " + change.String())
				verbose("%s: prism takes %s of %s (%d): %v\n  %s %s %s", one.Name, change, name,
					v.status, failed, request.method, request.url, head(string(request.body), 400))
			}
		}
	}
	return nil
}

// change makes a param invalid.
type change struct {
	drop  bool
	value any
	what  string
}

func (c change) String() string { return c.what }

func changes(schema json.RawMessage, needed bool) []change {
	var out []change
	if needed {
		out = append(out, change{drop: true, what: "a missing param"})
	}
	var s struct {
		Type any
		Enum []any
	}
	if json.Unmarshal(schema, &s) != nil {
		return out
	}
	types := typesOf(s.Type)
	if len(s.Enum) > 0 && !slices.Contains(types, "null") {
		return append(out, change{value: "no-such-value", what: "a value out of its enum"})
	}
	if len(types) != 1 {
		return out
	}
	switch types[0] {
	case "integer", "number", "boolean":
		out = append(out, change{value: "not-a-" + types[0], what: "text for a " + types[0]})
	}
	return out
}

// apply makes the change in the request that a valid call sent. It reports false where the
// request has no such place.
func apply(e exchange, op operation, name string, c change) (exchange, bool) {
	text := fmt.Sprint(c.value)
	target := *e.url
	e.url, e.header = &target, e.header.Clone()
	for _, param := range op.Params {
		if param.Name != name {
			continue
		}
		switch param.In {
		case "query":
			query := target.Query()
			if !query.Has(name) {
				return e, false
			}
			if query.Del(name); !c.drop {
				query.Set(name, text)
			}
			target.RawQuery = query.Encode()
			return e, true
		case "header":
			if e.header.Del(name); !c.drop {
				e.header.Set(name, text)
			}
			return e, true
		case "path":
			if c.drop {
				return e, false
			}
			want, have := strings.Split(op.Path, "/"), strings.Split(target.EscapedPath(), "/")
			for i := range want {
				if want[i] == "{"+name+"}" {
					have[i] = url.PathEscape(text)
					target.Path, target.RawPath = strings.Join(have, "/"), ""
					return e, true
				}
			}
			return e, false
		case "cookie":
			return e, false
		}
	}
	kind, _, _ := strings.Cut(e.header.Get("Content-Type"), ";")
	switch {
	case len(e.body) == 0:
	case kind == "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(e.body))
		if err != nil || !form.Has(name) {
			return e, false
		}
		if form.Del(name); !c.drop {
			form.Set(name, text)
		}
		e.body = []byte(form.Encode())
		return e, true
	case strings.Contains(kind, "json"):
		var body map[string]any
		if json.Unmarshal(e.body, &body) != nil {
			return e, false
		}
		if _, ok := body[name]; !ok {
			return e, false
		}
		if delete(body, name); !c.drop {
			body[name] = c.value
		}
		e.body, _ = json.Marshal(body)
		return e, true
	}
	return e, false
}
