package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/lazy"
	"github.com/toolreg/toolreg/internal/text"
)

// The two generations of the protocol begin differently. A modern server
// (revision 2026-07-28 and later) answers server/discover; a legacy server
// expects initialize. So server/discover is sent first, as a probe, and
// initialize if the probe is refused. Some servers never answer unknown
// requests, and others take seconds to start; a client cannot tell them apart.
// Therefore silence is not a reason to kill or restart a server: if a time
// window passes without an answer, initialize is sent too, on the same
// connection, and whichever answer arrives is used.
//
//   - The probe is refused, or initialize succeeds: legacy. A server that
//     ignores the probe costs one window, and only once if the result is
//     stored; one that starts slowly costs nothing.
//   - The probe succeeds and initialize is refused, or not answered within
//     another window: modern.
//   - initialize is refused: the answer to the probe may only be late, as a
//     modern server on a busy machine answers requests in any order. It is
//     waited for longer.
//   - Both succeed: legacy, since initialize is what the server saw last.
//   - The server exits because of the probe: connect again in legacy mode.

// Mode selects the generations of the protocol to try.
type Mode int

// The modes.
const (
	ModeAuto   Mode = iota // server/discover as a probe, then initialize
	ModeLegacy             // only initialize
	ModeModern             // only server/discover, without a window
)

// afterRefusal is how long to wait for the answer to the probe when initialize was refused.
const afterRefusal = 5 * time.Second

// Handshake agrees on a revision with the server, as selected by mode. window is how long to
// wait for the answer to the probe. Errors are those of [Session.Do], or describe an invalid
// answer of the server. Call Handshake once, before Do.
func (s *Session) Handshake(ctx context.Context, mode Mode, window time.Duration) error {
	var o Opening
	var err error
	switch mode {
	case ModeLegacy:
		o, err = s.initialize(ctx)
	case ModeModern:
		o, err = s.discover(ctx)
		if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
			err = fmt.Errorf("the server does not speak revision %s or later (%w)", FirstModern, refused)
		}
	default:
		o, err = s.negotiate(ctx, window)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.opening = o
	s.mu.Unlock()
	if o.Revision < FirstModern {
		s.confirm(ctx)
	}
	return nil
}

// Continue takes the result of a handshake that another session has made with the server,
// instead of [Session.Handshake].
func (s *Session) Continue(o Opening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening = o
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.table.serial = rand.Int64N(1 << 50) // ids of requests must not occur twice in a session
}

// negotiate probes the server, and sends initialize if it may be needed.
func (s *Session) negotiate(ctx context.Context, window time.Duration) (Opening, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the request that is not needed
	type greeting struct {
		Opening
		err error
	}
	send := func(f func(context.Context) (Opening, error)) <-chan greeting {
		out := make(chan greeting, 1)
		s.spawn(func() {
			o, err := f(ctx)
			out <- greeting{o, err}
		})
		return out
	}
	probing := send(s.discover)
	var initializing <-chan greeting // nil means not sent
	var probe, initialize *greeting  // nil means not answered
	timer := time.After(window)
	for {
		late := false
		select {
		case g := <-probing:
			probe = &g
		case g := <-initializing:
			initialize = &g
		case <-timer:
			late = true
		case <-ctx.Done():
			return Opening{}, context.Cause(ctx)
		}
		switch {
		case initialize != nil && initialize.err == nil:
			return initialize.Opening, nil
		case probe != nil && probe.err == nil && (initializing == nil || initialize != nil || late):
			return probe.Opening, nil
		case probe != nil && probe.err != nil && !mayBeLegacy(probe.err):
			return Opening{}, probe.err
		case initialize != nil && (probe != nil || late):
			return Opening{}, initialize.err
		case initializing == nil:
			initializing = send(s.initialize)
		case probe != nil:
			timer = time.After(window) // for the answer to initialize
		case initialize != nil:
			timer = time.After(max(window, afterRefusal))
		}
	}
}

// mayBeLegacy reports whether a server may speak older revisions although it refused the probe with
// err. If it refused for lack of a login, initialize is not tried: some servers allow it without a
// login, which would hide that one is needed.
func mayBeLegacy(err error) bool {
	if refused, ok := errors.AsType[*HTTPError](err); ok {
		return !refused.needsLogin
	}
	_, refused := errors.AsType[*jsonrpc.Error](err)
	_, unusable := errors.AsType[*AnswerError](err)
	return refused || unusable
}

