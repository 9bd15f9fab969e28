package asking

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/ui/ttytest"
)

// typing is a step of the person: wait for the text, then type.
type typing struct{ when, what string }

// asked asks one question, which the person answers with the given steps.
func asked(t *testing.T, a *Terminal, q ask.Elicitation, person ...typing) (ask.Answer, *ttytest.Terminal) {
	t.Helper()
	p := ttytest.New(t)
	a.TTY = p.TTY
	type outcome struct {
		reply ask.Answer
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.reply, o.err = a.Elicit(t.Context(), q)
		done <- o
	}()
	times := map[string]int{}
	for _, k := range person {
		times[k.when]++
		p.Await(k.when, times[k.when])
		p.Typed(k.what)
	}
	o := <-done
	if o.err != nil {
		t.Fatal(o.err)
	}
	return o.reply, p
}

func parseForm(t *testing.T, schema string) *form.Form {
	t.Helper()
	f, err := form.Parse(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const personSchema = `{"type":"object","required":["name"],"properties":{
	"name":{"type":"string","title":"Your name\u001b[2J"},
	"age":{"type":"integer","minimum":1,"maximum":150},
	"color":{"type":"string","enum":["red","green"],"default":"green"}}}`

func TestForm(t *testing.T) {
	const send = "Send this? [y]es, [e]dit, [c]ancel, [v]iew, [n]o: "
	name, age, color := typing{"1 of 3:", "Ann\n"}, typing{"2 of 3:", "7\n"}, typing{"3 of 3:", "\n"}
	for _, tt := range []struct {
		name    string
		person  []typing
		reply   string
		content string
		shows   []string
	}{
		{"yes", []typing{name, age, color, {send, "y\n"}}, ask.Accept, `{"name":"Ann","age":7,"color":"green"}`,
			[]string{`MCP server "s" asks for input during tool "t".`, "  │ Tell me\\x07", `Your name\x1b[2J (name)`, "  │ age: 7", "Enter accepts green, /skip leaves it out"}},
		{"left out", []typing{name, {"2 of 3:", "\n"}, {"3 of 3:", "/skip\n"}, {send, "YES\n"}}, ask.Accept, `{"name":"Ann"}`, nil},
		{"needed, and out of range", []typing{{"1 of 3:", "\n"}, {"an answer is required", "Ann\n"}, {"2 of 3:", "200\n"}, {"out of range", "20\n"}, color, {send, "y\n"}},
			ask.Accept, `{"name":"Ann","age":20,"color":"green"}`, nil},
		{"edited", []typing{name, age, color, {send, "e\n"}, {"Enter accepts Ann", "Bea\n"}, {"2 of 3:", "\n"}, {"3 of 3:", "1\n"}, {send, "y\n"}},
			ask.Accept, `{"name":"Bea","age":7,"color":"red"}`, nil},
		{"refused in a field", []typing{name, {"2 of 3:", "/decline\n"}}, ask.Decline, "", nil},
		{"no", []typing{name, age, color, {send, "n\n"}}, ask.Decline, "", nil},
		{"cancelled", []typing{name, age, color, {send, "c\n"}}, ask.Cancel, "", nil},
		{"what is no answer asks again", []typing{name, age, color, {send, "x\n"}, {send, "maybe\n"}, {send, "y\n"}}, ask.Accept, `{"name":"Ann","age":7,"color":"green"}`,
			[]string{"Please answer yes, edit, cancel, view or no.\r\nSend to MCP server \"s\": name=Ann, age=7, color=green\r\n"}},
		{"Enter", []typing{name, age, color, {send, "\n"}}, ask.Decline, "", nil},
		{"end of input", []typing{{"1 of 3:", "\x04"}}, ask.Cancel, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := ask.Elicitation{Server: "s", During: `tool "t"`, Message: "Tell me\x07", Form: parseForm(t, personSchema)}
			reply, screen := asked(t, &Terminal{}, q, tt.person...)
			if reply.Action != tt.reply || string(reply.Content) != tt.content {
				t.Errorf("%+v, want %s with %s", reply, tt.reply, tt.content)
			}
			for _, text := range tt.shows {
				screen.Await(text, 1)
			}
		})
	}
}

func TestFormWithoutFields(t *testing.T) {
	reply, screen := asked(t, &Terminal{}, ask.Elicitation{Server: "s", Form: parseForm(t, `{"type":"object"}`)}, typing{"Agree? [y]es, [c]ancel, [v]iew, [n]o: ", "y\n"})
	if reply.Action != ask.Accept || string(reply.Content) != "{}" || strings.Contains(screen.Output(), "What you type") {
		t.Errorf("%+v:\n%s", reply, screen.Output())
	}
}

func TestAddress(t *testing.T) {
	const open, byHand = "Open it? [y]es, [m]yself, [c]ancel, [v]iew, [n]o: ", "Open it? [m]yself, [c]ancel, [v]iew, [n]o: "
	over := make(chan struct{})
	close(over)
	for _, tt := range []struct {
		name, url string
		person    []typing
		noBrowser bool
		fails     error
		done      chan struct{}
		reply     string
		opened    string
		shows     string
	}{
		{name: "yes", url: "https://a.example/x?y=1", person: []typing{{open, "y\n"}}, reply: ask.Accept, opened: "https://a.example/x?y=1", shows: "Host:\n  │ a.example\n"},
		{name: "by hand", url: "https://a.example/", person: []typing{{open, "m\n"}}, reply: ask.Accept},
		{name: "no browser", url: "https://a.example/", person: []typing{{byHand, "m\n"}}, noBrowser: true, reply: ask.Accept},
		{name: "no", url: "https://a.example/", person: []typing{{open, "n\n"}}, reply: ask.Decline},
		{name: "cancelled", url: "https://a.example/", person: []typing{{open, "c\n"}}, reply: ask.Cancel},
		{name: "it does not open", url: "https://a.example/", person: []typing{{open, "y\n"}}, fails: errors.New("no\x07"), reply: ask.Accept,
			opened: "https://a.example/", shows: `no\x07; open the address above yourself.`},
		{name: "letters that look alike", url: "https://аpple.com/", person: []typing{{open, "n\n"}}, reply: ask.Decline, shows: "  │ xn--pple-43d.com is shown as"},
		{name: "this machine", url: "http://localhost:1/", person: []typing{{open, "n\n"}}, reply: ask.Decline, shows: "Note: it goes to a program on this machine, unencrypted."},
		{name: "many parts", url: "https://a.b.c.d.e.example/", person: []typing{{open, "n\n"}}, reply: ask.Decline, shows: "Note: the host has many parts"},
		{name: "no address", url: "mailto:x", reply: ask.Decline},
		{name: "done there", url: "https://a.example/", person: []typing{{open, "m\n"}, {"Finished there? [y]es, [c]ancel, [v]iew, [n]o: ", "y\n"}}, done: make(chan struct{}), reply: ask.Accept},
		{name: "not done there", url: "https://a.example/", person: []typing{{open, "m\n"}, {"Finished there?", "n\n"}}, done: make(chan struct{}), reply: ask.Decline},
		{name: "canceled there", url: "https://a.example/", person: []typing{{open, "m\n"}, {"Finished there?", "c\n"}}, done: make(chan struct{}), reply: ask.Cancel},
		{name: "the server reports that it is finished", url: "https://a.example/", person: []typing{{open, "m\n"}}, done: over, reply: ask.Accept},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opened := ""
			a := &Terminal{Open: func(_ context.Context, address string) error { opened = address; return tt.fails }}
			if tt.noBrowser {
				a.Open = nil
			}
			reply, screen := asked(t, a, ask.Elicitation{Server: "s", URL: tt.url, Done: tt.done}, tt.person...)
			if reply.Action != tt.reply || opened != tt.opened {
				t.Errorf("%+v, opened %q; want %s and %q", reply, opened, tt.reply, tt.opened)
			}
			screen.Await(strings.ReplaceAll(tt.shows, "\n", "\r\n"), 1)
		})
	}
}
