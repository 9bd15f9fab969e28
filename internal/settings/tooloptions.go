package settings

import "time"

// Audit tells how calls are logged.
type Audit struct {
	Enabled bool  // default true
	MaxSize int64 // of one log in bytes; default 10 MiB
	Keep    int   // logs set aside that are kept; default 5
}

// What the option log of a tool takes.
const (
	LogCalls  = "calls"  // the default: without values of params
	LogParams = "params" // with them
	LogNone   = "none"   // refusals alone
)

// ToolOption is one entry of toolOptions: what it sets of the tools whose name
// its pattern matches. A nil field is not set.
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

func toolOptionFields() []setting {
	return []setting{
		{name: "timeout", typ: typeDuration, doc: "Time limit of a call."},
		{name: "maxOutput", typ: typeSize, doc: "Output of a call that is kept, in place of limits.output."},
		{name: "retries", typ: typeInt, doc: "How often a failed call is repeated, where repeating is safe."},
		{name: "retryDelay", typ: typeDuration, doc: "Wait before the first repetition, doubled with each; default 500ms."},
		{name: "cache", typ: typeDuration, doc: "How long a result may be given again, of tools that only read."},
		{name: "log", typ: typeChoice, choices: []string{LogCalls, LogParams, LogNone}, doc: "What of its calls is logged."},
	}
}

func (m *merged) toolOptions() []ToolOption {
	var out []ToolOption
	for _, e := range m.named("toolOptions") {
		out = append(out, ToolOption{
			Pattern: e.name, Origin: e.origin, Log: e.node.str("log"),
			Timeout: optional(e.node, "timeout", (*node).duration), MaxOutput: optional(e.node, "maxOutput", (*node).size),
			Retries: optional(e.node, "retries", (*node).number), RetryDelay: optional(e.node, "retryDelay", (*node).duration),
			Cache: optional(e.node, "cache", (*node).duration),
		})
	}
	return out
}

// optional reads a field that may be absent.
func optional[T any](n *node, name string, read func(*node) T) *T {
	f := n.get(name)
	if f == nil || f.kind == kindNull {
		return nil
	}
	v := read(f)
	return &v
}

func (m *merged) audit() Audit {
	return Audit{Enabled: m.node("audit.enabled").bool, MaxSize: m.node("audit.maxSize").size(), Keep: m.node("audit.keep").number()}
}
