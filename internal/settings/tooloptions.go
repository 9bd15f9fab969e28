package settings

import (
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Audit configures the log of calls.
type Audit struct {
	Enabled bool  // default true
	MaxSize int64 // maximum size of one log in bytes; default 10 MiB
	Keep    int   // number of rotated logs to keep; default 5
}

// The values of a tool's option log.
const (
	LogCalls  = "calls"  // the default: without the values of params
	LogParams = "params" // with the values of params
	LogNone   = "none"   // only refusals
)

// ToolOption is one entry of toolOptions: its options for the tools whose name
// matches the pattern. A nil field is not set.
type ToolOption struct {
	Pattern    string // a tool's name, or a glob
	Timeout    *time.Duration
	MaxOutput  *int64 // bytes
	Retries    *int
	RetryDelay *time.Duration
	Cache      *time.Duration
	Log        string // LogCalls, LogParams, LogNone; "" = not set
	Origin     Origin
}

func (m *merged) toolOptions() []ToolOption {
	var out []ToolOption
	for _, e := range m.named("toolOptions") {
		out = append(out, ToolOption{
			Pattern: e.Name, Origin: e.Origin, Log: e.Value.Get("log").Text(),
			Timeout: optional(e.Value, "timeout", duration), MaxOutput: optional(e.Value, "maxOutput", size),
			Retries: optional(e.Value, "retries", number), RetryDelay: optional(e.Value, "retryDelay", duration),
			Cache: optional(e.Value, "cache", duration),
		})
	}
	return out
}

// optional reads a field that may be absent.
func optional[T any](n *jsonx.Value, name string, read func(*jsonx.Value) T) *T {
	f := n.Get(name)
	if f == nil || f.Kind == jsonx.Null {
		return nil
	}
	v := read(f)
	return &v
}

func (m *merged) audit() Audit {
	return Audit{Enabled: m.node("audit.enabled").Is(jsonx.True), MaxSize: size(m.node("audit.maxSize")), Keep: number(m.node("audit.keep"))}
}
