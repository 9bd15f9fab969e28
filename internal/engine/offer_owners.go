package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// OfferName is the name of something that a server offers besides tools: of a prompt, a resource or a
// template. One of the last three fields is set.
type OfferName struct {
	Server   string
	Prompt   string
	URI      string // in canonical form
	Template string
}

// key returns the name without its server, as it is recorded.
func (n OfferName) key() string {
	switch {
	case n.Prompt != "":
		return "prompt " + n.Prompt
	case n.Template != "":
		return "template " + n.Template
	}
	return "resource " + n.URI
}

// offerName is the inverse of key.
func offerName(server, key string) OfferName {
	kind, name, _ := strings.Cut(key, " ")
	switch kind {
	case "prompt":
		return OfferName{Server: server, Prompt: name}
	case "template":
		return OfferName{Server: server, Template: name}
	}
	return OfferName{Server: server, URI: name}
}

const (
	// maxOfferNames is how many names are remembered of one server, and maxOfferName how long one
	// may be. Others belong to the first server, in the order of the settings, that has them.
	maxOfferNames = 1000
	maxOfferName  = 2 << 10
)

// OfferOwners decides which server a prompt's name, a resource's URI or a template belongs to: to the
// one that had it first, as long as its entry is in the settings. Of several names that fit one URI the
// oldest counts. It is safe for concurrent use.
type OfferOwners struct {
	names *serverNames // for the entries in the settings

	mu     sync.Mutex
	loaded bool
	record *state.Names // nil if nothing can be remembered
	held   map[string][]state.Holder
}

// load reads the record. The caller holds mu.
func (o *OfferOwners) load() {
	if o.loaded {
		return
	}
	n := o.names
	n.mu.Lock()
	n.load() // what stands in the settings
	n.mu.Unlock()
	o.loaded, o.held = true, map[string][]state.Holder{}
	record, err := openOfferNames(n.set, n.folders)
	if err == nil {
		o.record = record
		var held map[string][]state.Holder
		if held, err = record.Read(); err == nil {
			o.held = held
		}
	}
	if err != nil {
		n.reports.warn("names_unknown", "",
			"it is not known to which server resources and prompts belong: "+err.Error(),
			"`toolreg cache clear --names` forgets which server each name belongs to")
	}
}

// first returns the first holder whose entry is in the settings; the zero value if there is none.
func (o *OfferOwners) first(holders []state.Holder) state.Holder {
	o.names.mu.Lock()
	defer o.names.mu.Unlock()
	if h := o.names.first(holders); h != nil {
		return *h
	}
	return state.Holder{}
}

// Owner returns the server to which a name belongs, and since when compared with other names; "" if
// it belongs to none.
func (o *OfferOwners) Owner(name OfferName) (server string, since int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.load()
	h := o.first(o.held[name.key()])
	return h.Server, h.Since
}

// Of returns the names that belong to a server, sorted.
func (o *OfferOwners) Of(server string) []OfferName {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.load()
	var out []OfferName
	for _, key := range slices.Sorted(maps.Keys(o.held)) {
		if o.first(o.held[key]).Server == server {
			out = append(out, offerName(server, key))
		}
	}
	return out
}

// Keep remembers the names that servers have, in the order of the settings. Those that belong to
// another server stay with it.
func (o *OfferOwners) Keep(ctx context.Context, given []OfferName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.load()
	add := func(all map[string][]state.Holder, stored bool) (changed bool) {
		count, last := map[string]int{}, 0
		for _, holders := range all {
			h := o.first(holders)
			count[h.Server]++
			last = max(last, h.Since)
		}
		for _, name := range given {
			key := name.key()
			o.names.mu.Lock()
			file := o.names.fileOf(name.Server)
			left := slices.DeleteFunc(slices.Clone(all[key]), func(h state.Holder) bool { return o.names.stands(h) == settings.EntryGone })
			o.names.mu.Unlock()
			if len(left) > 0 || len(key) > maxOfferName || count[name.Server] >= maxOfferNames || stored && file == "" {
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
	if n := o.names; o.record != nil && n.keeps {
		held, err := o.record.Update(ctx, func(all map[string][]state.Holder) { add(all, true) })
		if err == nil {
			o.held = held
			add(o.held, false) // servers that are not in a settings file
			return
		}
		n.reports.log.Debug("remembering what servers offer", "err", err)
	}
	o.held = own
}
