package console

import (
	"strings"
	"testing"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
)

// A browser that comes late, or does not read for a while, gets the latest calls and no call
// twice.
func TestOnlyTheLatestCallsAreKept(t *testing.T) {
	c := New()
	var early seen
	var got []call
	read := func(s *seen) {
		u, _ := c.since(s)
		got = append(got, u.Calls...)
	}
	total := 2*maxEnded + 7
	for i := range total {
		c.Began(audit.Entry{Tool: "t", Time: time.Now()})(&audit.Entry{Tool: "t", Outcome: audit.OK, DurationMs: float64(i)})
		if i == maxEnded/2 {
			read(&early)
		}
	}
	if len(got) != maxEnded/2+1 {
		t.Errorf("the first half has %d calls", len(got))
	}
	for _, s := range []*seen{&early, {}} {
		got = nil
		read(s)
		if len(got) != maxEnded || got[0].Ms != float64(total-maxEnded) || got[maxEnded-1].Ms != float64(total-1) {
			t.Errorf("%d calls, from %v to %v", len(got), got[0].Ms, got[len(got)-1].Ms)
		}
		if u, changed := c.since(s); changed {
			t.Errorf("again %+v", u)
		}
	}
}

// Names of others are escaped and cut, and a call that goes on elsewhere is not shown as ended.
func TestCallsAreEscaped(t *testing.T) {
	c := New()
	long := "\u202e\x1b[2J\n" + strings.Repeat("x", 10<<20)
	entry := audit.Entry{Tool: long, Caller: &audit.Caller{Name: long, Client: long}}
	ended := c.Began(entry)
	u, _ := c.since(&seen{running: -1})
	one := (*u.Running)[0]
	for _, text := range []string{one.Tool, one.Caller, one.Client} {
		if !strings.HasPrefix(text, `\u202e\x1b[2J\nxxx`) || len(text) > 2*maxName {
			t.Errorf("shown as %.60q, %d bytes", text, len(text))
		}
	}
	ended(nil)
	if u, _ := c.since(&seen{running: -1}); len(*u.Running) != 0 || len(u.Calls) != 0 {
		t.Errorf("left: %+v", u)
	}
}

func TestAnswerToForm(t *testing.T) {
	parsed, err := form.Parse([]byte(`{"type":"object","required":["who"],"properties":{"who":{"type":"string","title":"Name"},"age":{"type":"integer","minimum":18,"default":21},"ok":{"type":"boolean"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := ask.Elicitation{Mode: "form", Form: parsed}
	for _, one := range []struct {
		fields  map[string]string
		content string
		wrong   string
	}{
		{map[string]string{"who": "Ann", "age": "30", "ok": "yes"}, `{"who":"Ann","age":30,"ok":true}`, ""},
		{map[string]string{"who": "Ann", "age": "21"}, `{"who":"Ann","age":21}`, ""},
		{map[string]string{"who": "Ann", "age": ""}, `{"who":"Ann"}`, ""},
		{map[string]string{"age": "30"}, "", "Name (who): an answer is required"},
		{map[string]string{"who": "Ann", "age": "17"}, "", "age: "},
		{map[string]string{"who": "Ann", "ok": "perhaps"}, "", "ok: answer yes or no"},
	} {
		a, err := answerOf(e, reply{Choice: wordSend, Fields: one.fields})
		if one.wrong != "" {
			if err == nil || !strings.HasPrefix(err.Error(), one.wrong) {
				t.Errorf("%v: %v, want %q", one.fields, err, one.wrong)
			}
		} else if err != nil || a.Action != "accept" || string(a.Content) != one.content {
			t.Errorf("%v: %s %s, %v", one.fields, a.Action, a.Content, err)
		}
	}
	for word, action := range map[string]string{wordDecline: "decline", wordDismiss: "cancel", "yes": ""} {
		if a, _ := answerOf(e, reply{Choice: word}); a.Action != action {
			t.Errorf("%s: %q", word, a.Action)
		}
	}
}
