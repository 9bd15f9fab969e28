package settings

import "time"

// Audit configures the log of calls.
type Audit struct {
	Enabled bool  `setting:"audit.enabled"` // default true
	MaxSize int64 `setting:"audit.maxSize"` // maximum size of one log in bytes; default 10 MiB
	Keep    int   `setting:"audit.keep"`    // number of rotated logs to keep; default 5
}

// The values of a tool's option log.
const (
	LogCalls  = "calls"  // the default: without the values of params
	LogParams = "params" // with the values of params
	LogNone   = "none"   // only refusals
)

// ToolOption is one entry of toolOptions: options for the tools whose name matches
// the pattern. A nil field is not set.
type ToolOption struct {
	Pattern    string         // a tool's name, or a glob
	Timeout    *time.Duration `setting:"timeout"`
	MaxOutput  *int64         `setting:"maxOutput"` // bytes
	Retries    *int           `setting:"retries"`
	RetryDelay *time.Duration `setting:"retryDelay"`
	Cache      *time.Duration `setting:"cache"`
	Log        string         `setting:"log"` // LogCalls, LogParams, LogNone; "" = not set
	Origin     Origin
}

func (m *merged) toolOptions() []ToolOption {
	var out []ToolOption
	for _, e := range m.named("toolOptions") {
		t := ToolOption{Pattern: e.Name, Origin: e.Origin}
		decodeEntry(&t, m.index.Row("toolOptions"), e.Value, e.Origin)
		out = append(out, t)
	}
	return out
}
