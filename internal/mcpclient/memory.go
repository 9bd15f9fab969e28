package mcpclient

import (
	"context"
	"encoding/json"
	"time"
)

// Memory remembers what earlier runs learned about one server. It is safe for concurrent
// use.
type Memory interface {
	// Load returns what is known that may be used instead of asking the server, without
	// Protocol. An error means that the server must not be asked for its tools.
	Load(context.Context) (Known, error)
	// Protocol returns how the server was reached, "" if that is unknown.
	Protocol(context.Context) string
	// Save stores the fields that are not zero. A listing ends a failure.
	Save(context.Context, Known)
}

// Known is what is known about a server. A zero field is unknown.
type Known struct {
	Listing  *Listing           // to be used instead of asking the server
	Protocol string             // how the server was reached: "legacy", "modern" or "sse"
	Failure  error              // how it failed recently, so that not every run waits for it
	Offers   map[string][]Offer // for completion, by kind, such as [OfferPrompts]
}

// noMemory is the Memory of a server that is not remembered.
type noMemory struct{}

func (noMemory) Load(context.Context) (Known, error) { return Known{}, nil }

func (noMemory) Protocol(context.Context) string { return "" }

func (noMemory) Save(context.Context, Known) {}

// Listing is the server's description of itself and its tools, byte for byte.
type Listing struct {
	Tools    [][]byte // elements of tools/list, in order
	Facts    Facts
	ListedAt time.Time // when the server was asked; set by Load
}

// Facts is the rest of a [Listing].
type Facts struct {
	Cut             string          `json:"cut,omitempty"` // why not all tools were listed
	Loop            bool            `json:"loop,omitempty"`
	Transport       string          `json:"transport"`
	ProtocolVersion string          `json:"protocolVersion"`
	ServerInfo      json.RawMessage `json:"serverInfo,omitempty"`
	Instructions    string          `json:"instructions,omitempty"`
	Counted         bool            `json:"counted,omitempty"` // Prompts and Resources are known
	Prompts         int             `json:"prompts,omitempty"`
	Resources       int             `json:"resources,omitempty"`
}

// Offer is a prompt or a resource of a server, reduced to the fields that
// completion shows. The texts are the server's.
type Offer struct {
	Name        string           `json:"name"` // the URI of a resource
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"` // of a prompt
}

// PromptArgument is one argument of a prompt. All arguments are text.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// The lists of a server, each named by the key of its items in a result.
const (
	listTools     = "tools"
	listPrompts   = "prompts"
	listResources = "resources"
	listTemplates = "resourceTemplates"
)

// Kinds of an [Offer].
const (
	OfferPrompts   = listPrompts
	OfferResources = listResources
)
