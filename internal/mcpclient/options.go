package mcpclient

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/toolreg/toolreg/internal/form"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Options say which server a [Source] stands for and how to reach it.
type Options struct {
	// Server is the entry of mcpServers, unexpanded.
	Server settings.Server

	// Expand expands the references in Server's strings at the moment of use,
	// as settings.Expander.Server does. nil: the strings are taken as they are.
	Expand func(context.Context, settings.Server) (settings.Server, error)

	ProjectRoot string   // absolute; the default folder of a stdio server
	Workspace   string   // absolute; the only root told to servers, "" = none
	Environ     []string // our own environment, "K=V"; a server gets a part of it
	Version     string   // of toolreg, told to servers; "" = "dev"

	// ConnectTimeout replaces Server.ConnectTimeout when it is not 0. It covers
	// start, handshake and listing together.
	ConnectTimeout time.Duration

	// Protocols remembers how the server was reached, which saves the probe.
	// nil: nothing is known and nothing kept.
	Protocols Protocols

	// Listings keeps what the server lists. nil: it is asked each time.
	Listings Listings

	// Counts makes Discover count prompts and resources too, which costs a
	// request for each page of them.
	Counts bool

	// Auth returns what has the tokens for a server over HTTP, given its entry
	// with all strings expanded; it is called once for each connection and must
	// cost nothing. It is not called where the entry has an Authorization header
	// of its own. nil, and a nil result: no tokens.
	Auth func(settings.Server) Authorizer

	Limits Limits

	// Logger receives stderr lines of the server (level info), noise on its
	// stdout (warn) and protocol detail (debug). nil: silence.
	Logger *slog.Logger

	// OnState is called on every change of state, from any goroutine. May be nil.
	OnState func(server string, state State)

	// Elicit asks the person what the server asks for. nil: declined. Its ctx
	// ends with the request during which the server asked.
	Elicit func(context.Context, Elicitation) (Answer, error)

	// Sample answers what the server wants to know of a model. nil: servers are
	// told that there is no sampling. The result is that of
	// sampling/createMessage; an error refuses, in words that the server gets.
	Sample func(context.Context, Sampling) (json.RawMessage, error)

	// Refused is told what of a server was turned down without asking anybody,
	// such as "question" or "sampling request", and why. May be nil.
	Refused func(server, what, reason string)

	// OnLog gets the server's log messages, from any goroutine, in order. May be
	// nil.
	OnLog func(LogMessage)
	// LogLevel is the least level of messages that servers are asked for, a word
	// of the protocol such as "info"; "" asks for none.
	LogLevel string
}

// LogMessage is a log message of a server. Its texts are the server's words.
type LogMessage struct {
	Server string
	Level  string // debug, info, notice, warning, error, critical, alert or emergency
	Logger string // "" = none
	Text   string // JSON where the server sent no text
}

// Sampling is a question of a server for a model.
type Sampling struct {
	Server string
	During string          // the request of ours during which it came, such as "tool echo"
	Params json.RawMessage // of sampling/createMessage, as sent
}

// Authorizer has the access tokens for one server over HTTP. It is used by many
// requests at once, and never asks a person.
type Authorizer interface {
	// Token returns the token for the next request, "" for none. An error that
	// wraps registry.ErrNeedsLogin tells that a person has to log in.
	Token(ctx context.Context) (string, error)

	// Refused is told that a request with the token sent was answered with
	// status 401 or 403, and the WWW-Authenticate headers of that. again asks to
	// send the request once more, with a new token. nil and false: no login would
	// help.
	Refused(ctx context.Context, sent string, status int, challenges []string) (again bool, err error)
}

// Limits bound what a server may send. A zero field is its default.
type Limits struct {
	Frame  int64 // bytes of one message while connecting and listing, after decompression; 16 MiB
	Result int64 // bytes of one message that answers a call; 64 MiB
	Tools  int   // tools of one server; 10,000
	Pages  int   // pages of one listing; 100
	Schema int64 // bytes of one schema; 1 MiB

	Samples int // sampling requests during one request of ours; 10
}

func (l Limits) withDefaults() Limits {
	l.Frame = orDefault(l.Frame, 16<<20)
	l.Result = orDefault(l.Result, 64<<20)
	l.Tools = orDefault(l.Tools, 10_000)
	l.Pages = orDefault(l.Pages, 100)
	l.Schema = orDefault(l.Schema, 1<<20)
	l.Samples = orDefault(l.Samples, 10)
	return l
}

func orDefault[T int | int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// State is where a server's connection stands.
type State string

// The states of a server (spec section 6.4), with the two steps of connecting.
const (
	StateDisconnected State = "disconnected" // the zero state of a new Source
	StateConnecting   State = "connecting"
	StateListing      State = "listing"
	StateConnected    State = "connected"
	StateCached       State = "cached" // not asked: what it listed on an earlier run stands
	StateDisabled     State = "disabled"
	StateFailed       State = "failed"
	StateNeedsLogin   State = "needs login" // a person has to log in first
)

// Info is what `toolreg servers` shows of one server (spec section 3). Absent
// values are left out.
type Info struct {
	Name            string          `json:"name"`
	Transport       string          `json:"transport,omitempty"` // stdio, http or sse
	State           State           `json:"state"`
	ProtocolVersion string          `json:"protocolVersion,omitempty"`
	ServerInfo      json.RawMessage `json:"serverInfo,omitempty"` // as the server sent it
	Tools           int             `json:"tools"`
	Prompts         int             `json:"prompts"`
	Resources       int             `json:"resources"`
	ConnectMs       int64           `json:"connectMs,omitempty"`
	Origin          string          `json:"origin,omitempty"` // file:line of the setting
	Error           string          `json:"error,omitempty"`
	CachedAt        *time.Time      `json:"cachedAt,omitempty"` // of state cached: when the server was asked
	AgeMs           int64           `json:"ageMs,omitempty"`    // likewise

	// Protocol is the generation that was spoken, "legacy" or "modern"
	// (2026-07-28 and later), or "sse".
	Protocol string `json:"-"`
	// Instructions is the server's text for models. It is not to be trusted.
	Instructions string `json:"-"`
}

// Elicitation is a question of a server to the person.
type Elicitation struct {
	Server  string
	During  string          // the request of ours during which it came, such as "tool echo"
	Mode    string          // "form" or "url"
	Message string          // the server's words, not to be trusted
	Form    *form.Form      // form: what is asked for
	Schema  json.RawMessage // form: the same as it was sent
	URL     string          // url: the address to open, which passed [webaddr.Check]
	ID      string          // url: the server's id of this question

	// Done is set where the request waits for the visit of an address to be
	// over: accept means that it is. It is closed when the server says so.
	Done <-chan struct{}
}

// Answer is the person's answer. The zero value declines.
type Answer struct {
	Action  string          // "accept", "decline" or "cancel"
	Content json.RawMessage // accept of a form: one JSON object
}

// Filter returns the filter that applies includeTools and excludeTools of a
// server: exact names as the server has them, "name(...)" or globs, exclude
// wins.
func Filter(s settings.Server) registry.Filter {
	setting := s.Origin.String()
	if len(s.IncludeTools.Entries) > 0 {
		setting = s.IncludeTools.Entries[0].Origin.String()
	}
	return registry.ServerToolsFilter(s.Name, s.IncludeTools.Set, entries(s.IncludeTools), entries(s.ExcludeTools), setting)
}

func entries(l settings.List) []registry.Entry {
	out := make([]registry.Entry, len(l.Entries))
	for i, e := range l.Entries {
		out[i] = registry.Entry{Value: e.Value, Setting: e.Origin.String()}
	}
	return out
}
