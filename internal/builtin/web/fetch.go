// Package web has the built-in tool web_fetch, which fetches a page from a
// public address as Markdown, text or data.
package web

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
	"github.com/toolreg/toolreg/internal/webaddr"
)

//go:embed web_fetch.md
var webFetchDescription string

const (
	webFetchName     = "web_fetch"
	fetchTimeout     = 30 * time.Second
	fetchLimit       = 100_000 // characters returned by default
	fetchErrorExtent = 2_000   // characters shown of an error page
)

const webFetchSchema = `{
  "type": "object",
  "properties": {
    "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "The address, beginning with http:// or https://."},
    "format": {"type": "string", "enum": ["markdown", "text", "raw"], "description": "What to convert HTML to; raw is the source as sent. Default: markdown."},
    "prompt": {"type": "string", "description": "A question about the content, answered by the program of the setting fetch.processor."},
    "offset": {"type": "integer", "minimum": 0, "description": "The first character to return, counted from 0, to continue a page. Default: 0."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000000, "description": "Maximum characters to return. Default: 100000."}
  },
  "required": ["url"],
  "additionalProperties": false
}`

type fetchParams struct {
	URL    string        `json:"url"`
	Format string        `json:"format"`
	Prompt string        `json:"prompt"`
	Offset *tool.Integer `json:"offset"`
	Limit  *tool.Integer `json:"limit"`
}

// Options tune web_fetch. With the zero value it fetches from public addresses
// only, without a cache.
type Options struct {
	// AllowHosts are the hosts that may be reached at private addresses: "host"
	// (every port) or "host:port".
	AllowHosts []string
	// Headers returns the headers to send to an origin, scheme://host:port, in
	// addition to the tool's own. If Headers is nil, none are added.
	Headers func(ctx context.Context, origin string) ([]Header, error)
	// Proxy returns the proxy for an address, or nil. If Proxy is nil, no proxy is
	// used.
	Proxy func(*url.URL) (*url.URL, error)
	// Processor returns the argv of the program that answers prompts. If Processor is
	// nil or returns an empty argv, no program is set. The program runs in
	// ProcessorDir with ProcessorEnv, "K=V" entries.
	Processor    func() ([]string, error)
	ProcessorDir string
	ProcessorEnv []string
	// ConfineProcessor confines that program; nil means that it is not
	// confined.
	ConfineProcessor process.Confiner
	// Timeout bounds connecting, redirects, reading and converting together; 0
	// means 30 s, a negative value no limit.
	Timeout time.Duration
	// MaxBytes limits the size of a page, after decompression; 0 means 10 MiB.
	MaxBytes int64
	// CacheDir stores pages for 15 minutes; "" disables the cache.
	CacheDir string
	// Refresh fetches cached pages again and replaces them.
	Refresh bool
	// Version is the version of toolreg that is sent in User-Agent.
	Version string
}

// NewFetch returns the tool web_fetch.
func NewFetch(opts Options) registry.Tool {
	f := &webFetch{opts: &opts}
	return tool.New(registry.Definition{
		Name:           webFetchName,
		Description:    webFetchDescription,
		Category:       registry.CategoryNetwork,
		Tags:           []string{"web"},
		Icon:           "globe",
		Permissions:    []string{"network"},
		OutputMarkdown: true,
		InputSchema:    json.RawMessage(webFetchSchema),
		Examples: []registry.Example{
			{Description: "A page as Markdown", Params: json.RawMessage(`{"url":"https://go.dev/doc/effective_go"}`)},
			{Description: "Its next part", Params: json.RawMessage(`{"url":"https://go.dev/doc/effective_go","offset":100000}`)},
		},
	}, tool.Handlers[*fetchCall]{Prepare: prepareFetch, Run: f.run, Subject: f.subject, Preview: f.preview})
}

type webFetch struct{ opts *Options }

// fetchCall is a call with its params decoded and checked.
type fetchCall struct {
	fetchParams
	url           *url.URL // without a fragment
	offset, limit int
}

func prepareFetch(call registry.Call) (*fetchCall, error) {
	p, err := tool.Decode[fetchParams](webFetchName, call)
	if err != nil {
		return nil, err
	}
	p.Format = cmp.Or(p.Format, "markdown")
	c := &fetchCall{fetchParams: p, offset: p.Offset.OrDefault(0), limit: p.Limit.OrDefault(fetchLimit)}
	if c.url, err = parseAddress(strings.TrimSpace(p.URL)); err != nil {
		return nil, registry.Invalid(webFetchName, "/url", "%v", err)
	}
	return c, nil
}

