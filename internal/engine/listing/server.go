package listing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// Server is the record of one server. It implements [mcpclient.Memory].
type Server struct {
	store  *Store
	server settings.Server

	program, files keyOnce // without and with the files that the arguments name
}

// OfServer returns the cached record of a server.
func (l *Store) OfServer(server settings.Server) *Server { return &Server{store: l, server: server} }

// keyOf returns a key made of the server's expanded settings and its program.
// If files is set, it includes the files that its arguments name, which may
// affect a listing. Values from commands are used as written, because reading a
// cached listing must not run anything.
func (l *Server) keyOf(ctx context.Context, files bool) (string, error) {
	s, err := l.store.still.Server(ctx, l.server)
	if err != nil {
		return "", err
	}
	oauth, err := json.Marshal(s.OAuth)
	if err != nil {
		return "", err
	}
	root := l.store.opts.Settings.ProjectRoot
	k := cache.NewKey("server", l.store.opts.Version, root, l.store.opts.Settings.Workspace,
		s.Name, s.URL, s.HTTPURL, s.Type, s.Protocol, string(oauth),
		fmt.Sprint(s.InheritEnv, l.store.opts.Settings.StartsOutside(s), l.store.opts.Settings.Limits))
	for _, p := range s.Headers {
		k.Add("header", p.Name, p.Value)
	}
	if s.URL != "" || s.HTTPURL != "" {
		return k.String(), nil
	}
	p := cache.Program{Root: root, Dir: expand.From(root, s.Cwd), Argv: append([]string{s.Command}, s.Args...),
		Env:   values.Environment(process.ChildEnviron(l.store.opts.Environ), s.Env, s.InheritEnv),
		Given: values.Pairs(s.Env)}
	err = k.AddProgram(p)
	if err == nil && files {
		err = k.AddFiles(p)
	}
	return k.String(), err
}

// record returns the source of the server's record and the keys of its entries. Files
// that the server's arguments name may affect its listing, but not its protocol. fileErr
// is set if only the protocol has a key.
func (l *Server) record(ctx context.Context) (source cache.Source, keys map[cache.Kind]string, fileErr, err error) {
	source.Name = registry.MCPPrefix + l.server.Name
	source.Key, err = l.program.get(func() (string, error) { return l.keyOf(ctx, false) })
	if err != nil {
		return source, nil, nil, err
	}
	keys = map[cache.Kind]string{cache.Protocol: "", cache.Seen: ""}
	if !l.store.Records.Active(cache.Listing) {
		return source, keys, nil, nil
	}
	key, fileErr := l.files.get(func() (string, error) { return l.keyOf(ctx, true) })
	if fileErr == nil {
		keys[cache.Listing], keys[mcpclient.OfferPrompts], keys[mcpclient.OfferResources] = key, key, key
		keys[cache.Failure] = key + " " + l.server.ConnectTimeout.String() // it may have been too short
	}
	return source, keys, fileErr, nil
}

// Load implements [mcpclient.Memory]. If it returns an error, known has what is known besides the
// listing.
func (l *Server) Load(ctx context.Context) (known mcpclient.Known, err error) {
	if !l.store.Records.Reads(cache.Listing) && !l.store.Records.Reads(cache.Seen) {
		return known, nil // without a listing, nothing that belongs to one is read either
	}
	source, keys, fileErr, err := l.record(ctx)
	if err != nil {
		return known, l.store.noKey(err)
	}
	record, err := l.store.Records.Load(source, keys)
	if fileErr != nil {
		err = l.store.noKey(fileErr)
	}
	known.Failure = failureOf(record)
	known.Offers = map[string][]mcpclient.Offer{}
	for _, kind := range []string{mcpclient.OfferPrompts, mcpclient.OfferResources} {
		var offers []mcpclient.Offer
		if json.Unmarshal(record[cache.Kind(kind)].Facts, &offers) == nil {
			known.Offers[kind] = offers
		}
	}
	kept, ok := record[cache.Listing]
	if seen, has := record[cache.Seen]; !ok && has {
		kept = seen
	}
	listing := &mcpclient.Listing{Tools: kept.Parts, ListedAt: kept.Stored}
	if json.Unmarshal(kept.Facts, &listing.Facts) == nil &&
		(listing.Facts.Counted || !l.store.opts.Counts || l.store.opts.Mode == cache.Offline) {
		known.Listing, err = listing, nil
		l.store.Records.Serve(source.Name, listing.ListedAt)
	}
	return known, err
}

// Protocol implements [mcpclient.Memory].
func (l *Server) Protocol(ctx context.Context) (protocol string) {
	source, _, _, err := l.record(ctx)
	if err != nil {
		return ""
	}
	_ = json.Unmarshal(l.store.Records.Facts(source, cache.Protocol), &protocol) // ignore invalid data
	return protocol
}

// Save implements [mcpclient.Memory]. A missing login is not stored: it is detected
// immediately and ends when the user logs in.
func (l *Server) Save(ctx context.Context, known mcpclient.Known) {
	if known.Protocol == "" && !l.store.Records.Keeps(cache.Listing) && !l.store.Records.Keeps(cache.Seen) {
		return
	}
	source, keys, _, err := l.record(ctx)
	if err != nil {
		return
	}
	record := cache.Record{}
	put := func(kind cache.Kind, facts any, parts [][]byte) {
		key, ok := keys[kind]
		if data, err := json.Marshal(facts); ok && err == nil {
			record[kind] = cache.Entry{Key: key, Facts: data, Parts: parts}
		}
	}
	if known.Protocol != "" {
		put(cache.Protocol, known.Protocol, nil)
	}
	for kind, offers := range known.Offers {
		put(cache.Kind(kind), offers, nil)
	}
	switch {
	case known.Listing != nil:
		put(cache.Listing, known.Listing.Facts, known.Listing.Tools)
		put(cache.Seen, known.Listing.Facts, known.Listing.Tools)
		record[cache.Failure] = cache.Entry{}
	case known.Failure != nil && !errors.Is(known.Failure, registry.ErrNeedsLogin):
		put(cache.Failure, keptFailure{known.Failure.Error()}, nil)
	}
	l.store.Records.Save(source, record)
}

// Forget removes the server's record from the cache.
func (l *Server) Forget(ctx context.Context) error {
	source, _, _, err := l.record(ctx)
	if err != nil {
		return err
	}
	return l.store.Records.Drop(ctx, source)
}
