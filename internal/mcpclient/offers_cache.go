package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/toolreg/toolreg/internal/text"
)

// Limits on what is stored for completion. The rest is omitted.
const (
	maxOffers           = 500
	maxOfferName        = 1024 // bytes
	maxOfferDescription = 120  // characters
	maxOfferArguments   = 30
)

// storeOffers stores the prompts or the resources that the server has just listed.
func (ls *lister) storeOffers(ctx context.Context, kind string, items []json.RawMessage) {
	if kind == listTemplates {
		return
	}
	offers := []Offer{}
	for _, raw := range items[:min(len(items), maxOffers)] {
		var item struct {
			Offer
			URI   string `json:"uri"`
			Title string `json:"title"`
		}
		if json.Unmarshal(raw, &item) != nil {
			continue
		}
		o := Offer{Name: item.Name, Description: clipOffer(cmp.Or(item.Description, item.Title))}
		if kind == OfferResources {
			o.Name, o.Description = item.URI, cmp.Or(o.Description, clipOffer(item.Name))
		}
		for _, a := range item.Arguments[:min(len(item.Arguments), maxOfferArguments)] {
			if len(a.Name) <= maxOfferName {
				o.Arguments = append(o.Arguments, PromptArgument{Name: a.Name, Description: clipOffer(cmp.Or(a.Description, a.Title)), Required: a.Required})
			}
		}
		if o.Name != "" && len(o.Name) <= maxOfferName {
			offers = append(offers, o)
		}
	}
	ls.opts.Memory.Save(ctx, Known{Offers: map[string][]Offer{kind: offers}})
}

func clipOffer(description string) string {
	return text.ClipRunes(text.FirstSentence(description), maxOfferDescription)
}