func (f *webFetch) subject(c *fetchCall) (registry.Subject, error) {
	return registry.Subject{URLs: []string{c.url.String()}}, nil
}

func (f *webFetch) preview(ctx context.Context, _ registry.Call, c *fetchCall) (registry.Preview, error) {
	host := c.url.Hostname()
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" { // others are not resolved before the answer
		if err := (&webaddr.Dialer{Allow: f.opts.AllowHosts}).CheckHost(ctx, c.url); err != nil {
			return registry.Preview{}, &registry.FailedError{Result: unreachable(c.url, err)}
		}
	}
	return registry.Preview{Kind: registry.PreviewInfo, Title: "Fetch a web page",
		Prompt: c.Prompt, URLs: []string{c.url.String()}}, nil
}

func (f *webFetch) run(ctx context.Context, call registry.Call, c *fetchCall) (registry.Result, error) {
	limit := cmp.Or(f.opts.Timeout, fetchTimeout)
	if call.Limit != 0 {
		limit = 0
	}
	late := fmt.Errorf("fetching %s: not finished within %s; raise the setting fetch.timeout to allow more",
		c.url.Redacted(), limit)
	inner, cancel := timing.Limit(ctx, limit, late)
	defer cancel()
	r := f.fetch(inner, c, admitting(call))
	switch {
	case !r.IsError:
		if c.Prompt != "" {
			return f.ask(ctx, c, r)
		}
	case context.Cause(ctx) != nil:
		return r, fmt.Errorf("fetching %s: %w", c.url.Redacted(), context.Cause(ctx))
	case context.Cause(inner) == late:
		return registry.ErrorResult(registry.ErrorTimeout, late.Error()), nil
	}
	return r, nil
}

// fetch gets the page from the cache or the server, and returns it as a result.
func (f *webFetch) fetch(ctx context.Context, c *fetchCall, may admit) registry.Result {
	p, err := f.page(ctx, c.url, may)
	if err != nil {
		return unreachable(c.url, err)
	}
	shown, err := render(ctx, p, c.Format)
	switch {
	case p.Status >= 300:
		return tool.Failed(statusFailure(p, shown))
	case err != nil:
		return tool.Failed(fmt.Sprintf("%s %v", p.url.Redacted(), err))
	}
	return shown.result(c, p)
}

func unreachable(u *url.URL, err error) registry.Result {
	return tool.Failed("fetching " + u.Redacted() + ": " + webaddr.Explain(err))
}

// statusFailure describes an error status, with the beginning of the error
// page. shown is nil if the server sent no text.
func statusFailure(p *webPage, shown *renderedPage) string {
	text := fmt.Sprintf("%s answered %d %s", p.url.Redacted(), p.Status, http.StatusText(p.Status))
	switch {
	case shown != nil && shown.facts.isCheck:
		text += "; the page checks for a browser and does not have the content"
	case shown != nil && shown.facts.isLogin:
		text += "; the page asks to log in"
	case p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden:
		text += "; use the setting fetch.headers to send credentials"
	case p.Status == http.StatusNotFound || p.Status == http.StatusGone:
		text += "; check the address"
	case p.Retry != "":
		text += "; try again after " + tool.OneLine(p.Retry)
		if _, err := strconv.Atoi(p.Retry); err == nil {
			text += " seconds" // otherwise it is a date
		}
	case p.Status >= 500:
		text += "; try again later"
	}
	if shown == nil {
		return text
	}
	if said := strings.TrimSpace(shown.text); said != "" {
		if end := tool.RuneIndex(said, fetchErrorExtent); end < len(said) {
			said = said[:end] + "…"
		}
		text += "\n\n" + said
	}
	return text
}

