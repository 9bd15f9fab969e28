// Package console provides the data of serve's console: calls that run or have ended, questions
// that wait for a person, and servers; and it accepts the person's answers. It is an HTTP handler
// for people who have already authenticated. All texts are untrusted, and are escaped before they
// are sent.
package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
	"github.com/toolreg/toolreg/internal/ui/asking"
)

const (
	// maxEnded is the maximum number of ended calls to remember.
	maxEnded = 10_000
	// maxRunning is the maximum number of running calls to show.
	maxRunning = 200
)

// Server is the state of an MCP server or an API.
type Server struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Error  string `json:"error,omitempty"`
	Tools  int    `json:"tools"`
	Starts bool   `json:"starts"` // it can be started again
}

// Console collects calls and questions. It is safe for concurrent use. Create it with [New].
type Console struct {
	mu        sync.Mutex
	serial    int // number of the last call
	running   map[int]*call
	changes   int    // number of changes to running
	ended     []call // the latest, in a ring
	endedAll  int    // number of calls that have ended so far
	questions []*question
	asked     int // number of changes to questions
}

// New returns an empty console.
func New() *Console { return &Console{running: map[int]*call{}} }

// call is a call as browsers see it.
type call struct {
	ID       int     `json:"id"`
	Start    int64   `json:"start"` // Unix time in milliseconds
	Tool     string  `json:"tool"`
	Caller   string  `json:"caller,omitempty"`   // name of the token
	Client   string  `json:"client,omitempty"`   // name that the client reports
	Script   bool    `json:"script,omitempty"`   // a script makes it
	Decision string  `json:"decision,omitempty"` // of policy
	Outcome  string  `json:"outcome,omitempty"`  // "" while it runs
	Code     string  `json:"code,omitempty"`     // of an error
	Ms       float64 `json:"ms,omitempty"`
	Waited   float64 `json:"waited,omitempty"` // ms that people took to answer
	Size     int64   `json:"size,omitempty"`   // bytes of the result
}

func newCall(id int, e *audit.Entry) call {
	c := call{
		ID: id, Start: e.Time.UnixMilli(), Tool: shortName(e.Tool), Script: e.Parent != "", Decision: e.Decision,
		Outcome: string(e.Outcome), Code: e.Code, Ms: e.DurationMs, Waited: e.WaitedMs, Size: e.ResultBytes,
	}
	if e.Caller != nil {
		c.Caller, c.Client = shortName(e.Caller.Name), shortName(e.Caller.Client)
	}
	return c
}

// maxName is the maximum length of a name in a list, in bytes.
const maxName = 200

// shortName escapes a name for a list.
func shortName(s string) string { return ui.Line(text.Clip(s, maxName)) }

// Began shows a call until ended is called with its outcome, or with nil if the call continues
// elsewhere. It is an engine.Deps.Began.
func (c *Console) Began(e audit.Entry) (ended func(*audit.Entry)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	one := newCall(c.serial, &e)
	one.Outcome = ""
	c.running[one.ID] = &one
	c.changes++
	return func(e *audit.Entry) { c.end(one.ID, e) }
}

func (c *Console) end(id int, e *audit.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
	c.changes++
	if e == nil {
		return
	}
	if one := newCall(id, e); len(c.ended) < maxEnded {
		c.ended = append(c.ended, one)
	} else {
		c.ended[c.endedAll%maxEnded] = one
	}
	c.endedAll++
}

type seen struct {
	calls, running, questions int
	servers                   []byte // JSON
	asked                     time.Time
}

// update contains what has changed since a browser's last update. nil means no change.
type update struct {
	Calls     []call     `json:"calls,omitempty"`   // that have ended, in that order
	Running   *[]call    `json:"running,omitempty"` // all, oldest first, at most maxRunning
	Count     int        `json:"count,omitempty"`   // with Running: number of all running calls
	Questions *[]summary `json:"questions,omitempty"`
	Servers   *[]Server  `json:"servers,omitempty"`
}

