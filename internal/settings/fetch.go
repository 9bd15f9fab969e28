package settings

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/webaddr"
)

// headersKey names the setting with the headers of web_fetch.
const headersKey = "fetch.headers"

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

func (m *merged) originHeaders() []OriginHeaders {
	var out []OriginHeaders
	for _, e := range m.named(headersKey) {
		origin, _ := parseOrigin(e.Name) // already checked
		out = append(out, OriginHeaders{URL: origin, Headers: toPairs(e.Value, e.Origin)})
	}
	return out
}

// checkOriginHeaders reports what is wrong with fetch.headers: its names must be
// origins and its values objects of headers.
func (r *reader) checkOriginHeaders(key string, n *jsonx.Value) {
	if !r.want(n, key, jsonx.Object, "an object") {
		return
	}
	for _, f := range n.Members {
		if _, err := parseOrigin(f.Name); err != nil {
			r.fail(f.Pos, "write it as in https://api.example.com", "%s: %s", key, err)
		}
		r.pairs(&table.Row{Name: "headers"}, key+"."+f.Name, f.Value)
	}
}

// parseOrigin reads scheme://host[:port]. The error does not include the text,
// which could be an address with a secret.
func parseOrigin(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", fmt.Errorf("an entry name is not an http or https origin")
	}
	if u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("the entry for %s has more than scheme, host and port", document.Printable(u.Host))
	}
	return webaddr.Origin(u), nil
}
