package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

func TestDiscoverKeepsWhatTheServerSent(t *testing.T) {
	server := stdioServer(t, "--extras")
	server.Trust = true
	server.Env = append(server.Env, settings.Pair{Name: "API_KEY", Value: "s3cret-value"})
	s := source(t, server, func(o *Options) { o.Counts = true })
	tools, diags := discovered(t, s)
	if len(diags) > 0 {
		t.Errorf("diagnostics: %v", diags)
	}
	add := tools["add"]
	want := registry.Definition{
		Name: "add", DisplayName: "add (test MCP Server)", Description: "Adds two numbers.",
		Source: "mcp:test", Server: "test", ServerTool: "add", Category: registry.CategoryOther, OutputMarkdown: true,
		Annotations:  json.RawMessage(`{"idempotentHint":false,"readOnlyHint":true,"title":"Addition"}`),
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"number"}},"required":["a","b"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}`),
	}
	if diff := cmp.Diff(want, add.Definition); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
	if !add.Trusted || add.Timeout != server.Timeout {
		t.Errorf("Trusted %v, Timeout %v", add.Trusted, add.Timeout)
	}
	identity := string(add.Identity)
	if !strings.Contains(identity, `"env":["API_KEY"]`) || strings.Contains(identity, "s3cret") {
		t.Errorf("identity %s", identity)
	}
	p, err := add.Preview(t.Context(), registry.Call{})
	if err != nil || p.Kind != registry.PreviewMCP {
		t.Errorf("preview %+v, %v", p, err)
	}

	info := s.Info()
	if info.ConnectMs < 0 {
		t.Errorf("ConnectMs %d", info.ConnectMs)
	}
	info.ConnectMs = 0
	wantInfo := Info{
		Name: "test", Transport: "stdio", State: StateConnected, ProtocolVersion: "2026-07-28", ServerInfo: json.RawMessage(`{"name":"mcptest","version":"1.2.3"}`),
		Tools: len(tools), Prompts: 1, Resources: 2, Origin: "default", Instructions: "A server for tests.",
		Deprecated: []Deprecated{{Part: "logging", Since: "2026-07-28"}},
	}
	if diff := cmp.Diff(wantInfo, info); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
}

// TestEmptyCursor checks that an empty cursor names a page of its own since revision 2026-07-28, but
// not for servers that write it for none.
func TestEmptyCursor(t *testing.T) {
	page := func(of, with, tools string) step {
		return step{On: "tools/list", With: with, Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[{"name":"` + tools + `","inputSchema":{"type":"object"}}]` + of + `}}`}}
	}
	const empty = `,"nextCursor":""`
	tests := []struct {
		name  string
		steps []step
		want  []string
		codes string
	}{
		{"a second page", []step{page(empty, `"2026-07-28"}}`, "first"), page("", `"cursor":""`, "second")}, []string{"first", "second"}, ""},
		{"always the same page", []step{page(empty, "", "only")}, []string{"only"}, ""},
		{"always another page", []step{page(empty, `"2026-07-28"}}`, "first"), page(empty, `"cursor":""`, "second")}, []string{"first", "second"}, "listing_cut"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tools, diags := discovered(t, source(t, scripted(t, append(tt.steps, sayModern)...)))
			var names, codes []string
			for _, tool := range tools {
				names = append(names, tool.ServerTool)
			}
			for _, d := range diags {
				codes = append(codes, d.Code)
			}
			slices.Sort(names)
			if !slices.Equal(names, tt.want) || strings.Join(codes, " ") != tt.codes {
				t.Errorf("got %q, diagnostics %q", names, codes)
			}
		})
	}
	t.Run("a number", func(t *testing.T) {
		s := source(t, scripted(t, refuseProbe, shakeHands, page("", `"cursor":2`, "second"), page(`,"nextCursor":2`, "", "first")))
		if tools, diags := discovered(t, s); len(tools) != 2 || len(diags) > 0 {
			t.Errorf("got %v, diagnostics %v", tools, diags)
		}
	})
	t.Run("an older server", func(t *testing.T) {
		s := source(t, scripted(t, refuseProbe, shakeHands, page(empty, "", "only")))
		if tools, diags := discovered(t, s); len(tools) != 1 || len(diags) > 0 {
			t.Errorf("got %v, diagnostics %v", tools, diags)
		}
	})
}

