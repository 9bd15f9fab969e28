//lint:file-ignore SA1019 servers still use roots and sampling, which a later revision deprecates

package ask

import (
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Capabilities returns the client capabilities.
func (h *Handler) Capabilities() *mcp.ClientCapabilities {
	c := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
		Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
	}}
	if h.opts.Workspace != "" {
		c.RootsV2 = &mcp.RootCapabilities{}
	}
	if h.opts.Sample != nil {
		c.Sampling = &mcp.SamplingCapabilities{}
	}
	return c
}

// Roots returns the workspace as the only root, or no roots if there is no
// workspace.
func (h *Handler) Roots() []*mcp.Root {
	if h.opts.Workspace == "" {
		return []*mcp.Root{}
	}
	path := filepath.ToSlash(h.opts.Workspace)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	return []*mcp.Root{{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: filepath.Base(h.opts.Workspace)}}
}

// roots returns the result of roots/list: the roots of the client that made the
// request, if it has any, otherwise ours.
func (h *Handler) roots(ctx context.Context, during *Request) json.RawMessage {
	result, err := during.Peer().Roots(ctx)
	if err == nil && result != nil {
		return result
	}
	if err != nil {
		h.opts.Logger.Warn("the client's roots are not known", "reason", err.Error())
	}
	out, err := json.Marshal(map[string]any{"roots": h.Roots()})
	if err != nil {
		return json.RawMessage(`{"roots":[]}`) // only strings: cannot fail
	}
	return out
}
