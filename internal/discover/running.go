package discover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// DefaultTimeout is the time limit for a call of a plugin's or discovered tool that
// has no timeout of its own.
const DefaultTimeout = 10 * time.Minute

// running has the fields of a declaration that say how the tool runs.
type running struct {
	timeout  time.Duration // 0 means no limit
	confirm  *confirmation // if nil, only the policy decides
	isResult bool          // stdout is a result as JSON, not text
}

// readRunning reads the fields timeout, confirm and output of a declaration;
// timeout is the default, evaluator is for [jq.Expression.Isolated].
func readRunning(o object, timeout time.Duration, evaluator []string) (running, error) {
	r := running{timeout: timeout}
	var err error
	if raw := o["timeout"]; present(raw) {
		if r.timeout, err = readDuration(raw); err != nil {
			return r, fmt.Errorf("its timeout is %w", err)
		}
	}
	if raw := o["output"]; present(raw) {
		switch string(raw) {
		case `"text"`:
		case `"result"`:
			r.isResult = true
		default:
			return r, errors.New(`its output is neither "text" nor "result"`)
		}
	}
	if raw := o["confirm"]; present(raw) {
		if r.confirm, err = readConfirmation(raw); err != nil {
			return r, fmt.Errorf("its confirm: %w", err)
		}
		r.confirm.when = r.confirm.when.Isolated(evaluator)
	}
	return r, nil
}

// apply sets the fields of t accordingly; origin is the file that declares it.
func (r running) apply(t *registry.Tool, origin string) {
	t.Timeout = r.timeout
	if r.confirm == nil {
		return
	}
	t.Confirm = func(ctx context.Context, call registry.Call) registry.Asking {
		if reason := r.confirm.reason(ctx, call.Params); reason != "" {
			return registry.Asking{Reason: reason, Origin: origin}
		}
		return registry.Asking{}
	}
	t.Preview = func(ctx context.Context, call registry.Call) (registry.Preview, error) {
		p := registry.Preview{Kind: registry.PreviewInfo}
		if r.confirm.reason(ctx, call.Params) != "" {
			p.Title, p.Prompt = r.confirm.title, r.confirm.prompt
		}
		return p, nil
	}
}

// confirmation says which calls of a tool need confirmation although the policy
// allows them, and has the text of the question.
type confirmation struct {
	when          *jq.Expression // condition on the params; nil means all calls
	title, prompt string
}

// readConfirmation is strict: if a misspelled field were ignored, confirmation
// would apply to other calls than the author intended.
func readConfirmation(raw json.RawMessage) (*confirmation, error) {
	var in struct{ When, Title, Prompt string }
	if err := jsonx.DecodeKnown(raw, &in); err != nil {
		return nil, fmt.Errorf("%w; it takes the strings when, title and prompt", err)
	}
	c := &confirmation{title: in.Title, prompt: in.Prompt}
	var err error
	if in.When != "" {
		c.when, err = jq.Compile(in.When)
	}
	return c, err
}

// reason returns why a person has to confirm a call with these params, or "" if the
// condition is false. A condition that cannot be evaluated is true.
func (c *confirmation) reason(ctx context.Context, params json.RawMessage) string {
	why := "its confirm applies to every call"
	if c.when != nil {
		switch ok, err := c.holds(ctx, params); {
		case err != nil:
			why = fmt.Sprintf("its confirm.when %s failed: %s", text.Quote(c.when.Text), err)
		case !ok:
			return ""
		default:
			why = fmt.Sprintf("its confirm.when %s is true", text.Quote(c.when.Text))
		}
	}
	if c.title != "" {
		why = fmt.Sprintf("%s (%s)", text.Quote(c.title), why)
	}
	return "the tool itself asks: " + why
}

func (c *confirmation) holds(ctx context.Context, params json.RawMessage) (bool, error) {
	v, err := jq.Decode(params)
	if err != nil {
		return false, err
	}
	return c.when.HoldsBriefly(ctx, v)
}

// readDuration reads an integer in milliseconds or text such as "30s".
func readDuration(raw json.RawMessage) (time.Duration, error) {
	const most = int64(1<<63-1) / int64(time.Millisecond)
	var ms int64
	if json.Unmarshal(raw, &ms) == nil && ms >= 0 && ms <= most {
		return time.Duration(ms) * time.Millisecond, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			return d, nil
		}
	}
	return 0, fmt.Errorf(`not milliseconds, 0 or more, or a duration such as "30s"`)
}
