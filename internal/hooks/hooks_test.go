package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/toolreg/toolreg/internal/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script returns a hook that runs a shell script.
func script(e Event, text string, tools ...string) Hook {
	return Hook{Event: e, Command: []string{"/bin/sh", "-c", text}, Tools: tools, Timeout: time.Minute, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func set(t *testing.T, hooks ...Hook) *Set {
	return &Set{Hooks: hooks, Dir: t.TempDir()}
}

var tool = &registry.Tool{Definition: registry.Definition{
	Name: "log", Source: "mcp:git", Server: "git", ServerTool: "log", Category: registry.CategoryOther}}

func params(text string) registry.Call {
	return registry.Call{Tool: "log", Params: json.RawMessage(text)}
}

func TestBefore(t *testing.T) {
	for name, tt := range map[string]struct {
		hooks  []Hook
		want   string // params; "" means unchanged
		denied string // part of the error
	}{
		"nothing said":           {[]Hook{script(BeforeCall, "")}, "", ""},
		"allowed":                {[]Hook{script(BeforeCall, `echo '{"decision":"allow"}'`)}, "", ""},
		"input is not read":      {[]Hook{script(BeforeCall, "exec <&-")}, "", ""},
		"params replaced":        {[]Hook{script(BeforeCall, `echo '{"params":{"n":12345678901234567890}}'`)}, `{"n":12345678901234567890}`, ""},
		"in sequence":            {[]Hook{script(BeforeCall, `echo '{"params":{"n":2}}'`), script(BeforeCall, `grep -q '"params":{"n":2}'`)}, `{"n":2}`, ""},
		"of other tools":         {[]Hook{script(BeforeCall, "exit 1", "status"), script(AfterCall, "exit 1"), script(OnRegister, "exit 1")}, "", ""},
		"denied":                 {[]Hook{script(BeforeCall, `echo '{"decision":"deny","reason":"not today"}'`), script(BeforeCall, "exit 1")}, "", `"log" is denied by the beforeCall hook "/bin/sh": not today`},
		"denied by alias":        {[]Hook{script(BeforeCall, `echo '{"decision":"deny"}'`, "GIT__*")}, "", "no reason"},
		"exit code":              {[]Hook{script(BeforeCall, "echo one; echo two >&2; exit 3")}, "", "failed: exit code 3: two"},
		"signal":                 {[]Hook{script(BeforeCall, "kill -9 $$")}, "", "ended by SIGKILL"},
		"no such program":        {[]Hook{{Event: BeforeCall, Command: []string{"/no/such"}, Timeout: time.Second}}, "", "/no/such"},
		"too late":               {[]Hook{{Event: BeforeCall, Command: []string{"/bin/sleep", "600"}, Timeout: 20 * time.Millisecond}}, "", "time limit of 20ms"},
		"too much":               {[]Hook{script(BeforeCall, "yes")}, "", "output limit"},
		"no JSON":                {[]Hook{script(BeforeCall, "echo ok")}, "", "not valid JSON"},
		"two answers":            {[]Hook{script(BeforeCall, "echo '{}{}'")}, "", "text after"},
		"duplicate keys":         {[]Hook{script(BeforeCall, `echo '{"decision":"deny","decision":"allow"}'`)}, "", "duplicate key"},
		"no object":              {[]Hook{script(BeforeCall, "echo null")}, "", "is invalid"},
		"a misspelt key":         {[]Hook{script(BeforeCall, `echo '{"decison":"deny"}'`)}, "", "is invalid"},
		"a misspelt decision":    {[]Hook{script(BeforeCall, `echo '{"decision":"no"}'`)}, "", "is invalid"},
		"invalid params":         {[]Hook{script(BeforeCall, `echo '{"params":[1]}'`)}, "", "must be a JSON object"},
		"result before the call": {[]Hook{script(BeforeCall, `echo '{"result":{"llmContent":"x"}}'`)}, "", "before a call it may only return params"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := set(t, tt.hooks...).Before(t.Context(), tool, params(`{"n":1}`))
			if string(got) != tt.want {
				t.Errorf("params %s, want %s", got, tt.want)
			}
			if tt.denied == "" && err != nil || tt.denied != "" && (!errors.Is(err, registry.ErrDenied) || !strings.Contains(err.Error(), tt.denied)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestHookInput(t *testing.T) {
	s := set(t, script(BeforeCall, "cat > in; pwd >> in"), script(AfterCall, "cat > in"), script(OnRegister, "cat > in"), script(OnDiagnostic, "cat > in"))
	if _, _, err := s.Before(t.Context(), tool, params(`{"a":"<é>"}`)); err != nil {
		t.Fatal(err)
	}
	const about = `{"name":"log","source":"mcp:git","server":"git","serverTool":"log","category":"other"}`
	read := func(want string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(s.Dir, "in"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(data)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	real, err := filepath.EvalSymlinks(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	read(`{"event":"beforeCall","tool":` + about + `,"params":{"a":"<é>"}}` + "\n" + real + "\n")
	r := registry.Result{Content: []registry.Content{registry.TextContent("x")}, IsError: true, ErrorCategory: "execution", Duration: 2 * time.Millisecond}
	if _, err := s.After(t.Context(), tool, params(`{}`), r); err != nil {
		t.Fatal(err)
	}
	read(`{"event":"afterCall","tool":` + about + `,"params":{},"result":{"ok":false,"isError":true,"errorCategory":"execution","llmContent":[{"type":"text","text":"x"}],"durationMs":2}}` + "\n")
	if err := s.Registered(t.Context(), []*registry.Tool{tool}); err != nil {
		t.Fatal(err)
	}
	read(`{"event":"onRegister","tools":[` + about + `]}` + "\n")
	if err := s.Noticed(t.Context(), []registry.Diagnostic{{Severity: "warning", Code: "c", Message: "m"}}); err != nil {
		t.Fatal(err)
	}
	read(`{"event":"onDiagnostic","diagnostics":[{"severity":"warning","code":"c","message":"m"}]}` + "\n")
}

// If an override changes the params, hooks also get what the source of the tool does, from which they may refuse the call.
func TestHooksSeeBothShapes(t *testing.T) {
	reshaped := *tool
	reshaped.Wire = func(call registry.Call) (registry.Call, error) {
		call.Params = json.RawMessage(strings.Replace(string(call.Params), "new", "old", 1))
		if !strings.Contains(string(call.Params), "old") {
			return call, errors.New("it is not translated")
		}
		return call, nil
	}
	s := set(t, script(BeforeCall, `cat >> in; echo '{"params":{"new":2}}'`), script(BeforeCall, "cat >> in"), script(AfterCall, "cat >> in"))
	changed, _, err := s.Before(t.Context(), &reshaped, params(`{"new":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.After(t.Context(), &reshaped, params(string(changed)), registry.TextResult("x")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(s.Dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(data)) {
		_, both, _ := strings.Cut(line, `"params":`)
		got = append(got, strings.SplitAfterN(both, "}", 3)[0]+strings.SplitAfterN(both, "}", 3)[1])
	}
	want := []string{`{"new":1},"wire":{"old":1}`, `{"new":2},"wire":{"old":2}`, `{"new":2},"wire":{"old":2}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, _, err := s.Before(t.Context(), &reshaped, params(`{}`)); !errors.Is(err, registry.ErrDenied) || !strings.Contains(err.Error(), "not translated") {
		t.Errorf("untranslated: %v", err)
	}
	if _, err := s.After(t.Context(), &reshaped, params(`{}`), registry.TextResult("x")); err == nil {
		t.Error("a result is shown that its hook has not seen")
	}
}

func TestAfter(t *testing.T) {
	old := registry.Result{Content: []registry.Content{registry.TextContent("secret")}, Display: registry.Display{Text: "secret"}, Summary: "secret",
		Structured: json.RawMessage(`"secret"`), Locations: []registry.Location{{Path: "secret"}}, Duration: 7}
	for name, tt := range map[string]struct {
		answer string // script
		want   registry.Result
		failed string
	}{
		"nothing said":  {"", old, ""},
		"replaced":      {`echo '{"result":{"llmContent":"clean"}}'`, registry.Result{Content: []registry.Content{registry.TextContent("clean")}, Duration: 7}, ""},
		"made an error": {`echo '{"result":{"llmContent":"bad","isError":true}}'`, registry.Result{Content: []registry.Content{registry.TextContent("bad")}, IsError: true, ErrorCategory: "execution", Duration: 7}, ""},
		"parts": {`echo '{"result":{"llmContent":[{"type":"text","text":"t"},{"type":"image","data":"iVBORw==","mimeType":"image/png"}],"structuredContent":{"n":1}}}'`,
			registry.Result{Content: []registry.Content{registry.TextContent("t"), {Type: "image", Data: []byte("\x89PNG"), MIMEType: "image/png"}}, Structured: json.RawMessage(`{"n":1}`), Duration: 7}, ""},
		"withheld":              {`echo '{"decision":"deny","reason":"leak"}'`, registry.Result{}, "has run, and its result is withheld by the afterCall hook \"/bin/sh\": leak"},
		"failed":                {"exit 1", registry.Result{}, "withheld because"},
		"asking too late":       {`echo '{"decision":"ask"}'`, registry.Result{}, "it requested confirmation, but after a call"},
		"params after the call": {`echo '{"params":{}}'`, registry.Result{}, "after a call it may only return a result"},
		"no content":            {`echo '{"result":{}}'`, registry.Result{}, "needs llmContent"},
		"null content":          {`echo '{"result":{"llmContent":null}}'`, registry.Result{}, "needs llmContent"},
		"an unknown part":       {`echo '{"result":{"llmContent":[{"type":"video"}]}}'`, registry.Result{}, `type is "video"`},
		"an unknown field":      {`echo '{"result":{"llmContent":"x","text":1}}'`, registry.Result{}, "is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := set(t, script(AfterCall, tt.answer)).After(t.Context(), tool, params("{}"), old)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.failed == "" && err != nil || tt.failed != "" && (err == nil || !strings.Contains(err.Error(), tt.failed)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestScreens(t *testing.T) {
	s := set(t, script(AfterCall, "", "lo?"), script(BeforeCall, ""))
	if other := (&registry.Tool{Definition: registry.Definition{Name: "status"}}); !s.Screens(tool) || s.Screens(other) {
		t.Error("Screens is true for the wrong tools")
	}
}

func TestCanceledHookFails(t *testing.T) {
	stop := errors.New("interrupt")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, _, err := set(t, script(BeforeCall, "")).Before(ctx, tool, params("{}")); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	if r, err := set(t, script(AfterCall, "")).After(ctx, tool, params("{}"), registry.TextResult("x")); !errors.Is(err, stop) || r.Content != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestExpansionFailsClosed(t *testing.T) {
	s := set(t, script(BeforeCall, "exit 1"))
	s.Hooks[0].Expand = func() ([]string, error) { return nil, errors.New("variable X is not set") }
	if _, _, err := s.Before(t.Context(), tool, params("{}")); !errors.Is(err, registry.ErrDenied) || !strings.Contains(err.Error(), "X is not set") {
		t.Errorf("error %v", err)
	}
}

// TestEarlierScopesCheckFinalParams checks that hooks of an earlier scope run again
// if a hook of a later scope changed the params, and only then. Each hook records
// its input.
func TestEarlierScopesCheckFinalParams(t *testing.T) {
	const note = `printf %s "$(sed 's/.*"params"://; s/}$//')" >> NOTES; echo >> NOTES; `
	for _, tt := range []struct {
		name   string
		places []int
		doing  []string // what each hook prints
		want   []string // params that hooks received, in order
		ends   string   // final params; "" means denied
		asks   string   // reason for confirmation
	}{
		{"one place, changed", []int{0, 0}, []string{`echo '{"params":{"a":1}}'`, ""}, []string{"{}", `{"a":1}`}, `{"a":1}`, ""},
		{"changed by the earlier", []int{0, 1}, []string{`echo '{"params":{"a":1}}'`, ""}, []string{"{}", `{"a":1}`}, `{"a":1}`, ""},
		{"changed by the later", []int{0, 1}, []string{"", `echo '{"params":{"a":2}}'`}, []string{"{}", "{}", `{"a":2}`}, `{"a":2}`, ""},
		{"changes of the second run are ignored", []int{0, 2}, []string{`echo '{"params":{"a":1}}'`, `echo '{"params":{"a":2}}'`}, []string{"{}", `{"a":1}`, `{"a":2}`}, `{"a":2}`, ""},
		{"refused then", []int{0, 1}, []string{`grep -q 3 NOTES && echo '{"decision":"deny"}'; true`, `echo '{"params":{"a":3}}'`}, []string{"{}", "{}", `{"a":3}`}, "", ""},
		{"broken then", []int{0, 1}, []string{`! grep -q 3 NOTES`, `echo '{"params":{"a":3}}'`}, []string{"{}", "{}", `{"a":3}`}, "", ""},
		{"asked about then", []int{0, 1}, []string{`grep -q 3 NOTES && echo '{"decision":"ask","reason":"three"}'; true`, `echo '{"params":{"a":3}}'`}, []string{"{}", "{}", `{"a":3}`}, `{"a":3}`, "requests confirmation: three"},
		{"first hook that asks", []int{0, 0}, []string{`echo '{"decision":"ask"}'`, `echo '{"decision":"ask","reason":"b","params":{"a":4}}'`}, []string{"{}", "{}"}, `{"a":4}`, "requests confirmation: no reason given"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			notes := filepath.Join(t.TempDir(), "notes")
			var hooks []Hook
			for i, doing := range tt.doing {
				h := script(BeforeCall, strings.ReplaceAll(note+doing, "NOTES", notes))
				h.Place = tt.places[i]
				hooks = append(hooks, h)
			}
			got, asking, err := set(t, hooks...).Before(t.Context(), tool, params("{}"))
			if string(got) != tt.ends || (tt.ends == "") != errors.Is(err, registry.ErrDenied) {
				t.Errorf("%s, %v", got, err)
			}
			if !strings.HasSuffix(asking.Reason, tt.asks) || (tt.asks == "") != (asking.Reason == "") {
				t.Errorf("asking %+v", asking)
			}
			asked, err := os.ReadFile(notes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, strings.Fields(string(asked))); diff != "" {
				t.Errorf("asked about (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzAnswer checks that any output of a hook is either a valid answer or an error.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"decision":"deny","reason":"x"}`, `{"params":{"a":1}}`, `{"result":{"llmContent":[{"type":"text"}]}}`, "[", `{"result":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseAnswer(data)
		if err != nil {
			return
		}
		if a.Decision != "" && a.Decision != "allow" && a.Decision != "deny" {
			t.Errorf("decision %q", a.Decision)
		}
		if len(a.Result) > 0 {
			if r, err := replace(registry.TextResult("old"), a.Result); err == nil && r.Content == nil {
				t.Error("a result without content")
			}
		}
	})
}
