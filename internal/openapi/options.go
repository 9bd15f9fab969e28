package openapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Options describe the API that a [Source] represents and how to reach it.
type Options struct {
	API settings.API // unexpanded
	// Expand expands the strings of an API when they are used, like values.Expander.API. If
	// nil, they are used unchanged.
	Expand func(context.Context, settings.API) (settings.API, error)
	// Secrets returns the secrets of the API's entry after Expand: they are masked in what the server
	// sends. May be nil.
	Secrets func() []string

	ProjectRoot string // absolute; a relative path of a document starts there
	Version     string // of toolreg, for servers; empty means "dev"
	Limits      Limits

	// AllowHosts are hosts outside the public internet that may be contacted, as in the setting
	// fetch.allowHosts, in addition to those that the API's entry names.
	AllowHosts []string
	// Proxy returns the proxy for an address, or nil for none. A nil Proxy means that no proxy is
	// used.
	Proxy func(*url.URL) (*url.URL, error)
	// Auth returns the source of access tokens for an expanded API with the setting oauth.
	Auth func(settings.API) Authorizer
	// Unasked makes the first Discover use a remembered document without asking its address,
	// because it was read a moment ago.
	Unasked bool
	// Granted returns an error if a file of a document on disk, given by its path and SHA-256, does
	// not have the content that a person has trusted. nil means all files may be used.
	Granted func(path, sum string) error
	// Memory remembers the operations of the document from run to run. nil means nothing is
	// remembered.
	Memory Memory
	// Files returns a file of the workspace that a call names, and Paths the paths that the policy
	// decides about for it. If they are nil, only data: URIs can be used.
	Files func(call registry.Call, pointer, name string) (media string, data []byte, err error)
	Paths func(name string) ([]string, error)
	// Warn reports a problem with a response. May be nil.
	Warn func(registry.Diagnostic)
	// Logger receives details of requests (debug). May be nil.
	Logger *slog.Logger
}

// Limits are the limits of an API.
type Limits struct {
	Document int64 // bytes of a file of the document
	Result   int64 // bytes of a response
	Schema   int64 // bytes of a schema
	Tools    int   // number of tools
}

// Authorizer gets and renews access tokens; see package mcpclient/wire. Without a login its
// Token is an error that wraps [registry.ErrNeedsLogin].
type Authorizer interface {
	Token(ctx context.Context) (string, error)
	Sign(r *http.Request, token string) error
	Received(ctx context.Context, sent string, status int, header http.Header) (again bool, err error)
}

// Memory remembers the operations of a document, so that a later run need not read it again.
type Memory interface {
	// Load returns what is known. An error means that nothing is known and the document must not be
	// requested either.
	Load(context.Context) (Known, error)
	// Save stores what a run found: the operations, the fact that they are unchanged, or a failure.
	Save(context.Context, Known)
}

// noMemory remembers nothing.
type noMemory struct{}

func (noMemory) Load(context.Context) (Known, error) { return Known{}, nil }

func (noMemory) Save(context.Context, Known) {}

// Known is what is known of a document.
type Known struct {
	Operations []byte // as spec.Encode writes them; nil means none
	Facts      Facts  // of the document that the operations come from
	Asked      time.Time
	Fresh      bool  // do not ask whether the document has changed
	Failure    error // of a recent run, for a document at an address; nil means none
}

// Facts identify the content of a document.
type Facts struct {
	Server string     `json:"server,omitempty"`
	Files  []fileFact `json:"files"` // the document comes first
}

// fileFact identifies the content of one file.
type fileFact struct {
	Name     string `json:"name"`
	Sum      string `json:"sum,omitempty"`   // sha256, hex
	Stamp    string `json:"stamp,omitempty"` // an unchanged stamp means the file need not be read again
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"` // as the server wrote it
}
