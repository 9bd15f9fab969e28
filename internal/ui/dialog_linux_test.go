package ui

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/form"
)

// typing is a step of the person: wait for the text, then type.
type typing struct{ when, what string }

// asked asks one question, which the person answers with the given steps.
func asked(t *testing.T, a *Asker, q Asked, person ...typing) (Reply, *pty) {
	t.Helper()
	p := newPTY(t)
	a.TTY = p.tty
	type outcome struct {
		reply Reply
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		o.reply, o.err = a.Ask(t.Context(), q)
		done <- o
	}()
	times := map[string]int{}
	for _, k := range person {
		times[k.when]++
		p.await(k.when, times[k.when])
		p.typed(k.what)
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
		reply   Action
		content string
		shows   []string
	}{
		{"yes", []typing{name, age, color, {send, "y\n"}}, Accept, `{"name":"Ann","age":7,"color":"green"}`,
			[]string{`MCP server "s" asks for input during tool "t".`, "  │ Tell me\\x07", `Your name\x1b[2J (name)`, "  │ age: 7", "Enter accepts green, /skip leaves it out"}},
		{"left out", []typing{name, {"2 of 3:", "\n"}, {"3 of 3:", "/skip\n"}, {send, "YES\n"}}, Accept, `{"name":"Ann"}`, nil},
		{"needed, and out of range", []typing{{"1 of 3:", "\n"}, {"an answer is required", "Ann\n"}, {"2 of 3:", "200\n"}, {"out of range", "20\n"}, color, {send, "y\n"}},
			Accept, `{"name":"Ann","age":20,"color":"green"}`, nil},
		{"edited", []typing{name, age, color, {send, "e\n"}, {"Enter accepts Ann", "Bea\n"}, {"2 of 3:", "\n"}, {"3 of 3:", "1\n"}, {send, "y\n"}},
			Accept, `{"name":"Bea","age":7,"color":"red"}`, nil},
		{"refused in a field", []typing{name, {"2 of 3:", "/decline\n"}}, Decline, "", nil},
		{"no", []typing{name, age, color, {send, "n\n"}}, Decline, "", nil},
		{"cancelled", []typing{name, age, color, {send, "c\n"}}, Cancel, "", nil},
		{"what is no answer asks again", []typing{name, age, color, {send, "x\n"}, {send, "maybe\n"}, {send, "y\n"}}, Accept, `{"name":"Ann","age":7,"color":"green"}`,
			[]string{"Please answer yes, edit, cancel, view or no.\r\nSend to MCP server \"s\": name=Ann, age=7, color=green\r\n"}},
		{"Enter", []typing{name, age, color, {send, "\n"}}, Decline, "", nil},
		{"end of input", []typing{{"1 of 3:", "\x04"}}, Cancel, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := Asked{Server: "s", During: `tool "t"`, Message: "Tell me\x07", Form: parseForm(t, personSchema)}
			reply, screen := asked(t, &Asker{}, q, tt.person...)
			if reply.Action != tt.reply || string(reply.Content) != tt.content {
				t.Errorf("%+v, want %d with %s", reply, tt.reply, tt.content)
			}
			for _, text := range tt.shows {
				screen.await(text, 1)
			}
		})
	}
}

func TestFormWithoutFields(t *testing.T) {
	reply, screen := asked(t, &Asker{}, Asked{Server: "s", Form: parseForm(t, `{"type":"object"}`)}, typing{"Agree? [y]es, [c]ancel, [v]iew, [n]o: ", "y\n"})
	if reply.Action != Accept || string(reply.Content) != "{}" || strings.Contains(screen.output(), "What you type") {
		t.Errorf("%+v:\n%s", reply, screen.output())
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
		reply     Action
		opened    string
		shows     string
	}{
		{name: "yes", url: "https://a.example/x?y=1", person: []typing{{open, "y\n"}}, reply: Accept, opened: "https://a.example/x?y=1", shows: "Host:\n  │ a.example\n"},
		{name: "by hand", url: "https://a.example/", person: []typing{{open, "m\n"}}, reply: Accept},
		{name: "no browser", url: "https://a.example/", person: []typing{{byHand, "m\n"}}, noBrowser: true, reply: Accept},
		{name: "no", url: "https://a.example/", person: []typing{{open, "n\n"}}, reply: Decline},
		{name: "cancelled", url: "https://a.example/", person: []typing{{open, "c\n"}}, reply: Cancel},
		{name: "it does not open", url: "https://a.example/", person: []typing{{open, "y\n"}}, fails: errors.New("no\x07"), reply: Accept,
			opened: "https://a.example/", shows: `no\x07; open the address above yourself.`},
		{name: "letters that look alike", url: "https://аpple.com/", person: []typing{{open, "n\n"}}, reply: Decline, shows: "  │ xn--pple-43d.com is shown as"},
		{name: "this machine", url: "http://localhost:1/", person: []typing{{open, "n\n"}}, reply: Decline, shows: "Note: it goes to a program on this machine, unencrypted."},
		{name: "many parts", url: "https://a.b.c.d.e.example/", person: []typing{{open, "n\n"}}, reply: Decline, shows: "Note: the host has many parts"},
		{name: "no address", url: "mailto:x", reply: Decline},
		{name: "done there", url: "https://a.example/", person: []typing{{open, "m\n"}, {"Finished there? [y]es, [c]ancel, [v]iew, [n]o: ", "y\n"}}, done: make(chan struct{}), reply: Accept},
		{name: "not done there", url: "https://a.example/", person: []typing{{open, "m\n"}, {"Finished there?", "n\n"}}, done: make(chan struct{}), reply: Decline},
		{name: "canceled there", url: "https://a.example/", person: []typing{{open, "m\n"}, {"Finished there?", "c\n"}}, done: make(chan struct{}), reply: Cancel},
		{name: "the server reports that it is finished", url: "https://a.example/", person: []typing{{open, "m\n"}}, done: over, reply: Accept},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opened := ""
			a := &Asker{Open: func(_ context.Context, address string) error { opened = address; return tt.fails }}
			if tt.noBrowser {
				a.Open = nil
			}
			reply, screen := asked(t, a, Asked{Server: "s", URL: tt.url, Done: tt.done}, tt.person...)
			if reply.Action != tt.reply || opened != tt.opened {
				t.Errorf("%+v, opened %q; want %d and %q", reply, opened, tt.reply, tt.opened)
			}
			screen.await(strings.ReplaceAll(tt.shows, "\n", "\r\n"), 1)
		})
	}
}