// since returns the changes that a browser has not seen, and whether there are any.
func (c *Console) since(s *seen) (u update, any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := max(s.calls, c.endedAll-len(c.ended)); n < c.endedAll; n++ {
		u.Calls = append(u.Calls, c.ended[n%maxEnded])
	}
	if s.running != c.changes {
		running := make([]call, 0, min(len(c.running), maxRunning))
		for _, one := range c.running {
			running = append(running, *one)
		}
		slices.SortFunc(running, func(a, b call) int { return cmp.Compare(a.ID, b.ID) })
		u.Count = len(running)
		running = running[:min(len(running), maxRunning)]
		u.Running = &running
	}
	for _, q := range c.questions {
		if q.left != nil && !q.Left && q.left() {
			q.Left = true
			c.asked++
		}
	}
	if s.questions != c.asked {
		questions := make([]summary, len(c.questions))
		for i, q := range c.questions {
			questions[i] = q.summary
		}
		u.Questions = &questions
	}
	any = len(u.Calls) > 0 || u.Running != nil || u.Questions != nil
	s.calls, s.running, s.questions = c.endedAll, c.changes, c.asked
	return u, any
}

// question is a question that waits for an answer.
type question struct {
	summary
	details func() details
	// read returns the answer in a reply, or an error if the question does not permit it. first
	// says whether the answer counts.
	read  func(reply) (any, error)
	first func() bool
	left  func() bool // see [caller.Peer]; nil means unknown

	mu       sync.Mutex
	over     bool          // it was answered, or no longer waits
	answered chan struct{} // closed when there is an answer
	answer   any
}

// summary is a question in the list of questions.
type summary struct {
	ID     string `json:"id"`
	Since  int64  `json:"since"` // Unix time in milliseconds
	Tool   string `json:"tool"`
	Caller string `json:"caller,omitempty"`
	Client string `json:"client,omitempty"`
	Left   bool   `json:"left,omitempty"` // the client no longer waits for the answer
}

// details contains what a person needs to answer a question.
type details struct {
	Text    string   `json:"text"`
	Choices []choice `json:"choices"`
	Content *string  `json:"content,omitempty"` // with the choice edit: what the file will have
	Fields  []field  `json:"fields,omitempty"`  // of a server's form
}

// choice is one of the possible answers.
type choice struct {
	Word   string `json:"word"`
	Covers string `json:"covers,omitempty"` // what it allows from now on
}

// field is a field of a server's form. What the person types is read as at a terminal.
type field struct {
	Name        string   `json:"name"`
	Label       string   `json:"label"`
	Description string   `json:"description,omitempty"`
	Expects     string   `json:"expects"`
	Value       string   `json:"value,omitempty"`
	Options     []string `json:"options,omitempty"`
	Secret      bool     `json:"secret,omitempty"`
	Required    bool     `json:"required,omitempty"`
}

// reply is a person's answer.
type reply struct {
	ID      string            `json:"id"`
	Choice  string            `json:"choice"`
	Reason  string            `json:"reason,omitempty"`  // with no, for the model
	Content *string           `json:"content,omitempty"` // with edit
	Fields  map[string]string `json:"fields,omitempty"`  // what was typed in a form
}

// errGone reports that a question was already answered or no longer waits.
var errGone = errors.New("the question is gone: somebody else has answered it, or its call has ended")

// put shows a question until it is answered or ctx is done.
func put[T any](ctx context.Context, c *Console, q *question) (answer T, err error) {
	q.Since, q.answered = time.Now().UnixMilli(), make(chan struct{})
	if who := caller.From(ctx); who != nil {
		q.Caller, q.Client = shortName(who.Name), shortName(who.Client)
		if who.Peer != nil {
			q.left = who.Peer.Left
		}
	}
	c.mu.Lock()
	c.serial++
	q.ID = strconv.Itoa(c.serial)
	c.questions = append(c.questions, q)
	c.asked++
	c.mu.Unlock()
	defer c.remove(q)
	select {
	case <-q.answered:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.answer == nil {
		q.over = true
		return answer, context.Cause(ctx)
	}
	return q.answer.(T), nil
}

func (c *Console) remove(q *question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.questions = slices.DeleteFunc(c.questions, func(one *question) bool { return one == q })
	c.asked++
}

func (c *Console) question(id string) *question {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.questions, func(q *question) bool { return q.ID == id })
	if i < 0 {
		return nil
	}
	return c.questions[i]
}

// reply answers a question. The error is errGone, or describes the mistake in the reply.
func (c *Console) reply(r reply) (*question, error) {
	q := c.question(r.ID)
	if q == nil {
		return nil, errGone
	}
	answer, err := q.read(r)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || !q.first() {
		return nil, errGone
	}
	q.over, q.answer = true, answer
	close(q.answered)
	return q, nil
}

