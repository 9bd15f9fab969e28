package settings

import (
	"time"

	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// Fetch holds the fetch.* settings other than [Settings.FetchAllow].
type Fetch struct {
	Processor Command       `setting:"fetch.processor"` // unexpanded
	Proxy     bool          `setting:"fetch.proxy"`
	Timeout   time.Duration `setting:"fetch.timeout"`
	MaxBytes  int64         `setting:"fetch.maxBytes"`
	Headers   []OriginHeaders
}

// OriginHeaders holds the headers that are sent to one origin only.
type OriginHeaders struct {
	URL     string // the origin, scheme://host:port, in normal form
	Headers []Pair // unexpanded
}

func originHeaders(m *merge.Merged) []OriginHeaders {
	var out []OriginHeaders
	for _, e := range m.Named("fetch.headers") {
		origin, _ := table.ParseOrigin(e.Name) // already checked
		out = append(out, OriginHeaders{URL: origin, Headers: toPairs(e.Value, e.Origin)})
	}
	return out
}
