//lint:file-ignore SA1019 servers still use logging and roots, which a later revision deprecates

package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// params returns the params of a request as sent: the given ones, and the _meta members that a
// revision of the protocol requires.
func (o *Options) params(r *Request, revision string) json.RawMessage {
	meta := map[string]any{}
	for name, value := range r.Meta {
		meta[name] = value
	}
	for name, value := range r.trace {
		meta[name] = value
	}
	if r.Progress != nil {
		meta["progressToken"] = r.token()
	}
	if revision >= FirstModern && !r.Relayed {
		meta[mcp.MetaKeyProtocolVersion] = revision
		meta[mcp.MetaKeyClientInfo] = &o.Client
		meta[mcp.MetaKeyClientCapabilities] = o.capabilities(revision)
		if caps := r.Asked.Capabilities(); caps != nil {
			meta[mcp.MetaKeyClientCapabilities] = caps
		}
		if r.Asked != nil && o.LogLevel != "" {
			meta[mcp.MetaKeyLogLevel] = o.LogLevel
		}
	}
	params := bytes.TrimSpace(r.Params)
	if len(meta) == 0 {
		return params
	}
	head := slices.Concat([]byte(`{"_meta":`), marshal(meta))
	if jsonx.KindOf(params) != jsonx.Object || len(bytes.TrimSpace(params[1:len(params)-1])) == 0 {
		return append(head, '}')
	}
	return slices.Concat(head, []byte(","), params[1:])
}

// TasksExtension is the extension with which a server may continue a call as a task.
const TasksExtension = "io.modelcontextprotocol/tasks"

// AppsExtension is the extension by which tools have pages that a client shows (MCP Apps).
const AppsExtension = "io.modelcontextprotocol/ui"

// Apps is what a client that shows such pages declares.
func Apps() any { return map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}} }

// Extensions returns the extensions of revision 2026-07-28 that toolreg supports.
func Extensions() map[string]any { return map[string]any{TasksExtension: struct{}{}} }

// capabilities returns the client capabilities. Without a workspace they do not include
// roots, which the SDK's type cannot express.
func (o *Options) capabilities(revision string) any {
	caps := struct {
		*mcp.ClientCapabilities
		Roots      *mcp.RootCapabilities `json:"roots,omitempty"`
		Extensions map[string]any        `json:"extensions,omitempty"`
	}{o.Capabilities, o.Capabilities.RootsV2, maps.Clone(o.Capabilities.Extensions)}
	if revision >= FirstModern {
		if caps.Extensions == nil {
			caps.Extensions = map[string]any{}
		}
		maps.Copy(caps.Extensions, Extensions())
	}
	return caps
}

// marshal encodes plain structs and maps, which cannot fail.
func marshal(v any) json.RawMessage {
	data, err := jsonx.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return data
}