// result returns the requested part of the page.
func (r *renderedPage) result(c *fetchCall, p *webPage) registry.Result {
	summary := fmt.Sprintf("fetched %s (%s, %s", p.url.Redacted(), tool.OneLine(r.mime), tool.Size(int64(len(p.Body))))
	if p.cached {
		summary += ", cached"
	}
	out := registry.Result{Summary: summary + ")"}
	out.Display.Plain = c.Format != "markdown" || r.mime != "text/html" && r.mime != "text/markdown"
	if r.media != nil {
		out.Content = []registry.Content{*r.media}
		out.Display.Text = summary + ")"
		return out
	}
	total := utf8.RuneCountInString(r.text)
	said := ""
	if c.offset == 0 {
		said = r.notes
	}
	if total == 0 {
		said = cmp.Or(said, "[the page is empty]")
		out.Content = []registry.Content{registry.TextContent(strings.TrimSuffix(said, "\n"))}
		return out
	}
	if c.offset >= total {
		return tool.Mismatch(fmt.Sprintf("offset %d is past the end of %s, which has %s",
			c.offset, p.url.Redacted(), text.Count(total, "character")))
	}
	start := tool.RuneIndex(r.text, c.offset)
	end := start + tool.RuneIndex(r.text[start:], c.limit)
	last := min(c.offset+c.limit, total)
	notes := said
	if c.Format != "raw" && p.Address != c.url.String() {
		notes += fmt.Sprintf("[redirected to %s]\n", p.url.Redacted())
	}
	if p.Cut {
		notes += fmt.Sprintf("[the page is larger than %s; the rest of it was not read]\n",
			tool.Size(int64(len(p.Body))))
	}
	if c.offset > 0 || last < total {
		notes += fmt.Sprintf("[characters %d to %d of %d", c.offset, last-1, total)
		if last < total {
			notes += fmt.Sprintf("; continue with offset %d", last)
		}
		notes += "]\n"
	}
	out.Truncated = p.Cut || last < total
	out.Content = []registry.Content{registry.TextContent(notes + r.text[start:end])}
	return out
}

const (
	processorTimeout = 2 * time.Minute
	processorOutput  = 1 << 20
	processorTail    = 2_000 // bytes of stderr shown after a failure
)

// processorInput is the input that the program of fetch.processor reads from
// stdin.
type processorInput struct {
	URL     string `json:"url"`
	Prompt  string `json:"prompt"`
	Content string `json:"content"`
}

// ask runs the program of fetch.processor to answer the prompt about the
// fetched page. If no program is set, it returns the page with a note.
func (f *webFetch) ask(ctx context.Context, c *fetchCall, page registry.Result) (registry.Result, error) {
	var argv []string
	if f.opts.Processor != nil {
		var err error
		if argv, err = f.opts.Processor(); err != nil {
			return tool.Failed("the setting fetch.processor: " + err.Error()), nil
		}
	}
	text := page.Text()
	if len(argv) == 0 || text == "" {
		why := "the setting fetch.processor is not set, so the prompt was not applied; this is the page itself"
		if text == "" {
			why = "the page is not text, so the prompt was not applied"
		}
		page.Content = append([]registry.Content{registry.TextContent("[" + why + "]")}, page.Content...)
		return page, nil
	}
	input, err := json.Marshal(processorInput{URL: c.url.String(), Prompt: c.Prompt, Content: text})
	if err != nil {
		return registry.Result{}, err
	}
	late := fmt.Errorf("fetch.processor did not answer within %s", processorTimeout)
	inner, cancel := context.WithTimeoutCause(ctx, processorTimeout, late)
	defer cancel()
	out, err := f.opts.ConfineProcessor.Run(inner, process.Spec{
		Argv: argv, Dir: f.opts.ProcessorDir, Env: f.opts.ProcessorEnv, Stdin: input, MaxOutput: processorOutput,
	})
	switch {
	case context.Cause(ctx) != nil:
		return tool.Failed("the call was canceled"), fmt.Errorf("answering a prompt: %w", context.Cause(ctx))
	case errors.Is(err, late):
		return registry.ErrorResult(registry.ErrorTimeout, late.Error()), nil
	case err != nil || out.ExitCode != 0:
		return tool.Failed(processorFailure(out, err)), nil
	}
	answer := registry.TextResult(strings.TrimRight(string(out.Stdout), "\n"))
	answer.Summary = page.Summary + ", prompt answered by fetch.processor"
	return answer, nil
}

// processorFailure describes how the program failed, with the end of its
// output.
func processorFailure(out process.Outcome, err error) string {
	text := fmt.Sprintf("fetch.processor failed: %v", cmp.Or(err, out.Err()))
	said := strings.ToValidUTF8(string(out.Stderr[max(0, len(out.Stderr)-processorTail):]), "")
	if said = strings.TrimSpace(said); said != "" {
		text += "\n" + said
	}
	return text + "\nWithout prompt the call returns the page itself."
}