// Confirm shows a question about a call in the words of the terminal. It is a question.Console.
func (c *Console) Confirm(ctx context.Context, q exec.Question, first func() bool) (exec.Answer, error) {
	one := &question{summary: summary{Tool: shortName(q.Tool.Name)}, first: first}
	one.details = func() details {
		d := details{Text: asking.Body(&q)}
		for _, one := range q.Choices {
			d.Choices = append(d.Choices, choice{one.String(), asking.Covers(&q, one)})
			if one == exec.Edit {
				d.Content = &q.Preview.NewContent
			}
		}
		return d
	}
	one.read = func(r reply) (any, error) {
		i := slices.IndexFunc(q.Choices, func(one exec.Choice) bool { return one.String() == r.Choice })
		if i < 0 || (q.Choices[i] == exec.Edit) != (r.Content != nil) {
			return nil, errors.New("the answer is not one of the choices")
		}
		given := exec.Answer{Choice: q.Choices[i], Said: r.Reason}
		if r.Content != nil {
			given.Content, given.Sure = *r.Content, true
		}
		return given, nil
	}
	return put[exec.Answer](ctx, c, one)
}

// The answers to a question of a server.
const (
	wordSend    = "send"
	wordDecline = "decline"
	wordDismiss = "dismiss"
)

// Elicit shows a question of a server. It is a question.Console.
func (c *Console) Elicit(ctx context.Context, e ask.Elicitation, first func() bool) (ask.Answer, error) {
	one := &question{summary: summary{Tool: shortName("MCP server " + e.Server)}, first: first}
	one.read = func(r reply) (any, error) { return answerOf(e, r) }
	one.details = func() details {
		d := details{
			Text:    fmt.Sprintf("MCP server %q asks:\n%s", ui.Line(e.Server), ui.Visible(e.Message)),
			Choices: []choice{{Word: wordSend}, {Word: wordDecline}, {Word: wordDismiss}},
		}
		if e.URL != "" {
			d.Text += "\n\nIt asks you to open this address, and to send this answer when you have finished there:\n" +
				ui.Line(e.URL)
		}
		if e.Form != nil {
			for i := range e.Form.Fields {
				d.Fields = append(d.Fields, newField(&e.Form.Fields[i]))
			}
		}
		return d
	}
	return put[ask.Answer](ctx, c, one)
}

func newField(f *form.Field) field {
	out := field{
		Name: f.Name, Label: ui.Line(f.Label()), Description: ui.Visible(f.Description),
		Expects: ui.Line(f.Expects()), Secret: f.Secret, Required: f.Required,
	}
	if f.Default != nil {
		out.Value = f.Show(f.Default)
	}
	for _, o := range f.Options {
		out.Options = append(out.Options, ui.Line(o.Label()))
	}
	return out
}

// answerOf reads the answer to a server's question.
func answerOf(e ask.Elicitation, r reply) (ask.Answer, error) {
	switch r.Choice {
	case wordDecline:
		return ask.Answer{Action: ask.Decline, Said: r.Reason}, nil
	case wordDismiss:
		return ask.Answer{Action: ask.Cancel}, nil
	case wordSend:
	default:
		return ask.Answer{}, errors.New("the answer is not one of the choices")
	}
	if e.Form == nil {
		return ask.Answer{Action: ask.Accept}, nil
	}
	values := map[string]json.RawMessage{}
	for i := range e.Form.Fields {
		f := &e.Form.Fields[i]
		typed := r.Fields[f.Name]
		switch {
		case typed == "" && f.Required && f.Kind != form.Choices:
			return ask.Answer{}, fmt.Errorf("%s: an answer is required", ui.Line(f.Label()))
		case typed == "" && !f.Required:
			continue
		case f.Default != nil && typed == f.Show(f.Default):
			values[f.Name] = f.Default
			continue
		}
		value, err := f.Read(typed)
		if err != nil {
			return ask.Answer{}, fmt.Errorf("%s: %w", ui.Line(f.Label()), err)
		}
		values[f.Name] = value
	}
	return ask.Answer{Action: ask.Accept, Content: e.Form.Encode(values)}, nil
}
