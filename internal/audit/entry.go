// Package audit stores the log of calls and refusals, one JSON object per line in
// the user's state folder, and computes statistics. Package engine adds an entry
// after each call; the commands audit, stats and list --inactive read them. The log
// contains values of params only if the settings enable this.
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

// Outcome is how a call ended.
type Outcome string

// The outcomes. The tool did not run if a call is Denied, Invalid or Limited.
const (
	OK        Outcome = "ok"
	Error     Outcome = "error"     // the tool failed or could not be called
	Denied    Outcome = "denied"    // by policy, a hook or a person, or because nobody could be asked
	Invalid   Outcome = "invalid"   // invalid params
	Limited   Outcome = "limited"   // the client has made too many calls (serve.limits)
	Timeout   Outcome = "timeout"   // time limit
	Cancelled Outcome = "cancelled" // by a signal
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{OK, Error, Denied, Invalid, Limited, Timeout, Cancelled} }

// Made reports whether the tool was run.
func (o Outcome) Made() bool { return o != Denied && o != Invalid && o != Limited }

// Caller is the client of `toolreg serve`, or the host of `toolreg rpc`, that made a call.
type Caller struct {
	Name    string   `json:"name,omitempty"`    // name of its token, "stdio" or "local"; absent for a host
	Client  string   `json:"client,omitempty"`  // name that it reports
	Version string   `json:"version,omitempty"` // version that it reports
	Groups  []string `json:"groups,omitempty"`  // groups that its token names
	Profile string   `json:"profile,omitempty"` // its profile of serve
}

// Entry is one line of the log. Absent values are omitted.
type Entry struct {
	Time       time.Time `json:"time"`                 // start of the call
	Tool       string    `json:"tool"`                 // registered name; for MCP tools, server__tool
	ServerTool string    `json:"serverTool,omitempty"` // the server's own name
	// Script is the hash of the script that made the call, or that the call ran, in hex.
	Script   string `json:"script,omitempty"`
	Parent   string `json:"parent,omitempty"`   // of a call in a script: the id of the run of the script
	ID       string `json:"id,omitempty"`       // of a call in a script, or of the run of one
	Upstream string `json:"upstream,omitempty"` // name of the tool without its override, if that renames it
	Source   string `json:"source,omitempty"`
	Server   string `json:"server,omitempty"`
	// URI is that of a denied resource, in the form that all its spellings share, without its query.
	URI        string  `json:"uri,omitempty"`
	Project    string  `json:"project,omitempty"`  // project root
	Caller     *Caller `json:"caller,omitempty"`   // client of serve or host of rpc; absent for the command line
	Decision   string  `json:"decision,omitempty"` // decision of policy: allow, sandbox, ask, deny
	Rule       string  `json:"rule,omitempty"`     // origin of the decision: file:line, flag, default, approval
	Outcome    Outcome `json:"outcome"`
	Code       string  `json:"code,omitempty"`  // error code
	Error      string  `json:"error,omitempty"` // error text without the values of params
	Exit       int     `json:"exit"`            // exit code of call
	DurationMs float64 `json:"durationMs"`      // without the time that a person took to answer
	// WaitedMs is the time that a person took to answer questions before and during
	// the call.
	WaitedMs float64 `json:"waitedMs,omitempty"`
	// BrokenOff is set if the call was canceled while it waited for confirmation.
	BrokenOff    bool   `json:"brokenOff,omitempty"`
	ParamsBytes  int    `json:"paramsBytes"`            // size of the params in bytes
	ResultBytes  int64  `json:"resultBytes"`            // size of the result's content in bytes
	ParamsSHA256 string `json:"paramsSha256,omitempty"` // hash of the canonical params, hex
	Cached       bool   `json:"cached,omitempty"`       // the result comes from the cache
	SavedTokens  int    `json:"savedTokens,omitempty"`  // estimated tokens that an override of the result saved
	Confined     bool   `json:"confined,omitempty"`     // the program ran in the sandbox
	// Outside says that the call failed in the sandbox and then ran outside, as a person allowed.
	// The outcome is that of the second run.
	Outside  bool `json:"outside,omitempty"`
	Attempts int  `json:"attempts,omitempty"` // number of attempts, if more than one
	// Params are logged with the setting audit.params.
	Params    json.RawMessage `json:"params,omitempty"`
	ParamsCut bool            `json:"paramsCut,omitempty"` // params is a string with their beginning
}

// Made reports whether a tool ran. It returns false for a server's question and for
// a call that was canceled during a question.
func (e *Entry) Made() bool { return e.Outcome.Made() && !e.BrokenOff && !e.isQuestion() }

// QuestionMethod is the [Entry.ServerTool] of a server's question.
const QuestionMethod = "elicitation/create"

// isQuestion reports whether the entry is a server's question to the person.
func (e *Entry) isQuestion() bool { return e.ServerTool == QuestionMethod && e.Rule == "person" }

// InProject reports whether the call was made in the project with that root.
func (e *Entry) InProject(root string) bool { return e.Project == clean(root, maxProject) }

// Duration returns how long the call took.
func (e *Entry) Duration() time.Duration {
	return time.Duration(e.DurationMs * float64(time.Millisecond))
}

// HashParams returns the SHA-256 of params in hex. It does not depend on white
// space and the order of keys, unless the params are larger than 1 MiB. It returns
// "" for empty params.
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

const maxHashed = 1 << 20 // maximum bytes of params to canonicalize

const (
	maxField   = 160 // bytes of a text field
	maxProject = 320
	maxError   = 300
	maxURI     = 512
	maxParams  = 2048 // bytes kept of the beginning of long params
)

// line encodes the entry as one line of limited length.
func (e Entry) line() ([]byte, error) {
	for _, field := range []*string{&e.Tool, &e.ServerTool, &e.Upstream, &e.Source, &e.Server, &e.Rule, &e.Code} {
		*field = clean(*field, maxField)
	}
	e.Error, e.URI = clean(e.Error, maxError), clean(e.URI, maxURI)
	e.Project = clean(e.Project, maxProject)
	e.Time = e.Time.UTC()
	data, err := jsonx.Marshal(e)
	if err != nil || len(data) < state.MaxLine || e.Params == nil {
		return data, err
	}
	for size := maxParams; size > 0; size /= 2 { // escaping may make the text longer
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

// clean is like valid, but also removes control characters, which take many bytes
// in JSON.
func clean(s string, limit int) string {
	return valid(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s), limit)
}

// valid returns at most limit bytes of s, without invalid UTF-8.
func valid(s string, limit int) string { return strings.ToValidUTF8(text.Head(s, limit), "") }
