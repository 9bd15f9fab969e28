package settings

import (
	"reflect"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/settings/table"
)

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
	Pattern    string         `setting:"*"` // a tool's name, or a glob
	Timeout    *time.Duration `setting:"timeout"`
	MaxOutput  *int64         `setting:"maxOutput"` // bytes
	Retries    *int           `setting:"retries"`
	RetryDelay *time.Duration `setting:"retryDelay"`
	Cache      *time.Duration `setting:"cache"`
	Log        string         `setting:"log"` // LogCalls, LogParams, LogNone; "" means not set
	Origin     Origin
}

// ownToolOptions returns the options without those of the project, if it has any.
func (m *merged) ownToolOptions() []ToolOption {
	row := m.index.Row("toolOptions")
	isProject := func(e entry) bool { return e.origin.Scope == ScopeProject }
	if !slices.ContainsFunc(m.entries[row], isProject) {
		return nil
	}
	own := &merged{index: m.index, entries: map[*table.Row][]entry{row: slices.DeleteFunc(slices.Clone(m.entries[row]), isProject)}}
	var out []ToolOption
	own.set(reflect.ValueOf(&out).Elem(), row)
	return out
}
