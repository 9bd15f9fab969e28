package keep

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

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