// initialize performs the handshake of revisions up to 2025-11-25. A server may refuse the revision
// and name older ones, although it should have answered with one of them, or not know a capability
// that is new; it is then asked again in an older revision.
func (s *Session) initialize(ctx context.Context) (Opening, error) {
	begin := func(revision string) (json.RawMessage, error) {
		return s.Do(ctx, &Request{Method: methodInitialize, revision: new(string), Params: marshal(map[string]any{
			"protocolVersion": revision, "capabilities": s.opts.capabilities(revision), "clientInfo": &s.opts.Client,
		})})
	}
	raw, err := begin(LastLegacy)
	for older := olderIn(err, LastLegacy); older != ""; older = olderIn(err, older) {
		raw, err = begin(older)
	}
	if err != nil {
		return Opening{}, err
	}
	server, err := serverOf(raw)
	if err != nil {
		return Opening{}, err
	}
	revision, _ := jsonx.Text(jsonx.Get(raw, "protocolVersion"))
	switch {
	case revision == "":
		return Opening{}, &AnswerError{"its answer to initialize has no protocolVersion"}
	case !slices.Contains(Revisions(), revision):
		return Opening{}, &AnswerError{fmt.Sprintf("it speaks revision %s of the protocol, and toolreg speaks %s",
			text.Quote(revision), strings.Join(Revisions(), ", "))}
	}
	tasks := jsonx.Get(raw, "capabilities") // the SDK's type does not have them
	for _, name := range []string{"tasks", "requests", "tools", "call"} {
		tasks = jsonx.Get(tasks, name)
	}
	server.Tasks = jsonx.KindOf(tasks) == jsonx.Object
	return Opening{revision, server}, nil
}

var unknownField = lazy.NewRegexp(`(?i)\b(unrecognized|unknown|additional) (field|key|propert)`)

// olderIn returns the newest revision before asked that a server which refused initialize may
// accept: one that the refusal names, or any if it says that a field is unknown; "" if there is none.
func olderIn(err error, asked string) string {
	said := ""
	if failed, ok := errors.AsType[*HTTPError](err); ok {
		said = failed.body
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		said = refused.Message + string(refused.Data)
	}
	if said == "" {
		return ""
	}
	unknown := unknownField.Get().MatchString(said)
	for _, ours := range Revisions() {
		if ours < asked && (unknown || strings.Contains(said, ours)) {
			return ours
		}
	}
	return ""
}

// discover performs the handshake of later revisions. If the server names another revision
// that both sides speak, it is asked again.
func (s *Session) discover(ctx context.Context) (Opening, error) {
	asked := FirstModern
	raw, err := s.Do(ctx, &Request{Method: methodDiscover, revision: &asked})
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && refused.Code == mcp.CodeUnsupportedProtocolVersion {
		var data mcp.UnsupportedProtocolVersionData
		if json.Unmarshal(refused.Data, &data) == nil && sharedRevision(data.Supported, asked) != "" {
			asked = sharedRevision(data.Supported, asked)
			raw, err = s.Do(ctx, &Request{Method: methodDiscover, revision: &asked})
		}
	}
	if err != nil {
		return Opening{}, err
	}
	server, err := serverOf(raw)
	if err != nil {
		return Opening{}, err
	}
	var supported []string
	versions, _ := jsonx.Elements(jsonx.Get(raw, "supportedVersions"))
	for _, name := range versions {
		revision, _ := jsonx.Text(name)
		supported = append(supported, revision)
	}
	revision := sharedRevision(supported, asked)
	if revision == "" {
		return Opening{}, &AnswerError{"it supports no protocol revision that toolreg supports"}
	}
	if server.Info == nil {
		server.Info = jsonx.Get(jsonx.Get(raw, "_meta"), mcp.MetaKeyServerInfo)
	}
	return Opening{revision, server}, nil
}

// sharedRevision returns a modern revision that both sides speak: asked if possible, otherwise the
// newest, or "" if there is no such revision.
func sharedRevision(theirs []string, asked string) string {
	if slices.Contains(theirs, asked) {
		return asked
	}
	for _, ours := range Revisions() {
		if ours >= FirstModern && slices.Contains(theirs, ours) {
			return ours
		}
	}
	return ""
}

// serverOf reads a server's description of itself in its answer to initialize or server/discover. A
// malformed part is ignored alone. A capability counts as declared if its name is there, because
// some languages write {"tools": []} for {"tools": {}}.
func serverOf(answer json.RawMessage) (Server, error) {
	if jsonx.KindOf(answer) != jsonx.Object {
		return Server{}, &AnswerError{"its answer is not an object"}
	}
	var s Server
	s.Instructions, _ = jsonx.Text(jsonx.Get(answer, "instructions"))
	if info := jsonx.Get(answer, "serverInfo"); jsonx.KindOf(info) == jsonx.Object {
		s.Info = info
	}
	for name, value := range jsonx.Members(jsonx.Get(answer, "capabilities")) {
		if jsonx.IsNull(value) || jsonx.KindOf(value) == jsonx.False {
			continue
		}
		for _, form := range []string{string(value), "{}"} {
			if json.Unmarshal([]byte("{"+jsonx.Quote(name)+":"+form+"}"), &s.Capabilities) == nil {
				break
			}
		}
	}
	return s, nil
}