func TestListing(t *testing.T) {
	numbered := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf("tool_%d", i+1)
		}
		slices.Sort(out) // the SDK's server sorts
		return out
	}
	tests := []struct {
		name      string
		flags     []string
		limits    Limits
		want      []string
		wantCodes []string
	}{
		{name: "all pages", flags: []string{"--tools", "25", "--page-size", "4"}, want: numbered(25)},
		{name: "no tools capability", flags: []string{"--no-tools"}, want: []string{}},
		{name: "cursor repeated", flags: []string{"--names", "a,b", "--loop-cursor"}, want: []string{"a", "b"}, wantCodes: []string{"error listing_cut", "warning tool_duplicate", "warning tool_duplicate"}},
		{name: "too many pages", flags: []string{"--tools", "9", "--page-size", "2"}, limits: Limits{Pages: 2}, want: numbered(9)[:4], wantCodes: []string{"warning listing_cut"}},
		{name: "too many tools", flags: []string{"--tools", "9", "--page-size", "2"}, limits: Limits{Tools: 5}, want: numbered(9)[:5], wantCodes: []string{"warning listing_cut"}},
		{
			name: "bad tools leave good ones alone", flags: []string{"--names", "a,b", "--bad-tools"},
			want: []string{"spéciàl näme", "big_number", "a", "b"},
			wantCodes: []string{
				"warning tool_malformed", "warning tool_malformed", "warning tool_malformed", "warning tool_malformed", "warning tool_malformed",
				"warning tool_duplicate", "warning tool_duplicate",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := source(t, stdioServer(t, tt.flags...), func(o *Options) { o.Limits = tt.limits })
			tools, diags, err := s.Discover(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			names := []string{}
			for _, tool := range tools {
				if tool.Quarantine == nil {
					names = append(names, tool.ServerTool)
				}
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			var codes []string
			for _, d := range diags {
				codes = append(codes, string(d.Severity)+" "+d.Code)
				if d.Source != "mcp:test" || d.Message == "" {
					t.Errorf("diagnostic %+v", d)
				}
			}
			if diff := cmp.Diff(tt.wantCodes, codes); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s\n%v", diff, diags)
			}
			if s.Info().State != StateConnected {
				t.Errorf("state %s", s.Info().State)
			}
		})
	}
}

// A definition with a repeated key could mean different things to toolreg and
// to a model.
func TestToolsWithRepeatedKeysAreQuarantined(t *testing.T) {
	tools, diags := discovered(t, source(t, scripted(t, refuseProbe, shakeHands, listingOf(
		`{"name":"deep","inputSchema":{"type":"object","properties":{"p":{"type":"string","type":"number"}}}},`+
			`{"name":"good","inputSchema":{"type":"object"}}`))))
	if tools["good"].Quarantine != nil || len(tools) != 2 {
		t.Errorf("tools %v", tools)
	}
	if reason := tools["deep"].Quarantine; reason == nil || reason.Error() != `its definition repeats the key "type"` {
		t.Errorf("quarantined for %v", reason)
	}
	if len(diags) != 1 || diags[0].Tool != "deep" {
		t.Errorf("diagnostics %+v", diags)
	}
}

func TestUnusualToolsAreKeptUnchanged(t *testing.T) {
	tools, _ := discovered(t, source(t, stdioServer(t, "--names", "a", "--bad-tools")))
	odd := tools["spéciàl näme"]
	if odd.Name != "sp_ci_l_n_me" || string(odd.InputSchema) != noParams {
		t.Errorf("name %q, schema %s", odd.Name, odd.InputSchema)
	}
	want := `{"type":"object","properties":{"n":{"type":"integer","maximum":12345678901234567891,"x-unknown":[1e400]}}}`
	if got := string(tools["big_number"].InputSchema); got != want {
		t.Errorf("schema %s", got)
	}
}

