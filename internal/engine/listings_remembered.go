package engine

import (
	"context"
	"sync"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// Remembered returns the cached record of a server as the three interfaces that package
// mcpclient uses.
func (l *listingStore) Remembered(server settings.Server) mcpclient.Remembered {
	r := &remembered{server: l.OfServer(server)}
	return mcpclient.Remembered{Protocols: r, Failures: r, Listings: r}
}

// remembered implements [mcpclient.Protocols], [mcpclient.Failures] and
// [mcpclient.Listings].
type remembered struct {
	server *cachedServer

	knowing  sync.Mutex
	protocol string // "" = not known yet
}

// LoadProtocol implements [mcpclient.Protocols].
func (r *remembered) LoadProtocol(ctx context.Context) string {
	r.knowing.Lock()
	defer r.knowing.Unlock()
	if r.protocol == "" {
		known, _ := r.server.Load(ctx) // an error forbids a query, which is already under way
		r.protocol = known.Protocol
	}
	return r.protocol
}

// SaveProtocol implements [mcpclient.Protocols]. It does nothing if the protocol is
// unchanged.
func (r *remembered) SaveProtocol(ctx context.Context, generation string) {
	r.knowing.Lock()
	defer r.knowing.Unlock()
	if r.protocol != generation {
		r.protocol = generation
		r.server.Save(ctx, knownServer{Protocol: generation})
	}
}

// LoadFailure implements [mcpclient.Failures].
func (r *remembered) LoadFailure(ctx context.Context) error {
	known, _ := r.server.Load(ctx) // an error forbids a query, which Load has already decided
	return known.Failure
}

// SaveFailure implements [mcpclient.Failures]. It ignores nil, because saving a listing
// removes the failure.
func (r *remembered) SaveFailure(ctx context.Context, failure error) {
	if failure != nil {
		r.server.Save(ctx, knownServer{Failure: failure})
	}
}

// Load implements [mcpclient.Listings].
func (r *remembered) Load(ctx context.Context) (mcpclient.Listing, bool, error) {
	known, err := r.server.Load(ctx)
	if err != nil || known.Listing == nil {
		return mcpclient.Listing{}, false, err
	}
	r.server.Records.Serve(registry.MCPPrefix+r.server.server.Name, known.Listing.ListedAt)
	return *known.Listing, true, nil
}

// Save implements [mcpclient.Listings].
func (r *remembered) Save(ctx context.Context, l mcpclient.Listing) {
	r.server.Save(ctx, knownServer{Listing: &l})
}

// SaveOffers implements [mcpclient.Listings].
func (r *remembered) SaveOffers(ctx context.Context, kind string, offers []mcpclient.Offer) {
	r.server.Save(ctx, knownServer{Offers: map[string][]mcpclient.Offer{kind: offers}})
}
