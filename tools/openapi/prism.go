package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
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
	calls, accepted int
	notes           map[string]int // why calls were not accepted
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

// callAll calls every tool with generated params.
func callAll(ctx context.Context, s *session, p *prism, tools []tool,
	verbose func(string, ...any)) (tally, error) {
	t := tally{notes: map[string]int{}}
	for i, one := range tools {
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
			}
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