func TestFilter(t *testing.T) {
	list := func(values ...string) settings.List {
		l := settings.List{Set: true}
		for i, v := range values {
			l.Entries = append(l.Entries, settings.Entry{Value: v, Origin: settings.Origin{Scope: settings.ScopeUser, Name: "s.yaml", Line: i + 1}})
		}
		return l
	}
	tests := []struct {
		name             string
		include, exclude settings.List
		want, hidden     []string
	}{
		{name: "absent", want: []string{"a_one", "a_two", "b"}},
		{name: "empty", include: list(), hidden: []string{"a_one default", "a_two default", "b default"}},
		{name: "exact and with arguments", include: list("b", "a_one(x)"), want: []string{"a_one", "b"}, hidden: []string{"a_two s.yaml:1"}},
		{name: "glob", include: list("a_*"), want: []string{"a_one", "a_two"}, hidden: []string{"b s.yaml:1"}},
		{name: "exclusions take precedence", include: list("a_*"), exclude: list("zzz", "a_two"), want: []string{"a_one"}, hidden: []string{"a_two s.yaml:2", "b s.yaml:1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := stdioServer(t, "--names", "a_one,a_two,b")
			server.IncludeTools, server.ExcludeTools = tt.include, tt.exclude
			s := source(t, server)
			l := registry.NewLoader(registry.Options{Filters: []registry.Filter{Filter(server)}})
			r := l.Load(t.Context(), []registry.Source{s}, false)
			var names, hidden []string
			for _, tool := range r.Tools() {
				names = append(names, tool.Name)
			}
			for _, h := range r.Hidden() {
				hidden = append(hidden, h.Name+" "+h.Setting)
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.hidden, hidden); diff != "" {
				t.Errorf("hidden (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServersThatDoNotStart(t *testing.T) {
	missing := settings.Server{Name: "test", Command: "no-such-program-here"}
	secret := stdioServer(t, "--exit", "7", "--stderr", `one\ntwo\nbad key s3cret-value\e[2J\nfour`)
	tests := []struct {
		name   string
		server settings.Server
		want   []string
	}{
		{"missing", missing, []string{`server "test": starting "no-such-program-here": not found in its PATH`}},
		{"exits", secret, []string{`server "test": it exited (exit status 7); its stderr ends "two", "bad key ***\x1b[2J", "four"`}},
		{"prints the error first", stdioServer(t, "--exit", "1", "--stderr", `Error: Cannot find module\nat one\nat two\nat three\nNode.js v1`), []string{`its stderr has "Error: Cannot find module" and ends "at two", "at three", "Node.js v1"`}},
		{"npm's 404", stdioServer(t, "--exit", "1", "--stderr", `npm warn config x\nnpm error code E404\nnpm error 404 Not Found - GET https://r/foo\nnpm error 404\nnpm error 404  The requested resource 'foo@*' could not be found.\nnpm error 404\nnpm error 404 Note that you can also install from a\nnpm error 404 tarball, folder, http url, or git url.\nnpm error A complete log of this run can be found in: /x.log`),
			[]string{`its stderr has "npm error 404 Not Found - GET https://r/foo", "npm error 404 The requested resource 'foo@*' could not be found."`}},
		{"npm misses a file", stdioServer(t, "--exit", "1", "--stderr", `npm ERR! code ENOENT\nnpm ERR! syscall open\nnpm ERR! errno -2\nnpm ERR! enoent Could not read package.json`),
			[]string{`its stderr has "npm ERR! enoent Could not read package.json"`}},
		{"prints help", stdioServer(t, "--banner", "Usage: server [flags]", "--exit", "0"), []string{"it exited (exit status 0)", `its stdout contains text that is not a message: "Usage: server [flags]"`}},
		{"prints behind messages", scripted(t, step{On: "server/discover", Print: []string{`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"no"}} # done`}}, step{On: "initialize", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{}}} # done`}}),
			[]string{"malformed message: invalid JSON", `its stdout contains text that is not a message: "{`, "# done"}},
		{"frames messages", scripted(t, step{On: "server/discover", Print: []string{"Content-Length: 2\r\n\r", "{}"}}), []string{`server "test": it writes messages with Content-Length headers, as language servers do, and not one on each line`}},
		{"no revision", scripted(t, refuseProbe, step{On: "initialize", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"capabilities":{}}}`}}), []string{"its answer to initialize has no protocolVersion"}},
		{"unsupported revision", scripted(t, refuseProbe, step{On: "initialize", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"1999-01-01","capabilities":{}}}`}}), []string{`it speaks revision "1999-01-01" of the protocol, and toolreg speaks 2026-07-28, `}},
		{"ill-typed revision", scripted(t, refuseProbe, step{On: "initialize", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":5,"capabilities":{}}}`}}), []string{"its answer to initialize has no protocolVersion"}},
		{"refuses", scripted(t, refuseProbe, step{On: "initialize", Print: []string{`{"jsonrpc":"2.0","id":$ID,"error":{"code":-1,"message":"licence\u0007 expired"}}`}}), []string{`licence\a expired`}},
		{"the listing is not a list", scripted(t, refuseProbe, shakeHands, step{On: "tools/list", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"tools":{}}}`}}), []string{`its answer has no list "tools"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := source(t, tt.server, hides("s3cret-value"))
			tools, _, err := s.Discover(t.Context())
			if !errors.Is(err, registry.ErrSourceFailed) || len(tools) > 0 {
				t.Fatalf("error %v, %d tools", err, len(tools))
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got  %s\nwant %s", err, want)
				}
			}
			if info := s.Info(); info.State != StateFailed || info.Error != err.Error() {
				t.Errorf("info %+v", info)
			}
		})
	}
}

// Servers that describe themselves in another form than the protocol's, or declare nothing, are used all the same.
func TestOddHandshakes(t *testing.T) {
	tests := []struct{ name, result string }{
		{"lists for objects, as PHP writes them", `"capabilities":{"tools":[],"logging":[],"experimental":[]}`},
		{"booleans", `"capabilities":{"tools":true,"completions":true,"prompts":false}`},
		{"null", `"capabilities":{"tools":{},"logging":null},"instructions":null,"serverInfo":null`},
		{"ill-typed members", `"capabilities":{"tools":{"listChanged":"yes"},"resources":{"subscribe":1}}`},
		{"an ill-typed version", `"capabilities":{"tools":{}},"serverInfo":{"name":"x","version":1},"instructions":["a"]`},
		{"nothing declared", `"capabilities":{}`},
		{"an empty list", `"capabilities":[]`},
		{"no capabilities", `"serverInfo":{"name":"x","version":"1"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			initialize := step{On: "initialize", Print: []string{
				`{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18",` + tt.result + `}}`}}
			tools, diags := discovered(t, source(t, scripted(t, refuseProbe, initialize, listingOf(oneTool))))
			if len(tools) != 1 || len(diags) > 0 {
				t.Errorf("%d tools, diagnostics %v", len(tools), diags)
			}
		})
	}
}

// A list that is null is an empty one.
func TestNullLists(t *testing.T) {
	initialize := step{On: "initialize", Print: []string{
		`{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}}}}`}}
	null := func(method, list string) step {
		return step{On: method, Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"` + list + `":null}}`}}
	}
	s := source(t, scripted(t, refuseProbe, initialize, null("tools/list", "tools"), null("prompts/list", "prompts"),
		null("resources/read", "contents"), null("prompts/get", "messages")))
	if tools, diags := discovered(t, s); len(tools) > 0 || len(diags) > 0 {
		t.Errorf("%d tools, diagnostics %v", len(tools), diags)
	}
	if prompts, diags, err := s.Prompts(t.Context()); err != nil || len(prompts) > 0 || len(diags) > 0 {
		t.Errorf("prompts %v, diagnostics %v, error %v", prompts, diags, err)
	}
	if r, err := s.ReadResource(t.Context(), "a:b", nil); err != nil || len(r.Contents) > 0 {
		t.Errorf("contents %v, error %v", r, err)
	}
	if p, err := s.GetPrompt(t.Context(), "p", nil, nil); err != nil || len(p.Messages) > 0 {
		t.Errorf("messages %v, error %v", p, err)
	}
}

// A server that declares only what is not tools is not asked for them.
func TestDeclaredWithoutTools(t *testing.T) {
	initialize := step{On: "initialize", Print: []string{
		`{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"prompts":{}}}}`}}
	tools, _ := discovered(t, source(t, scripted(t, refuseProbe, initialize, listingOf(oneTool))))
	if len(tools) != 0 {
		t.Errorf("%d tools", len(tools))
	}
}

// A server that hangs costs its connectTimeout, and the error says how far it got.
func TestServersThatHang(t *testing.T) {
	web := httpServer(serve(t, hangOn("tools/list")).URL)
	for name, tt := range map[string]struct {
		server settings.Server
		want   []string
	}{
		"at once":                   {stdioServer(t, "--hang", "--stderr", "waiting for godot"), []string{`server "test": no answer within LIMIT (connectTimeout)`, `"waiting for godot"`}},
		"on the listing":            {scripted(t, refuseProbe, shakeHands), []string{`server "test": tools/list: no answer within LIMIT (connectTimeout)`}},
		"on the listing, over HTTP": {web, []string{`tools/list: no answer within LIMIT`}},
	} {
		t.Run(name, func(t *testing.T) {
			for limit := 300 * time.Millisecond; ; limit *= 2 { // a busy machine spends a short one on the start
				s := source(t, tt.server, func(o *Options) { o.ConnectTimeout = limit })
				tools, _, err := s.Discover(t.Context())
				if !errors.Is(err, registry.ErrSourceFailed) || !errors.Is(err, context.DeadlineExceeded) || len(tools) > 0 {
					t.Fatalf("error %v, %d tools", err, len(tools))
				}
				if info := s.Info(); info.State != StateFailed || info.Error != err.Error() {
					t.Errorf("info %+v", info)
				}
				if !slices.ContainsFunc(tt.want, func(want string) bool {
					return !strings.Contains(err.Error(), strings.ReplaceAll(want, "LIMIT", limit.String()))
				}) {
					return
				}
				if limit > 10*time.Second {
					t.Fatalf("got  %v\nwant %s", err, tt.want)
				}
			}
		})
	}
}

func TestNoiseOnStdoutIsSkipped(t *testing.T) {
	for _, banner := range []string{`Starting server...\n\n> npm run x\n`, "\xEF\xBB\xBF", `{"level":"info","msg":"up"}`, `[1,2]`, `{broken`} {
		t.Run(banner, func(t *testing.T) {
			tools, _ := discovered(t, source(t, stdioServer(t, "--banner", banner)))
			if r := run(t, tools, "echo", `{"text":"x"}`); r.Text() != "x" {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	tests := []struct {
		name         string
		flags        []string
		protocol     string // setting
		known        string
		wantProtocol string
		wantStarts   int
	}{
		{name: "modern", wantProtocol: "modern", wantStarts: 1},
		{name: "legacy", flags: []string{"--protocol", "2025-11-25"}, wantProtocol: "legacy", wantStarts: 1},
		{name: "ignores the probe", flags: []string{"--ignore-unknown"}, wantProtocol: "legacy", wantStarts: 1},
		{name: "exits on the probe", flags: []string{"--die-on-probe"}, wantProtocol: "legacy", wantStarts: 2},
		{name: "exits on the probe, known", flags: []string{"--die-on-probe"}, known: "legacy", wantProtocol: "legacy", wantStarts: 1},
		{name: "exits on the probe, set", flags: []string{"--die-on-probe"}, protocol: "legacy", wantProtocol: "legacy", wantStarts: 1},
		{name: "slow modern", flags: []string{"--delay", "500ms", "--protocol", "2026-07-28"}, wantProtocol: "modern", wantStarts: 1},
		{name: "slow modern, set", flags: []string{"--delay", "500ms"}, protocol: "modern", wantProtocol: "modern", wantStarts: 1},
		{name: "slow legacy", flags: []string{"--delay", "500ms", "--protocol", "2025-06-18"}, wantProtocol: "legacy", wantStarts: 1},
		{name: "slow and ignores the probe", flags: []string{"--delay", "500ms", "--ignore-unknown"}, wantProtocol: "legacy", wantStarts: 1},
		{name: "known modern, still modern", known: "modern", wantProtocol: "modern", wantStarts: 1},
		{name: "known legacy, now only modern", flags: []string{"--protocol", "2026-07-28"}, known: "legacy", wantProtocol: "modern", wantStarts: 2},
		{name: "both, known legacy", known: "legacy", wantProtocol: "legacy", wantStarts: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			marker := filepath.Join(t.TempDir(), "starts")
			server := stdioServer(t, append(tt.flags, "--marker", marker)...)
			server.Protocol = tt.protocol
			s := source(t, server, func(o *Options) { o.Memory = &memory{known: Known{Protocol: tt.known}} })
			tools, _ := discovered(t, s)
			if r := run(t, tools, "add", `{"a":1,"b":1}`); string(r.Structured) != `{"sum":2}` {
				t.Errorf("add: %+v", r)
			}
			if got := generationOf(s); got != tt.wantProtocol {
				t.Errorf("protocol %s", got)
			}
			if got := len(lines(t, marker)); got != tt.wantStarts {
				t.Errorf("%d starts, want %d", got, tt.wantStarts)
			}
		})
	}
}

// TestProbeOfOddServers checks that silence after one of the two requests does
// not hide the answer to the other.
func TestProbeOfOddServers(t *testing.T) {
	t.Parallel()
	slow := step{On: "start", Delay: 400 * time.Millisecond}
	discover := step{On: "server/discover", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`}}
	list := step{On: "tools/list", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","tools":[` + oneTool + `]}}`}}
	refuse := step{On: "initialize", Print: []string{`{"jsonrpc":"2.0","id":$ID,"error":{"code":-1,"message":"not you"}}`}}
	odd := step{On: "server/discover", Print: []string{`{"jsonrpc":"2.0","id":$ID,"result":{"ok":true}}`}}
	tests := []struct {
		name  string
		steps []step
		want  string // protocol, or error
	}{
		{"slow, initialize ignored", []step{slow, discover, list}, "modern"},
		{"slow, initialize refused", []step{slow, discover, refuse, list}, "modern"},
		{"slow, speaks both", []step{slow, discover, shakeHands, list}, "legacy"},
		{"probe ignored, initialize refused", []step{refuse}, "not you"},
		{"probe answered with nonsense", []step{odd, shakeHands, list}, "legacy"},
		{"slow, probe answered with nonsense", []step{slow, odd, shakeHands, list}, "legacy"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := source(t, scripted(t, tt.steps...))
			tools, _, err := s.Discover(t.Context())
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Error(err)
				}
				return
			}
			if got := generationOf(s); got != tt.want || len(tools) != 1 {
				t.Errorf("protocol %s, %d tools", got, len(tools))
			}
		})
	}
}

