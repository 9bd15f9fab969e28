package keep

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// The methods of what a run and its keeper tell each other. The first message of a run is
// attach or stop.
const (
	methodAttach = "toolreg/attach"
	methodStop   = "toolreg/stop"

	methodHere     = "toolreg/here"     // the first message of a keeper
	methodOpen     = "toolreg/open"     // the server can be used: an Opened
	methodFailed   = "toolreg/failed"   // it cannot: a Failure
	methodStderr   = "toolreg/stderr"   // what the server printed
	methodDeclined = "toolreg/declined" // a question that came during no request
	methodUnclear  = "toolreg/unclear"  // a question was declined that may have been about a request
	methodDropped  = "toolreg/dropped"  // the answer to a request was too long
	methodEnded    = "toolreg/ended"    // the server has exited
)

// FreshMeta is the member of _meta with which a run asks for a list anew.
const FreshMeta = "toolreg/fresh"

// Attach is how a run uses a keeper.
type Attach struct {
	Name  string `json:"name"`            // of the socket
	Looks bool   `json:"looks,omitempty"` // it only looks: the keeper's time goes on
	Lists bool   `json:"lists,omitempty"` // it wants lists that are up to date
}

// Opened describes a kept server to a run that has attached.
type Opened struct {
	Session wire.Opening `json:"session"`
	State
}

// State is the state of a keeper.
type State struct {
	Since time.Time `json:"since"`         // start of the server
	Idle  int64     `json:"idleMs"`        // milliseconds since the last run was attached; 0 if one is
	Runs  int       `json:"runs"`          // number of attached runs
	PID   int       `json:"pid,omitempty"` // of a stdio server
}

// Failure is why the server of a keeper cannot be used.
type Failure struct {
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
}

// note is what a keeper tells a run during the session; which of it depends on the method.
type note struct {
	Text   string `json:"text,omitempty"`   // stderr
	How    string `json:"how,omitempty"`    // ended
	What   string `json:"what,omitempty"`   // declined
	Reason string `json:"reason,omitempty"` // declined, dropped
	ID     int64  `json:"id,omitempty"`     // unclear, dropped: of the request
}

// notification returns a line with a notification.
func notification(method string, params any) []byte {
	data, err := jsonx.Marshal(params)
	if err != nil { // plain data
		data = []byte("{}")
	}
	return rawNotification(method, data)
}

func rawNotification(method string, params json.RawMessage) []byte {
	line := append([]byte(`{"jsonrpc":"2.0","method":`), jsonx.Quote(method)...)
	if len(params) > 0 {
		line = append(append(line, `,"params":`...), params...)
	}
	return append(line, "}\n"...)
}

// Spec is what a run hands over to the keeper that it starts. Strings are expanded.
type Spec struct {
	Name   string `json:"name"`   // of the socket
	Socket string `json:"socket"` // its path

	Process
	Split          bool          `json:"split,omitempty"` // Command and Args are the words of one command
	Known          string        `json:"known,omitempty"` // how the server was last reached
	ConnectTimeout time.Duration `json:"connectTimeout"`  // 0 means none
	Keep           time.Duration `json:"keep"`            // how long to wait for the next run
	MaxFrame       int64         `json:"maxFrame"`        // bytes of one message of the server before the session
	MaxMessage     int64         `json:"maxMessage"`      // and in it
}

// Process is all that makes a server: two runs that differ in it do not share one.
type Process struct {
	Server    string          `json:"server"` // its name
	Command   string          `json:"command"`
	Args      []string        `json:"args"`
	Dir       string          `json:"dir"`               // absolute
	Env       []string        `json:"env"`               // all of it, "K=V"
	URL       string          `json:"url,omitempty"`     // of an HTTP server
	Headers   []string        `json:"headers,omitempty"` // "K: V"
	Protocol  string          `json:"protocol"`
	Plan      json.RawMessage `json:"plan,omitempty"` // of its sandbox; absent = not confined
	Root      string          `json:"root"`           // the project root
	Workspace string          `json:"workspace"`      // its only root; "" means none
	Consent   bool            `json:"consent"`        // the project is trusted for the run alone
	User      int             `json:"user"`
	Version   string          `json:"version"` // of toolreg
}

// Read reads the Spec that a run writes to the stdin of a keeper.
func Read(in io.Reader) (*Spec, error) {
	spec := &Spec{}
	if err := json.NewDecoder(in).Decode(spec); err != nil || spec.Socket == "" {
		return nil, fmt.Errorf("the description of the server cannot be read")
	}
	return spec, nil
}
