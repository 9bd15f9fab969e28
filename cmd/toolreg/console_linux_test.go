package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/ui/browsertest"
)

// Tokens of the console's test: those of a client, and of two people.
const (
	clientToken = "client-0123456789abcdef"
	annaToken   = "anna-0123456789abcdef"
	benToken    = "ben-0123456789abcdef"
)

// served is a running "toolreg serve --http --console".
type served struct{ dir, url string }

func serveConsole(t *testing.T, settings string) *served {
	t.Helper()
	return serveConsoleIn(t, t.TempDir(), settings)
}

func serveConsoleIn(t *testing.T, dir, settings string) *served {
	t.Helper()
	s := &served{dir: dir}
	for name, text := range map[string]string{
		"tokens":   "client " + clientToken + "\nanna " + annaToken + " console\nben " + benToken + " console\n",
		"s.yaml":   settings,
		"file.txt": "one\ntwo\n",
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "toolreg", "--settings", "s.yaml", "serve", "--preset", "full", "--http", "127.0.0.1:0", "--console", "--token-file", "tokens")
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "HOME="+s.dir, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "toolreg: console at "); ok {
			s.url = strings.TrimSuffix(rest, "/console")
			break
		}
	}
	go func() {
		for lines.Scan() {
		}
	}()
	if s.url == "" {
		t.Fatal("the console was not started")
	}
	return s
}

// bearer sends a token.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects a client. asked is its user; nil means it cannot ask.
func (s *served) connect(t *testing.T, name, revision string, asked func(context.Context) *mcp.ElicitResult) *mcp.ClientSession {
	t.Helper()
	o := &mcp.ClientOptions{}
	if asked != nil {
		o.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return asked(ctx), nil }
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, o).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(clientToken)}, DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// begin calls a tool and returns a function that waits for the text of the result.
func begin(t *testing.T, c *mcp.ClientSession, tool string, params any) (text func() string) {
	t.Helper()
	done := make(chan string, 1)
	go func() {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: params})
		if err != nil {
			done <- "error: " + err.Error()
			return
		}
		var b strings.Builder
		for _, part := range r.Content {
			if text, ok := part.(*mcp.TextContent); ok {
				b.WriteString(text.Text)
			}
		}
		done <- b.String()
	}()
	return func() string {
		t.Helper()
		select {
		case text := <-done:
			return text
		case <-time.After(patience):
			t.Fatalf("%s did not end", tool)
		}
		return ""
	}
}

// quoted returns a text as a JavaScript literal.
func quoted(s string) string {
	data, _ := json.Marshal(s) // a string always encodes
	return string(data)
}

// signIn enters the console in a tab.
func signIn(tab *browsertest.Tab, token string) {
	tab.Eval(`document.querySelector("input[name=token]").value = ` + quoted(token) + `; window.left = false; setTimeout(() => document.querySelector("form").requestSubmit()); 1`)
	tab.Wait(`window.left !== false && document.querySelector("[role=alert], #servers tr")`)
}

// questionWith is the element of the question whose text contains a word.
func questionWith(word string) string {
	return `[...document.querySelectorAll(".question")].find((q) => q.querySelector("button") && q.textContent.includes(` + quoted(word) + `))`
}

// press presses the button of an answer.
func press(tab *browsertest.Tab, word, answer string) {
	tab.Wait(questionWith(word))
	tab.Eval(`[...(` + questionWith(word) + `).querySelectorAll("button")].find((b) => b.firstChild.textContent === ` + quoted(answer) + `).click(); 1`)
}

// row is the element of the first call in the list whose text contains a word.
func row(word string) string {
	return `[...document.querySelectorAll("#rows .call")].find((r) => r.textContent.includes(` + quoted(word) + `))`
}

