package listings

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/mcpclient"
)

// SaveOffers implements [mcpclient.Listings].
func (l *Server) SaveOffers(ctx context.Context, kind string, offers []mcpclient.Offer) {
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

// Offers returns the prompts or the resources of the server as an earlier run left
// them; kind is [mcpclient.OfferPrompts] or [mcpclient.OfferResources].
func (l *Server) Offers(ctx context.Context, kind string) []mcpclient.Offer {
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

// Forget removes what is cached of the server.
func (l *Server) Forget(ctx context.Context) error {
	key, err := l.listingKey(ctx)
	if err != nil {
		return err
	}
	err = l.Sources.Drop(ctx, key)
	for _, kind := range []string{mcpclient.OfferPrompts, mcpclient.OfferResources} {
		err = errors.Join(err, l.offers.Drop(ctx, offersKey(kind, key)))
	}
	return err
}
