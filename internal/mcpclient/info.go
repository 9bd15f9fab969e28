package mcpclient

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/registry"
)

// State is the state of a server's connection.
type State string

// The states of a server, including the two steps of connecting.
const (
	StateDisconnected State = "disconnected" // the zero state of a new Source
	StateConnecting   State = "connecting"
	StateListing      State = "listing"
	StateConnected    State = "connected"
	StateCached       State = "cached" // not connected: the listing of an earlier run is used
	StateDisabled     State = "disabled"
	StateFailed       State = "failed"
	StateNeedsLogin   State = "needs login" // the user must log in first
)

// failedState is the state of a server after err.
func failedState(err error) State {
	if errors.Is(err, registry.ErrNeedsLogin) {
		return StateNeedsLogin
	}
	return StateFailed
}

// Info is the status of one server as shown by `toolreg servers`.
type Info struct {
	Name            string          `json:"name"`
	Transport       string          `json:"transport,omitempty"` // stdio, http or sse; openapi for an API
	State           State           `json:"state"`
	ProtocolVersion string          `json:"protocolVersion,omitempty"` // revision of MCP in use
	ServerInfo      json.RawMessage `json:"serverInfo,omitempty"`      // as sent by the server
	Tools           int             `json:"tools"`                     // number of registered tools
	Prompts         int             `json:"prompts"`                   // number of prompts
	Resources       int             `json:"resources"`                 // number of resources
	ConnectMs       int64           `json:"connectMs,omitempty"`       // milliseconds to connect
	Origin          string          `json:"origin,omitempty"`          // file:line of the setting
	Error           string          `json:"error,omitempty"`           // why it failed
	CachedAt        *time.Time      `json:"cachedAt,omitempty"`        // for state cached: when the server was queried
	AgeMs           int64           `json:"ageMs,omitempty"`           // for state cached: milliseconds since then

	BaseURL string `json:"baseUrl,omitempty"` // of an API

	Deprecated []Deprecated `json:"deprecated,omitempty"` // parts of the protocol that it was seen to use, sorted

	Kept *keep.State `json:"kept,omitempty"` // of a server that outlasts the run

	// Instructions is the server's text for models. It must not be trusted.
	Instructions string `json:"-"`
}

// Deprecated is a part of the protocol that MCP has deprecated.
type Deprecated struct {
	Part  string `json:"part"`  // HTTP+SSE, dynamic client registration, logging, roots, sampling
	Since string `json:"since"` // the first revision in which it is deprecated
}

// DeprecatedText names the deprecated parts of the protocol, for people; "" without any.
func (i Info) DeprecatedText() string {
	var parts []string
	for _, d := range i.Deprecated {
		parts = append(parts, d.Part+" (deprecated since "+d.Since+")")
	}
	return strings.Join(parts, ", ")
}

// The parts of the protocol that are deprecated.
const (
	partSSE          = "HTTP+SSE"
	partRegistration = "dynamic client registration"
	partLogging      = "logging"
)

// uses records that the server uses a deprecated part of the protocol.
func (i *Info) uses(part string) {
	since := "2026-07-28"
	if part == partSSE {
		since = "2025-03-26"
	}
	at, known := slices.BinarySearchFunc(i.Deprecated, part,
		func(d Deprecated, part string) int { return strings.Compare(d.Part, part) })
	if !known {
		i.Deprecated = slices.Insert(slices.Clone(i.Deprecated), at, Deprecated{part, since})
	}
}

// status is the state of a server and its connection. It is safe for concurrent use.
type status struct {
	onState func(server string, state State) // may be nil
	mu      sync.Mutex
	info    Info
}

func (s *status) get() Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

func (s *status) update(f func(*Info)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.info)
}

// set changes the state. err is the cause of a failure, or nil.
func (s *status) set(state State, err error) {
	s.update(func(i *Info) {
		i.State, i.Error = state, ""
		if err != nil {
			i.Error = err.Error()
		}
	})
	if s.onState != nil {
		s.onState(s.info.Name, state)
	}
}
