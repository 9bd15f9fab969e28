package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/values"
)

// cachedServer is the record of one server. It implements [mcpclient.Memory].
type cachedServer struct {
	*listingStore
	server settings.Server

	program, files keyOnce // without and with the files that the arguments name
}

// OfServer returns the cached record of a server.
func (l *listingStore) OfServer(server settings.Server) *cachedServer {
	return &cachedServer{listingStore: l, server: server}
}

// keyOf returns a key made of the server's expanded settings and its program.
// If files is set, it includes the files that its arguments name, which may
// affect a listing. Values from commands are used as written, because reading a
// cached listing must not run anything.
func (l *cachedServer) keyOf(ctx context.Context, files bool) (string, error) {
	s, err := l.still.Server(ctx, l.server)
	if err != nil {
		return "", err
	}
	oauth, err := json.Marshal(s.OAuth)
	if err != nil {
		return "", err
	}
	root := l.programs.set.ProjectRoot
	k := cache.NewKey("server", l.version, root, l.programs.set.Workspace,
		s.Name, s.Command, s.Cwd, s.URL, s.HTTPURL, s.Type, s.Protocol, string(oauth),
		fmt.Sprint(s.InheritEnv, l.programs.set.StartsOutside(s), l.programs.set.Limits))
	k.Add(s.Args...)
	var given []string
	for _, p := range s.Env {
		k.Add("env", p.Name, p.Value)
		given = append(given, p.Name+"="+p.Value)
	}
	for _, p := range s.Headers {
		k.Add("header", p.Name, p.Value)
	}
	if s.URL != "" || s.HTTPURL != "" {
		return k.String(), nil
	}
	p := cache.Program{Root: root, Dir: folderIn(root, s.Cwd), Argv: append([]string{s.Command}, s.Args...),
		Env: values.Environment(process.ChildEnviron(l.programs.environ), s.Env, s.InheritEnv), Given: given}
	err = k.AddProgram(p)
	if err == nil && files {
		err = k.AddFiles(p)
	}
	return k.String(), err
}

// folderIn returns a folder of the settings, relative to root; "" is root
// itself.
func folderIn(root, dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(root, dir)
}

// record returns the source of the server's record and the keys of its entries. Files
// that the server's arguments name may affect its listing, but not its protocol. fileErr
// is set if only the protocol has a key.
func (l *cachedServer) record(ctx context.Context) (source cache.Source, keys map[cache.Kind]string, fileErr, err error) {
	source.Name = registry.MCPPrefix + l.server.Name
	source.Key, err = l.program.get(func() (string, error) { return l.keyOf(ctx, false) })
	if err != nil {
		return source, nil, nil, err
	}
	keys = map[cache.Kind]string{cache.Protocol: "", cache.Seen: ""}
	if !l.Records.Active(cache.Listing) {
		return source, keys, nil, nil
	}
	key, fileErr := l.files.get(func() (string, error) { return l.keyOf(ctx, true) })
	if fileErr == nil {
		keys[cache.Listing], keys[mcpclient.OfferPrompts], keys[mcpclient.OfferResources] = key, key, key
		keys[cache.Failure] = key + " " + l.server.ConnectTimeout.String() // it may have been too short
	}
	return source, keys, fileErr, nil
}

// Load implements [mcpclient.Memory]. An error comes with what is known besides the
// listing.
func (l *cachedServer) Load(ctx context.Context) (known mcpclient.Known, err error) {
	if !l.Records.Reads(cache.Listing) && !l.Records.Reads(cache.Seen) {
		return known, nil // nor is anything else read that comes with a listing
	}
	source, keys, fileErr, err := l.record(ctx)
	if err != nil {
		return known, l.noKey(err)
	}
	record, err := l.Records.Load(source, keys)
	if fileErr != nil {
		err = l.noKey(fileErr)
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
	if json.Unmarshal(kept.Facts, &listing.Facts) == nil && (listing.Facts.Counted || !l.counts || l.mode == cache.Offline) {
		known.Listing, err = listing, nil
		l.Records.Serve(source.Name, listing.ListedAt)
	}
	return known, err
}

// Protocol implements [mcpclient.Memory].
func (l *cachedServer) Protocol(ctx context.Context) (protocol string) {
	source, _, _, err := l.record(ctx)
	if err != nil {
		return ""
	}
	_ = json.Unmarshal(l.Records.Facts(source, cache.Protocol), &protocol) // ignore invalid data
	return protocol
}

// Save implements [mcpclient.Memory]. A missing login is not stored: it is detected
// immediately and ends when the user logs in.
func (l *cachedServer) Save(ctx context.Context, known mcpclient.Known) {
	if known.Protocol == "" && !l.Records.Keeps(cache.Listing) && !l.Records.Keeps(cache.Seen) {
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
	l.Records.Save(source, record)
}

// Forget removes the server's record from the cache.
func (l *cachedServer) Forget(ctx context.Context) error {
	source, _, _, err := l.record(ctx)
	if err != nil {
		return err
	}
	return l.Records.Drop(ctx, source)
}