func TestModernSettingRefusesLegacyServer(t *testing.T) {
	server := stdioServer(t, "--protocol", "2025-11-25")
	server.Protocol = "modern"
	_, _, err := source(t, server).Discover(t.Context())
	if err == nil || !strings.Contains(err.Error(), "does not speak revision 2026-07-28") {
		t.Errorf("error %v", err)
	}
}

func TestCloseWhileConnecting(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	s := source(t, stdioServer(t, "--hang", "--marker", marker))
	failed := make(chan error, 1)
	go func() {
		_, _, err := s.Discover(t.Context())
		failed <- err
	}()
	waitForFile(t, marker)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, registry.ErrSourceFailed) || !strings.Contains(err.Error(), "the connection was closed") {
		t.Errorf("error %v", err)
	}
}

func TestDisabledServersAreNotStarted(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	disabled := stdioServer(t, "--marker", marker)
	disabled.Disabled = true
	excluded := stdioServer(t, "--marker", marker)
	excluded.Excluded = &settings.Origin{Scope: settings.ScopeUser, Name: "settings.yaml", Line: 3}
	for _, server := range []settings.Server{disabled, excluded} {
		s := source(t, server)
		tools, diags, err := s.Discover(t.Context())
		if err != nil || len(tools) > 0 || len(diags) != 1 || diags[0].Severity != registry.SeverityInfo {
			t.Errorf("%v, %v, %v", tools, diags, err)
		}
		if s.Info().State != StateDisabled {
			t.Errorf("state %s", s.Info().State)
		}
	}
	if _, err := os.Stat(marker); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a server was started")
	}
}

func TestStateChangesAreReported(t *testing.T) {
	var mu sync.Mutex
	var states []State
	s := source(t, stdioServer(t), func(o *Options) {
		o.OnState = func(name string, state State) {
			mu.Lock()
			defer mu.Unlock()
			states = append(states, state)
		}
	})
	discovered(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	want := []State{StateConnecting, StateListing, StateConnected, StateDisconnected}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestExpandFailureIsASettingsError(t *testing.T) {
	s := source(t, stdioServer(t), func(o *Options) {
		o.Expand = func(context.Context, settings.Server) (settings.Server, error) {
			return settings.Server{}, errors.New("settings.yaml:4: $TOKEN is not set")
		}
	})
	_, _, err := s.Discover(t.Context())
	if want := `server "test": settings: settings.yaml:4: $TOKEN is not set`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
