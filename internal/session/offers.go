package session

import (
	"context"
	"encoding/json"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/settings"
)

// SaveOffers implements [mcpclient.Listings].
func (l *serverListing) SaveOffers(ctx context.Context, kind string, offers []mcpclient.Offer) {
	if !l.offers.Active() {
		return
	}
	key, err := l.listingKey(ctx)
	data, jsonErr := json.Marshal(offers)
	if err == nil && jsonErr == nil {
		l.offers.Save(l.source(), offersKey(kind, key), cache.Entry{Facts: data})
	}
}

// offersKey is the key of one kind of offers of the server whose listing has a key.
func offersKey(kind, listing string) string { return kind + "-" + listing }

// CachedOffers returns the prompts or the resources of a server as an earlier run
// left them; kind is [mcpclient.OfferPrompts] or [mcpclient.OfferResources].
// Nothing is started.
func (s *Session) CachedOffers(ctx context.Context, server, kind string) []mcpclient.Offer {
	for _, known := range s.set.Servers {
		if known.Name != server || known.Disabled || known.Excluded != nil {
			continue
		}
		l := s.cached.ofServer(known)
		key, err := l.listingKey(ctx)
		if err != nil {
			return nil
		}
		var out []mcpclient.Offer
		e, ok, err := l.offers.Load(l.source(), offersKey(kind, key), nil)
		if err != nil || !ok || json.Unmarshal(e.Facts, &out) != nil {
			return nil
		}
		return out
	}
	return nil
}

// ForgetListing removes what is cached of a server, because another login may see
// other tools.
func (s *Session) ForgetListing(ctx context.Context, server settings.Server) {
	l := s.cached.ofServer(server)
	key, err := l.listingKey(ctx)
	if err == nil {
		err = l.sources.Drop(ctx, key)
	}
	for _, kind := range []string{mcpclient.OfferPrompts, mcpclient.OfferResources} {
		if err == nil {
			err = l.offers.Drop(ctx, offersKey(kind, key))
		}
	}
	if err != nil {
		s.deps.Log.Debug("the listing is not dropped", "server", server.Name, "err", err)
	}
}

// CachedListings describes the cached listings of sources, the oldest first.
func (s *Session) CachedListings() ([]cache.Kept, error) { return s.cached.sources.List() }
