package registry

import "encoding/json"

// ProviderFields are the fields that providers' APIs accept for a tool besides
// its name, description and schemas. They come from the settings and never from
// the source of a tool. Fields that are not set, or that a provider does not
// support, are not declared.
type ProviderFields struct {
	// DeferLoading is true if the model has to search for the tool instead of seeing
	// its declaration from the start, and false if it never has to.
	DeferLoading *bool `json:"deferLoading,omitempty"`
	// Strict requires calls to follow the schema exactly.
	Strict *bool `json:"strict,omitempty"`
	// InputExamples are examples of params, each a JSON object.
	InputExamples []json.RawMessage `json:"inputExamples,omitempty"`
	// CacheControl marks the end of a part of the request that the provider
	// caches.
	CacheControl *CacheControl `json:"cacheControl,omitempty"`
	// AllowedCallers lists the callers of the tool, in the provider's terms.
	AllowedCallers []string `json:"allowedCallers,omitempty"`
	// OutputSchema is true to declare the tool's own output schema, false never
	// to declare one, or the JSON Schema to declare instead.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// EagerInputStreaming says whether params are streamed while the model writes them.
	EagerInputStreaming *bool `json:"eagerInputStreaming,omitempty"`
	// Async says whether the model may go on before it has the result of a call.
	Async *bool `json:"async,omitempty"`
	// Behavior is BLOCKING or NON_BLOCKING, for Gemini's Live API.
	Behavior string `json:"behavior,omitempty"`
}

// CacheControl is a point up to which a provider caches a request. TTL is "5m",
// "1h" or, for the provider's default, "".
type CacheControl struct {
	TTL string `json:"ttl,omitempty"`
}