// TestConsole uses the console as two people would, in Chromium.
func TestConsole(t *testing.T) {
	s := serveConsole(t, `
mcpServers:
  dialogs: {command: mcp-testserver, args: [--dialogs], inheritEnv: true, trust: true}
policy:
  rules: [{tool: run_shell_command, command: cat, decision: allow}]
`)
	tab := browsertest.Open(t, s.url+"/console", 1280, 1000)
	contains := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%.300q lacks %q", got, want)
		}
	}
	signIn(tab, "wrong-0123456789abcdef")
	contains(tab.Eval("document.body.innerText"), "This is not a token of this server.")
	signIn(tab, clientToken)
	contains(tab.Eval("document.body.innerText"), "This token may not enter the console")
	signIn(tab, annaToken)
	silent := s.connect(t, "silent", "2025-06-18", nil)

	// A call appears while it runs.
	if err := syscall.Mkfifo(filepath.Join(s.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	result := begin(t, silent, "run_shell_command", map[string]any{"command": "cat fifo"})
	tab.Wait(`(` + row("run_shell_command") + `)?.textContent.includes("running")`)
	if err := os.WriteFile(filepath.Join(s.dir, "fifo"), []byte("over\n"), 0); err != nil {
		t.Fatal(err)
	}
	contains(result(), "over")
	tab.Wait(`(` + row("run_shell_command") + `)?.querySelector(".tag.ok")`)
	contains(tab.Eval(row("run_shell_command")+".innerText"), "client, silent")

	// Questions of a client that cannot ask are answered here, with the words of a terminal.
	write := func(c *mcp.ClientSession, file, content string) func() string {
		return begin(t, c, "write_file", map[string]any{"file_path": file, "content": content})
	}
	result = write(silent, "approved.txt", "fine\n")
	tab.Wait(questionWith("approved.txt"))
	contains(tab.Eval("document.title"), "(1) ")
	if got, want := tab.Eval(`[...document.querySelectorAll(".answers button")].map((b) => b.innerText).join("|")`), "yes|always\nallows every edit in this workspace from now on|edit|no"; got != want {
		t.Errorf("the answers are %q, want %q", got, want)
	}
	if picture := os.Getenv("TOOLREG_PICTURE"); picture != "" {
		tab.Screenshot(picture)
	}
	press(tab, "approved.txt", "yes")
	contains(result(), "approved.txt")
	result = write(silent, "refused.txt", "bad\n")
	tab.Wait(questionWith("refused.txt"))
	tab.Eval(`(` + questionWith("refused.txt") + `).querySelector(".answers input").value = "use another name"; 1`)
	press(tab, "refused.txt", "no")
	contains(result(), "use another name")
	result = write(silent, "file.txt", "one\nthree\n")
	press(tab, "file.txt", "edit")
	tab.Eval(`(` + questionWith("file.txt") + `).querySelector("textarea").value = "one\nfour\n"; 1`)
	press(tab, "file.txt", "edit: allow with this content")
	contains(result(), "four")
	if data, err := os.ReadFile(filepath.Join(s.dir, "file.txt")); string(data) != "one\nfour\n" {
		t.Errorf("the file has %q, %v", data, err)
	}

	// A plain yes allows what the person wrote, and always does not drop it.
	result = write(silent, "plain.txt", "one\n")
	press(tab, "plain.txt", "edit")
	tab.Eval(`(` + questionWith("plain.txt") + `).querySelector("textarea").value = "five\n"; 1`)
	tab.Eval(`[...(` + questionWith("plain.txt") + `).querySelectorAll("button")].find((b) => b.textContent.startsWith("always")).click(); 1`)
	tab.Wait(`(` + questionWith("plain.txt") + `).querySelector(".wrong").textContent.includes("without your changes")`)
	press(tab, "plain.txt", "yes")
	contains(result(), "five")

	// A second tab sees that a question is gone, and of two people who answer at once one counts.
	other := tab.Another(s.url + "/console")
	signIn(other, benToken)
	result = write(silent, "twice.txt", "x\n")
	tab.Wait(questionWith("twice.txt"))
	other.Wait(questionWith("twice.txt"))
	id := tab.Eval(`(` + questionWith("twice.txt") + `).dataset.id`)
	both := tab.Eval(fmt.Sprintf(`Promise.all(["yes", "no"].map((choice) => fetch("/console/answer", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({id: %q, choice})}).then((r) => r.status))).then((all) => all.toSorted().join())`, id))
	if both != "204,410" {
		t.Errorf("two answers at once: %s", both)
	}
	result()
	other.Wait(`document.querySelectorAll(".question").length === 0`)

	// Where the client is asked too, the first answer counts, and the other place sees it gone.
	for _, revision := range []string{"2025-06-18", "2026-07-28"} {
		gone := make(chan struct{}, 1)
		asked := s.connect(t, "asked", revision, func(ctx context.Context) *mcp.ElicitResult {
			<-ctx.Done()
			gone <- struct{}{}
			return &mcp.ElicitResult{Action: "cancel"}
		})
		if revision == "2026-07-28" { // its client comes back with an answer that counts no more
			asked = s.connect(t, "asked", revision, func(ctx context.Context) *mcp.ElicitResult {
				press(tab, revision, "yes")
				tab.Wait(`document.querySelectorAll(".question").length === 0`)
				return &mcp.ElicitResult{Action: "decline"}
			})
		}
		result = write(asked, revision+".txt", "x\n")
		if revision != "2026-07-28" {
			press(tab, revision, "yes")
			<-gone
		}
		contains(result(), revision+".txt")
		answering := s.connect(t, "answering", revision, func(context.Context) *mcp.ElicitResult {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "no"}}
		})
		contains(write(answering, "never.txt", "x\n")(), "not")
		tab.Wait(`document.querySelectorAll(".question").length === 0`)
	}

	// So are the questions of servers, whose fields are read as at a terminal.
	result = begin(t, silent, "form", map[string]any{"message": "Who are you?", "schema": map[string]any{"type": "object", "required": []string{"who"},
		"properties": map[string]any{"who": map[string]any{"type": "string", "minLength": 2}, "level": map[string]any{"type": "string", "enum": []string{"low", "high"}}}}})
	tab.Wait(questionWith("Who are you?"))
	fill := func(who string) {
		tab.Eval(`(() => { const [level, who] = (` + questionWith("Who are you?") + `).querySelectorAll("label input, label select"); who.value = ` + quoted(who) + `; level.value = "high"; })(); 1`)
		press(tab, "Who are you?", "send")
	}
	fill("A")
	tab.Wait(`document.querySelector(".question .wrong")?.textContent.includes("2")`)
	fill("Anna")
	contains(result(), `accept {"level":"high","who":"Anna"}`)

	// Texts of others are shown as text.
	const hostile = "<img src=x onerror=\"document.title='owned'\"></pre><script>document.title='owned'</script>\u202e"
	rude := s.connect(t, hostile, "2025-06-18", nil)
	result = write(rude, "rude.txt", hostile+"\n")
	tab.Wait(questionWith("rude.txt"))
	contains(tab.Eval(`(`+questionWith("rude.txt")+`).innerText`), strings.ReplaceAll(hostile, "\u202e", `\u202e`))
	press(tab, "rude.txt", "no")
	result()
	tab.Wait(row(`<img src=x`))
	if got := tab.Eval(`document.querySelectorAll("img, #console script").length + document.title`); strings.Contains(got, "owned") || !strings.HasPrefix(got, "0") {
		t.Errorf("hostile texts became %s", got)
	}
	tab.Wait(`document.querySelectorAll(".question").length === 0`)
	result = write(silent, "long.txt", strings.Repeat("0123456789abcdef\n", 600_000)) // 10 MB
	tab.Wait(`document.querySelector(".question button")`)
	tab.Eval(`[...document.querySelectorAll(".question button")].at(-1).click(); 1`)
	result()

	// A server is restarted.
	before := pidsOf(t, "mcp-testserver", s.dir)
	tab.Eval(`document.querySelector("#servers button").click(); 1`)
	tab.Wait(`!document.querySelector("#servers button").disabled && document.querySelector("#servers .tag.allow")`)
	if after := pidsOf(t, "mcp-testserver", s.dir); len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		t.Errorf("restart: processes %v became %v", before, after)
	}

	// The policy of the page stops scripts of others, and other pages cannot frame it.
	if got := tab.Eval(`(async () => { const s = document.createElement("script"); s.textContent = "document.title='owned'"; document.body.append(s);
		return document.title + " " + await fetch("http://127.0.0.1:1/").then(() => "sent", (e) => e.name); })()`); strings.Contains(got, "owned") || !strings.Contains(got, "TypeError") {
		t.Errorf("the policy let %s through", got)
	}

	// The keyboard reaches everything: / the search, Tab and Enter an answer.
	tab.Eval(`document.activeElement.blur(); 1`)
	tab.Key("/")
	if got := tab.Eval("document.activeElement.id"); got != "query" {
		t.Errorf("/ focuses %q", got)
	}
	result = write(silent, "keys.txt", "x\n")
	tab.Wait(questionWith("keys.txt"))
	tab.Eval(`document.querySelector(".question pre").focus(); 1`)
	tab.Key("Tab")
	tab.Key("Enter")
	contains(result(), "keys.txt")

	// Its charts and tools are pages of their own.
	tab.Go(s.url + "/console/charts?since=24h")
	contains(tab.Eval("document.body.innerText"), "By client")
	tab.Go(s.url + "/console/tools")
	contains(tab.Eval("document.body.innerText"), "Cost by source")
	other.Eval(`setTimeout(() => document.querySelector("nav form").requestSubmit()); 1`)
	other.Wait(`document.querySelector("input[name=token]")`)
}

// pidsOf returns the process ids of a program in a folder.
func pidsOf(t *testing.T, name, dir string) (out []string) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		cwd, _ := os.Readlink(filepath.Join(p, "cwd"))
		exe, _ := os.Readlink(filepath.Join(p, "exe"))
		if cwd == dir && filepath.Base(exe) == name {
			out = append(out, filepath.Base(p))
		}
	}
	return out
}
