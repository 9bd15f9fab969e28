// Package audit keeps the log of calls and refusals, one JSON object a line in
// the user's state directory, and counts over it (spec section 10). cmd/toolreg
// adds an entry when a call is over; audit, stats and list --inactive read them.
// Values of params are in it only where the settings ask for them.
package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
)

// Outcome says in a word how a call ended.
type Outcome string

// The outcomes. Denied and Invalid calls were never made.
const (
	OK        Outcome = "ok"
	Error     Outcome = "error"     // the tool said no, or could not be called
	Denied    Outcome = "denied"    // by policy, a hook or a person, or nobody to ask
	Invalid   Outcome = "invalid"   // params that the tool does not take
	Timeout   Outcome = "timeout"   // time limit
	Cancelled Outcome = "cancelled" // by a signal
)

// Outcomes returns all of them.
func Outcomes() []Outcome { return []Outcome{OK, Error, Denied, Invalid, Timeout, Cancelled} }

// Made reports whether the tool was run.
func (o Outcome) Made() bool { return o != Denied && o != Invalid }

// Caller is the client of `toolreg serve` that made a call.
type Caller struct {
	Name    string `json:"name"`              // of its token, "stdio" or "local"
	Client  string `json:"client,omitempty"`  // what it calls itself
	Version string `json:"version,omitempty"` // likewise
}

// Entry is one line of the log. Absent values are left out.
type Entry struct {
	Time       time.Time `json:"time"`                 // when the call came in
	Tool       string    `json:"tool"`                 // registered name; server__tool for MCP tools
	ServerTool string    `json:"serverTool,omitempty"` // the server's own name
	Upstream   string    `json:"upstream,omitempty"`   // of a tool that an override renames, its name without that
	Source     string    `json:"source,omitempty"`
	Server     string    `json:"server,omitempty"`
	Project    string    `json:"project,omitempty"`  // project root
	Caller     *Caller   `json:"caller,omitempty"`   // the client of serve; absent: the command line
	Decision   string    `json:"decision,omitempty"` // of policy: allow, ask, deny
	Rule       string    `json:"rule,omitempty"`     // what decided: file:line, flag, default, approval
	Outcome    Outcome   `json:"outcome"`
	Code       string    `json:"code,omitempty"`  // the error's stable word
	Error      string    `json:"error,omitempty"` // its text, without the values of params
	Exit       int       `json:"exit"`
	DurationMs float64   `json:"durationMs"` // without WaitedMs
	// WaitedMs is how long a person took to answer, before the call and during it.
	WaitedMs float64 `json:"waitedMs,omitempty"`
	// BrokenOff tells a call that ended at the question whether to make it.
	BrokenOff bool `json:"brokenOff,omitempty"`
	// Sizes in bytes, of the params as given and of the result's content.
	ParamsBytes  int    `json:"paramsBytes"`
	ResultBytes  int64  `json:"resultBytes"`
	ParamsSHA256 string `json:"paramsSha256,omitempty"` // of the canonical params, hex
	Cached       bool   `json:"cached,omitempty"`
	SavedTokens  int    `json:"savedTokens,omitempty"` // that an override of the result saved, estimated
	Attempts     int    `json:"attempts,omitempty"`    // where more than one
	// Params are the params themselves (setting audit.params), or a string that
	// holds their beginning where ParamsCut is set.
	Params    json.RawMessage `json:"params,omitempty"`
	ParamsCut bool            `json:"paramsCut,omitempty"`
}

// Made reports whether the entry is a call of a tool that was run: a server's
// question is none, nor is a call that ended at a question.
func (e *Entry) Made() bool { return e.Outcome.Made() && !e.BrokenOff && !e.IsQuestion() }

// QuestionMethod is what a server's question goes by in [Entry.ServerTool].
const QuestionMethod = "elicitation/create"

// IsQuestion reports whether the entry is a server's question to the person.
func (e *Entry) IsQuestion() bool { return e.ServerTool == QuestionMethod && e.Rule == "person" }

// InProject reports whether the call was made in the project of that root.
func (e *Entry) InProject(root string) bool { return e.Project == clean(root, maxProject) }

// Duration returns the time that the call took.
func (e *Entry) Duration() time.Duration {
	return time.Duration(e.DurationMs * float64(time.Millisecond))
}

// HashParams returns the sha256 of params in hex, the same for every order of
// keys and all white space; of params of more than 1 MiB that of their bytes,
// and "" of none.
func HashParams(params json.RawMessage) string {
	if len(params) == 0 {
		return ""
	}
	hashed := string(params)
	if len(hashed) <= maxHashed {
		hashed = jsonx.Canonical(params)
	}
	sum := sha256.Sum256([]byte(hashed))
	return hex.EncodeToString(sum[:])
}

const maxHashed = 1 << 20 // bytes of params that are put into canonical form

const (
	maxField   = 160 // bytes of a text field
	maxProject = 320
	maxError   = 300
	maxParams  = 2048 // bytes of the beginning of params that are too long
)

// line encodes the entry so that it fits one line of the log.
func (e Entry) line() ([]byte, error) {
	for _, field := range []*string{&e.Tool, &e.ServerTool, &e.Upstream, &e.Source, &e.Server, &e.Rule, &e.Code} {
		*field = clean(*field, maxField)
	}
	e.Error = clean(e.Error, maxError)
	e.Project = clean(e.Project, maxProject)
	e.Time = e.Time.UTC()
	data, err := jsonx.Marshal(e)
	if err != nil || len(data) < state.MaxLine || e.Params == nil {
		return data, err
	}
	for size := maxParams; size > 0; size /= 2 { // escapes take more room than what they stand for
		start, err := jsonx.Marshal(valid(string(e.Params), size))
		if err != nil {
			return nil, err
		}
		short := e
		short.Params, short.ParamsCut = start, true
		if data, err = jsonx.Marshal(short); err != nil || len(data) < state.MaxLine {
			return data, err
		}
	}
	e.Params, e.ParamsCut = nil, true
	return jsonx.Marshal(e)
}

// clean is valid without control characters, which take much room in JSON.
func clean(s string, limit int) string {
	return valid(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s), limit)
}

// valid returns at most limit bytes of s, without those that are no UTF-8.
func valid(s string, limit int) string { return strings.ToValidUTF8(text.Head(s, limit), "") }
