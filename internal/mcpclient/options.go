package mcpclient

import (
	"context"
	"log/slog"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/transport"
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
	Workspace   string   // absolute; the only root of servers, "" = none
	Environ     []string // our own environment, "K=V"; a server gets a part of it
	Version     string   // of toolreg, for servers; "" = "dev"

	// ConnectTimeout replaces Server.ConnectTimeout when it is not 0. It covers
	// start, handshake and listing together.
	ConnectTimeout time.Duration

	// Protocols remembers how the server was reached, which saves the probe.
	// nil: nothing is known and nothing stored.
	Protocols Protocols
	Failures  Failures // what servers failed a moment ago; nil: each is asked

	// Listings stores what the server lists. nil: it is asked each time.
	Listings Listings

	// Counts makes Discover count prompts and resources too, which costs a
	// request for each page of them.
	Counts bool

	// Auth returns what has the tokens for a server over HTTP, given its entry
	// with all strings expanded; it is called once for each connection and must
	// cost nothing. It is not called where the entry has an Authorization header
	// of its own. nil, and a nil result: no tokens.
	Auth func(settings.Server) transport.Authorizer

	Limits Limits

	// Logger receives stderr lines of the server (level info), text on its
	// stdout that is no message (warn) and protocol detail (debug). nil: silence.
	Logger *slog.Logger

	// OnState is called on every change of state, from any goroutine. May be nil.
	OnState func(server string, state State)

	// Callbacks answer what the server asks during requests.
	ask.Callbacks

	// Logging is about log messages, which servers send in the protocol.
	Logging
}

// Logging says which log messages of a server are wanted, and who gets them.
type Logging struct {
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
