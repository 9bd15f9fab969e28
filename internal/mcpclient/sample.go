//lint:file-ignore SA1019 what a later revision deprecates, servers of today still ask for: roots

package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// codeRefusedByUser is the error of a client whose person does not want a model
// to be asked (revision 2025-11-25, sampling).
const codeRefusedByUser = -1

// sample lets Options.Sample answer a question of the server for a model
// (sampling/createMessage). The result is checked for what the protocol asks of
// it and goes to the server as it is.
func (s *Source) sample(ctx context.Context, x *exchange, params json.RawMessage) (json.RawMessage, error) {
	if s.opts.Sample == nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "sampling is not available here"}
	}
	fail := func(code int64, err error) (json.RawMessage, error) {
		s.refused("sampling request", err)
		return nil, &jsonrpc.Error{Code: code, Message: "sampling was refused: " + err.Error()}
	}
	switch messages, ok := elements(member(params, "messages")); {
	case !ok || len(messages) == 0:
		return fail(jsonrpc.CodeInvalidParams, errors.New("it holds no messages"))
	case int64(len(params)) > s.opts.Limits.Frame:
		return fail(jsonrpc.CodeInvalidParams, fmt.Errorf("it has %d bytes, the limit is %d", len(params), s.opts.Limits.Frame))
	case !isNull(member(params, "tools")) || !isNull(member(params, "toolChoice")):
		// Only sampling without tools is advertised.
		return fail(jsonrpc.CodeInvalidParams, errors.New("it brings tools, which the command of sampling.command does not get"))
	}
	if !x.mayAsk(true, s.opts.Limits.Samples) {
		err := fmt.Errorf("more than %d came during one request", s.opts.Limits.Samples)
		if x == nil || x.what == "" {
			err = tooMany(x)
		}
		return fail(codeRefusedByUser, err)
	}
	result, err := s.opts.Sample(ctx, Sampling{Server: s.opts.Server.Name, During: x.what, Params: params})
	if err != nil { // told by whoever refused
		return nil, &jsonrpc.Error{Code: codeRefusedByUser, Message: "sampling was refused: " + err.Error()}
	}
	role, _ := text(member(result, "role"))
	if content := member(result, "content"); role == "" || !isObject(content) || !json.Valid(result) {
		return fail(jsonrpc.CodeInternalError, errors.New("the answer is no message with a role and content"))
	}
	return result, nil
}

// root returns the workspace as the only root, false where there is none.
func (s *Source) root() (mcp.Root, bool) {
	if s.opts.Workspace == "" {
		return mcp.Root{}, false
	}
	path := filepath.ToSlash(s.opts.Workspace)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	return mcp.Root{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: filepath.Base(s.opts.Workspace)}, true
}

// rootsResult is the result of roots/list.
func (s *Source) rootsResult() json.RawMessage {
	roots := []mcp.Root{}
	if r, ok := s.root(); ok {
		roots = append(roots, r)
	}
	out, err := json.Marshal(map[string]any{"roots": roots})
	if err != nil {
		return json.RawMessage(`{"roots":[]}`) // strings alone: cannot fail
	}
	return out
}
