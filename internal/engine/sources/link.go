package sources

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/mcpclient/ask"
	"github.com/toolreg/toolreg/internal/mcpclient/keep"
	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/sandbox/confine"
	"github.com/toolreg/toolreg/internal/settings"
)

// link is the place of a server in the session that uses it. When the settings are read again
// and those of the server are the same, the server goes on in the new session: it then asks,
// logs and stores as that session says. It implements [mcpclient.Memory].
type link struct {
	source *mcpclient.Source
	now    atomic.Pointer[mcpclient.Options] // of the session that owns the server
}

// newLink creates a server.
func newLink(o mcpclient.Options) *link {
	l, given := &link{}, o
	l.now.Store(&given)
	if o.Memory != nil {
		o.Memory = l
	}
	o.Expand = func(ctx context.Context, s settings.Server) (settings.Server, error) {
		return l.now.Load().Expand(ctx, s)
	}
	o.Hide = func(text string) string { return l.now.Load().Hide(text) }
	o.Auth = func(s settings.Server) wire.Authorizer { return l.now.Load().Auth(s) }
	o.Confine = func(ctx context.Context, spec *process.Spec) (func(), error) { return l.now.Load().Confine(ctx, spec) }
	o.Elicit = func(ctx context.Context, e ask.Elicitation) (ask.Answer, error) { return l.now.Load().Elicit(ctx, e) }
	o.Refused = func(server, what, reason string) { l.now.Load().Refused(server, what, reason) }
	if o.Sample != nil {
		o.Sample = func(ctx context.Context, s ask.Sampling) (json.RawMessage, error) { return l.now.Load().Sample(ctx, s) }
	}
	if o.Keep != nil {
		k := *o.Keep
		k.Origin = func() keep.Origin { return l.now.Load().Keep.Origin() }
		k.Folder = func(ctx context.Context) (*keep.Folder, error) { return l.now.Load().Keep.Folder(ctx) }
		k.Plan = func(ctx context.Context, spec *process.Spec) (json.RawMessage, error) {
			return l.now.Load().Keep.Plan(ctx, spec)
		}
		o.Keep = &k
	}
	l.source = mcpclient.New(o)
	return l
}

// Load implements [mcpclient.Memory].
func (l *link) Load(ctx context.Context) (mcpclient.Known, error) {
	return l.now.Load().Memory.Load(ctx)
}

// Protocol implements [mcpclient.Memory].
func (l *link) Protocol(ctx context.Context) string { return l.now.Load().Memory.Protocol(ctx) }

// Save implements [mcpclient.Memory].
func (l *link) Save(ctx context.Context, known mcpclient.Known) { l.now.Load().Memory.Save(ctx, known) }

// place is what a server is linked by: its name and, if it is reached with the login of a client,
// the name of the client.
type place struct{ server, client string }

// links are the servers of a session, and which of them an earlier session still owns.
type links struct {
	confiner *confine.Confiner
	earlier  *links // of the session that this one is to replace; nil if there is none

	mu     sync.Mutex
	all    map[place]*link
	shared map[*link]*mcpclient.Options // with earlier, and their options in this session
}

// remove forgets a server.
func (a *links) remove(at place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.shared, a.all[at])
	delete(a.all, at)
}

// server returns the server of these options: that of the earlier session if it can go on, or a
// new one. client is the client whose login is used; "" if it is the person's.
func (a *links) server(o mcpclient.Options, client string) *mcpclient.Source {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := place{o.Server.Name, client}
	if a.earlier != nil {
		if l := a.earlier.all[at]; l != nil && goesOn(l, &o) && a.confiner.Same(confine.Server(at.server), a.earlier.confiner) {
			a.all[at], a.shared[l] = l, &o
			return l.source
		}
	}
	a.all[at] = newLink(o)
	return a.all[at].source
}

// goesOn reports whether a server can go on with other options, because nothing that matters to
// its process differs. One that failed does not: the change may have mended it.
func goesOn(l *link, o *mcpclient.Options) bool {
	before := l.now.Load()
	return l.source.Info().State != mcpclient.StateFailed &&
		(before.Folder == nil) == (o.Folder == nil) && (before.Sample == nil) == (o.Sample == nil) &&
		reflect.DeepEqual(processOptions(*before), processOptions(*o))
}

// processOptions returns the options of a server without functions, places in settings files
// and filters, which the registry applies.
func processOptions(o mcpclient.Options) mcpclient.Options {
	s := &o.Server
	s.Origin.Line, s.Origin.Col, s.TrustOrigin = 0, 0, settings.Origin{}
	s.IncludeTools, s.ExcludeTools = settings.List{}, settings.List{}
	s.Env, s.Headers = withoutPlaces(s.Env), withoutPlaces(s.Headers)
	o.Expand, o.Hide, o.Folder, o.Memory, o.Auth, o.Confine = nil, nil, nil, nil, nil, nil
	o.Logger, o.OnState, o.OnLog, o.Callbacks = nil, nil, nil, ask.Callbacks{}
	if o.Keep != nil {
		k := *o.Keep
		k.Origin, k.Folder, k.Plan = nil, nil, nil
		o.Keep = &k
	}
	return o
}

func withoutPlaces(pairs []settings.Pair) []settings.Pair {
	out := slices.Clone(pairs)
	for i := range out {
		out[i].Origin = settings.Origin{}
	}
	return out
}

// takeOver makes this session the owner of the servers that it shares with the earlier one.
// released is called with each.
func (a *links) takeOver(released func(registry.Source)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l, o := range a.shared {
		l.now.Store(o)
		released(l.source)
	}
	a.shared, a.earlier = nil, nil
}

// release calls released with each server that the earlier session still owns.
func (a *links) release(released func(registry.Source)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for l := range a.shared {
		released(l.source)
	}
}
