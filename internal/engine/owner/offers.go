package owner

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/trust"
)

// Offer names a prompt, a resource or a resource template of a server. Exactly one of the last
// three fields is set.
type Offer struct {
	Server   string
	Prompt   string
	URI      string // in canonical form
	Template string
}

// key returns the name without its server, as it is recorded.
func (n Offer) key() string {
	switch {
	case n.Prompt != "":
		return "prompt " + n.Prompt
	case n.Template != "":
		return "template " + n.Template
	}
	return "resource " + n.URI
}

func offerName(server, key string) Offer {
	kind, name, _ := strings.Cut(key, " ")
	switch kind {
	case "prompt":
		return Offer{Server: server, Prompt: name}
	case "template":
		return Offer{Server: server, Template: name}
	}
	return Offer{Server: server, URI: name}
}

const (
	// maxOffers is how many names of one server are remembered, and maxOffer how long one may be. A
	// name beyond these limits belongs to the first server that has it, in the order of the
	// settings.
	maxOffers = 1000
	maxOffer  = 2 << 10
)

// Offers decides which server a prompt's name, a resource's URI or a resource template belongs to:
// the one that had it first, as long as its entry is in the settings. If several names match one
// URI, the oldest wins. A prompt "server__…" belongs to that server. It is safe for concurrent use.
type Offers struct {
	opts  Options
	tools *Names

	mu     sync.Mutex
	loaded bool
	holders
}

// NewOffers returns the names of prompts and resources in the project of tools. It reads nothing
// until it is asked.
func NewOffers(tools *Names) *Offers { return &Offers{opts: tools.opts, tools: tools} }

// load reads the record. The caller holds mu.
func (o *Offers) load() {
	if o.loaded {
		return
	}
	o.loaded = true
	var err error
	if o.holders, err = o.opts.readHolders(o.opts.Folders.OfferNames(trust.Real(o.opts.Settings.ProjectRoot))); err != nil {
		o.opts.unknown("it is not known to which server resources and prompts belong: "+err.Error(), hintForget)
	}
}

// Owner returns the server to which a name belongs, or "" if it belongs to none. A lower since
// means that the server has had the name for longer.
func (o *Offers) Owner(name Offer) (server string, since int) {
	o.tools.mu.Lock()
	server = o.tools.keptFor(name.Prompt)
	o.tools.mu.Unlock()
	if server != "" {
		return server, 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.load()
	if h := o.first(o.held[name.key()]); h != nil {
		return h.Server, h.Since
	}
	return "", 0
}

// Of returns the names that belong to a server, sorted.
func (o *Offers) Of(server string) []Offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.load()
	var out []Offer
	for _, key := range slices.Sorted(maps.Keys(o.held)) {
		if h := o.first(o.held[key]); h != nil && h.Server == server {
			out = append(out, offerName(server, key))
		}
	}
	return out
}

// Keep remembers the names that servers have now, in the order of the settings. A name that belongs
// to another server stays with it.
func (o *Offers) Keep(ctx context.Context, given []Offer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.load()
	add := func(all map[string][]state.Holder, stored bool) (changed bool) {
		count, last := map[string]int{}, 0
		for _, holders := range all {
			if h := o.first(holders); h != nil {
				count[h.Server]++
				last = max(last, h.Since)
			}
		}
		for _, name := range given {
			key := name.key()
			file := o.fileOf(name.Server)
			if len(o.remaining(all[key])) > 0 || len(key) > maxOffer ||
				count[name.Server] >= maxOffers || stored && file == "" {
				continue
			}
			count[name.Server]++
			last++
			all[key], changed = []state.Holder{{Server: name.Server, File: file, Since: last}}, true
		}
		return changed
	}
	own := maps.Clone(o.held)
	if !add(own, false) {
		return
	}
	if o.record != nil && o.opts.Store {
		held, err := o.record.Update(ctx, func(all map[string][]state.Holder) { add(all, true) })
		if err == nil {
			o.held = held
			add(o.held, false) // servers that are not in a settings file
			return
		}
		o.opts.Log.Debug("remembering what servers offer", "err", err)
	}
	o.held = own
}
