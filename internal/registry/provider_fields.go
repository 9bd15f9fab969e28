package registry

import (
	"encoding/json"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// ProviderFields are what the APIs of providers take of a tool beyond its name,
// description and schemas. They come from the settings and never from the source
// of a tool. A field that is not set is not declared; one that a provider does
// not have is left out of its declarations.
type ProviderFields struct {
	// DeferLoading says that the model finds the tool by a search instead of
	// reading its declaration at the start, and false that it never has to.
	DeferLoading *bool `json:"deferLoading,omitempty"`
	// Strict asks for calls that follow the schema to the letter.
	Strict *bool `json:"strict,omitempty"`
	// InputExamples are params of calls, each a JSON object.
	InputExamples []json.RawMessage `json:"inputExamples,omitempty"`
	// CacheControl ends a part of the request that the provider caches.
	CacheControl *CacheControl `json:"cacheControl,omitempty"`
	// AllowedCallers says who may call the tool, in the provider's own words.
	AllowedCallers []string `json:"allowedCallers,omitempty"`
	// OutputSchema is true where the tool's own output schema is to be declared,
	// false where it never is, or the JSON Schema to declare in its place.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// EagerInputStreaming says whether params come as the model writes them.
	EagerInputStreaming *bool `json:"eagerInputStreaming,omitempty"`
	// Behavior is BLOCKING or NON_BLOCKING, for Gemini's Live API.
	Behavior string `json:"behavior,omitempty"`
}

// CacheControl is a point up to which a provider caches a request. TTL is how
// long: "5m" or "1h", "" for the provider's default.
type CacheControl struct {
	TTL string `json:"ttl,omitempty"`
}

// DeclaredOutputSchema returns the output schema for declarations to providers
// that older clients send without one; nil unless the settings ask for it.
func (d *Definition) DeclaredOutputSchema() json.RawMessage {
	switch jsonx.KindOf(d.Provider.OutputSchema) {
	case jsonx.True:
		return d.OutputSchema
	case jsonx.Object:
		return d.Provider.OutputSchema
	}
	return nil
}
