// Package recording writes what the sources of a run answered to a file, and answers from
// such a file as they did, without starting or contacting any of them. What it knows of a
// source is what the registry knows: the tools that it listed, and the results of calls.
//
// A file is JSON Lines. The first line names the format and its version, each other line is
// an exchange: the list of a source, a call of a tool, a question with its answer, or another
// request to a server. The
// order does not depend on which of several concurrent calls was faster, so two recordings
// of the same run are equal, as long as the sources answer the same.
package recording

import (
	"encoding/json"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

const (
	format  = "toolreg"
	version = 1
	// MaxSize is the maximum size of a file in bytes.
	MaxSize = 256 << 20
)

// header is the first line of a file.
type header struct {
	Recording string `json:"recording"`
	Version   int    `json:"version"`
}

// The kinds of lines, in the order in which a file has them.
const (
	kindList     = "list"
	kindQuestion = "question"
	kindCall     = "call"
	kindRequest  = "request"
)

type line struct {
	Kind   string `json:"kind"`
	Source string `json:"source"`
	// Tools and Diagnostics are what the source listed. Identity is that of all tools that
	// have none of their own.
	Identity    json.RawMessage       `json:"identity,omitempty"`
	Tools       []tool                `json:"tools,omitempty"`
	Diagnostics []registry.Diagnostic `json:"diagnostics,omitempty"`
	// Tool is the name that the source gave the tool that was called, or the name of the
	// tool that the question is about. Params are canonical.
	Tool   string          `json:"tool,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	// Method is that of a request about prompts or resources, whose result is Content.
	Method string `json:"method,omitempty"`
	// Asked is the text of a server's own question, which has no params; Answer is the
	// answer's word, and Content what was filled in, or the reason of a refusal.
	Asked   string          `json:"asked,omitempty"`
	Answer  string          `json:"answer,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
	// Subject is what the call accessed.
	Subject *registry.Subject `json:"subject,omitempty"`
	// Output is the text that the tool sent while it ran.
	Output   string              `json:"output,omitempty"`
	Progress []registry.Progress `json:"progress,omitempty"`
	Result   *result             `json:"result,omitempty"`
	Error    *Failure            `json:"error,omitempty"`
}

// tool is a tool as its source listed it.
type tool struct {
	registry.Definition
	Identity   json.RawMessage `json:"identity,omitempty"`
	Trusted    bool            `json:"trusted,omitempty"`
	Unmet      string          `json:"unmet,omitempty"`
	Quarantine string          `json:"quarantine,omitempty"`
}

// result is the result of a call.
type result struct {
	registry.StoredResult
	// Tenths is the duration in tenths of a second, rounded down: the rest differs from
	// run to run.
	Tenths int64 `json:"tenthsOfSecond,omitempty"`
}

const tenth = time.Second / 10

func newResult(r *registry.Result, took time.Duration) *result {
	return &result{r.Stored(), int64(took / tenth)}
}

func (r *result) registered() registry.Result {
	out := r.Result()
	out.Duration = time.Duration(r.Tenths) * tenth
	return out
}

// Failure is an error of a source or of a call. Kind is a word of the caller, who also
// turns a Failure into an error again; "" is an error of no particular kind.
type Failure struct {
	Kind       string               `json:"kind,omitempty"`
	Text       string               `json:"text"`
	Hint       string               `json:"hint,omitempty"`
	Violations []registry.Violation `json:"violations,omitempty"` // of params
	Server     string               `json:"server,omitempty"`     // of an error that a server answered
	Request    string               `json:"request,omitempty"`    // likewise
	Code       int64                `json:"code,omitempty"`       // likewise
}
