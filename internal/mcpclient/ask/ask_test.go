package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// refusals collects the reports of a Handler about what it refused.
type refusals []string

func (r *refusals) add(server, what, reason string) {
	*r = append(*r, fmt.Sprintf("%s: %s: %s", server, what, reason))
}

func handler(change func(*Options)) (*Handler, *refusals) {
	var refused refusals
	o := Options{Server: "srv", MaxSamples: 3, MaxParams: 200, Logger: slog.New(slog.DiscardHandler)}
	o.Refused = refused.add
	if change != nil {
		change(&o)
	}
	return New(o), &refused
}

// accepting answers every elicitation with content.
func accepting(content string) func(*Options) {
	return func(o *Options) {
		o.Elicit = func(context.Context, Elicitation) (Answer, error) {
			return Answer{Action: "accept", Content: json.RawMessage(content)}, nil
		}
	}
}

func TestElicit(t *testing.T) {
	const form = `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`
	tests := []struct {
		name, params string
		change       func(*Options)
		want         string
		refused      string
	}{
		{"order and digits are kept", form, accepting(`{"z":12345678901234567890,"a":"x"}`), `{"action":"accept","content":{"z":12345678901234567890,"a":"x"}}`, ""},
		{"empty answer", form, accepting(``), `{"action":"accept","content":{}}`, ""},
		{"content that is not an object", form, accepting(`[1]`), `{"action":"cancel"}`, ""},
		{"content of a URL answer is dropped", `{"mode":"url","url":"https://a/","message":"m"}`, accepting(`{"a":1}`), `{"action":"accept"}`, ""},
		{"a URL without a mode", `{"url":"https://a/"}`, accepting(``), `{"action":"accept"}`, ""},
		{"a URL that hides its host", `{"url":"https://bank@evil/"}`, accepting(``), `{"action":"decline"}`, "user name before the host"},
		{"an unknown mode", `{"mode":"voice"}`, accepting(``), `{"action":"decline"}`, `its mode "voice" is not supported`},
		{"no params", `5`, accepting(``), `{"action":"decline"}`, "it has no params"},
		{"no user", form, nil, `{"action":"decline"}`, ""},
		{"an unknown action", form, func(o *Options) {
			o.Elicit = func(context.Context, Elicitation) (Answer, error) { return Answer{Action: "shrug"}, nil }
		}, `{"action":"decline"}`, ""},
		{"an error", form, func(o *Options) {
			o.Elicit = func(context.Context, Elicitation) (Answer, error) {
				return Answer{Action: "accept"}, errors.New("no tty")
			}
		}, `{"action":"cancel"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, refused := handler(tt.change)
			got, err := h.Handle(t.Context(), NewRequest(t.Context(), "tool x"), "elicitation/create", json.RawMessage(tt.params))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
			if told := strings.Join(*refused, "\n"); (told == "") != (tt.refused == "") || !strings.Contains(told, tt.refused) {
				t.Errorf("refused %q, want %q", told, tt.refused)
			}
		})
	}
}

func TestElicitationShownToTheUser(t *testing.T) {
	var seen Elicitation
	h, _ := handler(func(o *Options) {
		o.Elicit = func(_ context.Context, e Elicitation) (Answer, error) { seen = e; return Answer{}, nil }
	})
	long := strings.Repeat("é", maxMessage)
	request := NewRequest(t.Context(), "tool x")
	if request.Asked() {
		t.Error("asked before anything was")
	}
	const asked = `{"message":"%s","requestedSchema":{"type":"object","properties":{"f":{"enum":["a"]}}}}`
	params := json.RawMessage(fmt.Sprintf(asked, long))
	if _, err := h.Handle(t.Context(), request, "elicitation/create", params); err != nil {
		t.Fatal(err)
	}
	if !request.Asked() {
		t.Error("not asked")
	}
	want := fmt.Sprintf("%s…\n(cut at %d of %d bytes)", long[:maxMessage], maxMessage, len(long))
	if seen.Server != "srv" || seen.During != "tool x" || seen.Mode != "form" || seen.Message != want || seen.Form == nil {
		t.Errorf("seen %.200v", seen)
	}
	if want := `{"type":"object","properties":{"f":{"enum":["a"],"type":"string"}}}`; string(seen.Schema) != want {
		t.Errorf("schema %s, want %s", seen.Schema, want)
	}
}

func TestQuestionsHaveALimit(t *testing.T) {
	h, refused := handler(accepting(""))
	request := NewRequest(t.Context(), "tool x")
	for i := range maxQuestions + 1 {
		got, _ := h.Handle(t.Context(), request, "elicitation/create", json.RawMessage(`{}`))
		if accepted := strings.Contains(string(got), "accept"); accepted != (i < maxQuestions) {
			t.Errorf("question %d: %s", i+1, got)
		}
	}
	if want := []string{"srv: question: more than 20 were asked during tool x"}; !cmp.Equal(want, []string(*refused)) {
		t.Errorf("refused %q, want %q", *refused, want)
	}
	if got, _ := h.Handle(t.Context(), nil, "elicitation/create", json.RawMessage(`{}`)); string(got) != `{"action":"decline"}` {
		t.Errorf("during no request: %s", got)
	}
}

func TestSampling(t *testing.T) {
	const ask = `{"messages":[{"role":"user","content":{"type":"text","text":"q"}}]}`
	answer := func(result string, err error) func(*Options) {
		return func(o *Options) {
			o.Sample = func(_ context.Context, s Sampling) (json.RawMessage, error) { return json.RawMessage(result), err }
		}
	}
	good := answer(`{"role":"assistant","content":{"z":1,"a":2}}`, nil)
	tests := []struct {
		name, params string
		change       func(*Options)
		want, fails  string
	}{
		{"unchanged", ask, good, `{"role":"assistant","content":{"z":1,"a":2}}`, ""},
		{"several blocks", ask, answer(`{"role":"assistant","content":[{"a":1},{"b":2}]}`, nil), `{"role":"assistant","content":[{"a":1},{"b":2}]}`, ""},
		{"no blocks", ask, answer(`{"role":"assistant","content":[]}`, nil), "", "not a message with a role and content"},
		{"not available", ask, nil, "", "sampling is not available"},
		{"no messages", `{"messages":[]}`, good, "", "it has no messages"},
		{"too long", `{"messages":[1],"x":"` + strings.Repeat("x", 200) + `"}`, good, "", "it has 223 bytes, but the limit is 200"},
		{"with tools", `{"messages":[1],"tools":[]}`, good, "", "it includes tools"},
		{"refused", ask, answer("", errors.New("not today")), "", "sampling was refused: not today"},
		{"no role", ask, answer(`{"content":{}}`, nil), "", "not a message with a role and content"},
		{"invalid JSON", ask, answer(`{"role":"assistant","content":{}`, nil), "", "not a message with a role and content"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := handler(tt.change)
			got, err := h.Handle(t.Context(), NewRequest(t.Context(), "tool x"), "sampling/createMessage", json.RawMessage(tt.params))
			if string(got) != tt.want || (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	h, refused := handler(good)
	request := NewRequest(t.Context(), "tool x")
	for i := range 4 {
		if _, err := h.Handle(t.Context(), request, "sampling/createMessage", json.RawMessage(ask)); (err == nil) != (i < 3) {
			t.Errorf("sampling request %d: %v", i+1, err)
		}
	}
	if want := []string{"srv: sampling request: more than 3 were asked during one request"}; !cmp.Equal(want, []string(*refused)) {
		t.Errorf("refused %q, want %q", *refused, want)
	}
}

func TestInputs(t *testing.T) {
	many := strings.Repeat(`"k":{"method":"roots/list"},`, maxQuestions+1)
	tests := []struct{ name, result, want, fails string }{
		{"in order, with the state", `{"inputRequests":{"b":{"method":"roots/list"},"a\u2028":{"method":"elicitation/create","params":{}}},"requestState":{"n":1.0}}`,
			`"inputResponses":{"b":{"roots":[{"name":"w","uri":"file:///w"}]},"a\u2028":{"action":"accept","content":{"x":1}}},"requestState":{"n":1.0}`, ""},
		{"not an object", `{"inputRequests":[]}`, "", "request for input is malformed"},
		{"a method that clients do not answer", `{"inputRequests":{"a":{"method":"tools/list"}}}`, "", `its request for input was not answered: not a request that clients answer: "tools/list"`},
		{"too many", `{"inputRequests":{` + many[:len(many)-1] + `}}`, "", "more than 20 inputs at once"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := handler(func(o *Options) { accepting(`{"x":1}`)(o); o.Workspace = "/w" })
			got, err := h.Inputs(t.Context(), NewRequest(t.Context(), "tool x"), json.RawMessage(tt.result))
			if string(got) != tt.want || (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
			if err == nil && !json.Valid([]byte("{"+string(got)+"}")) {
				t.Error("no members of an object")
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	tests := []struct {
		name, data string
		change     func(*Options)
		want       bool
		forgotten  string
	}{
		{"both opened", `{"elicitations":[{"url":"https://a/","elicitationId":"1"},{"url":"https://b/","elicitationId":"2"}]}`, accepting(""), true, "1 2 "},
		{"no URLs", `{"elicitations":[]}`, accepting(""), false, ""},
		{"a form among them", `{"elicitations":[{"mode":"form"}]}`, accepting(""), false, ""},
		{"declined", `{"elicitations":[{"url":"https://a/","elicitationId":"1"},{"url":"https://b/","elicitationId":"2"}]}`, nil, false, "1 "},
		{"not a web URL", `{"elicitations":[{"url":"file:///etc/passwd"}]}`, accepting(""), false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := handler(tt.change)
			forgotten := ""
			completion := func(id string) (<-chan struct{}, func()) {
				return make(chan struct{}), func() { forgotten += id + " " }
			}
			if got := h.Addresses(t.Context(), NewRequest(t.Context(), "tool x"), json.RawMessage(tt.data), completion); got != tt.want || forgotten != tt.forgotten {
				t.Errorf("again %v, no longer waited for %q", got, forgotten)
			}
		})
	}
}
