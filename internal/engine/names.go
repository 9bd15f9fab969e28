package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
)

// serverNames decides which server a name belongs to: "server__…" to that server, a plain
// name to the server that the lock file names, else to the one that had it first, as long
// as its entry is in the settings. It implements [registry.Names].
type serverNames struct {
	set     *settings.Settings
	folders *state.Folders
	reports *reports
	lock    func() (*lock.Set, error) // reads the lock files that say to whom a name belongs
	locks   bool                      // a damaged lock file does not matter, because it is written anew
	keeps   bool                      // names that are given out are stored

	mu       sync.Mutex
	loaded   bool
	blind    *InputError // why it is not known to whom plain names belong
	record   *state.Names
	held     map[string][]state.Holder
	locked   map[string]string // by lock files
	own      map[string]string // by lock files that the person trusts
	hasLock  bool              // the person trusts one of them
	prefixes []prefix          // longest first
	standing map[state.Holder]settings.Standing
}

// prefix is the beginning of the names that are kept for a server.
type prefix struct{ text, server string }

// namesQualified is the value of the setting names.servers for which no server's tool has a
// plain name.
const namesQualified = "qualified"

// OpenNames returns the record of which server each name belongs to in the project.
func OpenNames(set *settings.Settings, folders *state.Folders) (*state.Names, error) {
	return folders.Names(realRoot(set))
}

// openOfferNames returns the record of which server each resource and prompt belongs to in the
// project. [state.Names.Forget] of the record of names removes it, too.
func openOfferNames(set *settings.Settings, folders *state.Folders) (*state.Names, error) {
	return folders.OfferNames(realRoot(set))
}

// realRoot returns the project root without symbolic links.
func realRoot(set *settings.Settings) string {
	if path, err := filepath.EvalSymlinks(set.ProjectRoot); err == nil {
		return path
	}
	return set.ProjectRoot
}

// load reads the lock file and the record of names. The caller holds mu.
func (n *serverNames) load() {
	if n.loaded {
		return
	}
	n.loaded, n.standing, n.held = true, map[state.Holder]settings.Standing{}, map[string][]state.Holder{}
	locks, err := n.lock()
	switch {
	case err == nil:
		n.locked, n.own, n.hasLock = locks.Owners()
	case errors.Is(err, fs.ErrNotExist):
	case !n.locks:
		n.blind = &InputError{Err: fmt.Errorf("plain names of servers' tools are not known: %w", err), Hint: lock.Anew}
	}
	if n.record, err = OpenNames(n.set, n.folders); err == nil {
		if n.held, err = n.record.Read(); err != nil {
			n.blind = &InputError{
				Err:  fmt.Errorf("plain names of servers' tools are not known: %w", err),
				Hint: "`toolreg cache clear --names` forgets which server each name belongs to",
			}
		}
	}
	if n.blind != nil {
		n.reports.warn("names_unknown", "", n.blind.Error(), n.blind.Hint)
	}
	n.setPrefixes(locks)
}

// setPrefixes collects the servers whose qualified names are kept.
func (n *serverNames) setPrefixes(locks *lock.Set) {
	servers := n.set.ServerNamesKnown()
	for _, server := range locks.Servers() {
		if !slices.Contains(servers, server) {
			servers = append(servers, server)
		}
	}
	for _, server := range servers {
		n.prefixes = append(n.prefixes, prefix{server + "__", server})
		if valid := registry.ValidName(server + "__"); valid != server+"__" {
			n.prefixes = append(n.prefixes, prefix{valid, server})
		}
	}
	slices.SortStableFunc(n.prefixes, func(a, b prefix) int { return len(b.text) - len(a.text) })
}

// Owner implements [registry.Names].
func (n *serverNames) Owner(name string) registry.Owner {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.load()
	return n.owner(name)
}

func (n *serverNames) owner(name string) registry.Owner {
	if strings.Contains(name, "__") {
		for _, p := range n.prefixes {
			if strings.HasPrefix(name, p.text) {
				return registry.Owner{Kept: true, Server: p.server}
			}
		}
	}
	if n.set.ServerNames == namesQualified || n.blind != nil {
		return registry.Owner{Kept: true}
	}
	h := n.first(n.held[name])
	if server := n.locked[name]; server != "" {
		own := n.own[name]
		if own == "" && h != nil {
			own = h.Server
		}
		return registry.Owner{Kept: true, Server: server, Lent: own != server, Other: own != "" && own != server}
	}
	if h != nil {
		return registry.Owner{Kept: true, Server: h.Server, Unsure: h.Unsure && !n.hasLock}
	}
	return registry.Owner{Unsure: !n.hasLock}
}

// first returns the first of the holders whose entry is still in the settings.
func (n *serverNames) first(holders []state.Holder) *state.Holder {
	for i := range holders {
		if n.stands(holders[i]) > settings.EntryGone {
			return &holders[i]
		}
	}
	return nil
}

func (n *serverNames) stands(h state.Holder) settings.Standing {
	h.Unsure, h.Since = false, 0
	s, ok := n.standing[h]
	if !ok {
		s = n.set.Standing(h.Server, h.File)
		n.standing[h] = s
	}
	return s
}

// Kept implements [registry.Names].
func (n *serverNames) Kept() []registry.KeptName {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.load()
	if n.set.ServerNames == namesQualified || n.blind != nil {
		return nil
	}
	all := maps.Clone(n.locked)
	if all == nil {
		all = map[string]string{}
	}
	files := map[string]string{}
	for name, holders := range n.held {
		if h := n.first(holders); h != nil && all[name] == "" {
			all[name], files[name] = h.Server, h.File
		}
	}
	out := make([]registry.KeptName, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		k := registry.KeptName{Name: name, Server: all[name]}
		k.IsAPI = slices.ContainsFunc(n.set.APIs, func(a settings.API) bool { return a.Name == k.Server })
		k.Absent, k.Setting = n.absent(k.Server, files[name])
		out = append(out, k)
	}
	return out
}

// absent returns why a server has no tools in this run, and the origin of the setting that
// is the reason; "" if it should have some. file had its entry; "" if the lock file names it.
func (n *serverNames) absent(server, file string) (why, setting string) {
	all := n.set.Entries()
	if i := slices.IndexFunc(all, func(s settings.Server) bool { return s.Name == server }); i >= 0 {
		if s := all[i]; s.Disabled || s.Excluded != nil {
			off := OffServer{Server: s}
			return off.Reason(), off.setting()
		}
		return "", ""
	}
	switch {
	case file == "":
		return "not in the settings, but in " + lock.Name, ""
	case n.stands(state.Holder{Server: server, File: file}) == settings.EntryUntrusted:
		return "in the settings of this project, which are not trusted", file
	}
	return "in settings of this project that cannot be read", file
}

// Keep implements [registry.Names].
func (n *serverNames) Keep(ctx context.Context, given []registry.GivenName) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.load()
	fresh := slices.DeleteFunc(slices.Clone(given), func(g registry.GivenName) bool {
		h := n.first(n.held[g.Name])
		return g.Lent || h != nil && (h.Server != g.Server || h.Unsure == g.Unsure || g.Unsure)
	})
	if len(fresh) == 0 {
		return true
	}
	if n.record != nil && n.blind == nil && n.keeps {
		own := n.held
		held, err := n.record.Update(ctx, func(all map[string][]state.Holder) { n.merge(all, fresh, true) })
		if err == nil {
			n.held = held
			for name, holders := range own { // those of this run only
				if h := n.first(holders); h != nil && h.File == "" && n.first(held[name]) == nil {
					held[name] = append(slices.Clip(held[name]), *h)
				}
			}
		} else {
			n.reports.log.Debug("remembering names of servers' tools", "err", err)
		}
	}
	n.merge(n.held, fresh, false)
	return !slices.ContainsFunc(fresh, func(g registry.GivenName) bool { return n.owner(g.Name).Server != g.Server })
}

// merge adds names that were given to those that are held. Servers that are not in a
// settings file are not stored.
func (n *serverNames) merge(all map[string][]state.Holder, given []registry.GivenName, stored bool) {
	for _, g := range given {
		if h := n.first(all[g.Name]); h != nil {
			if h.Server == g.Server && h.Unsure && !g.Unsure {
				all[g.Name] = slices.Clone(all[g.Name])
				n.first(all[g.Name]).Unsure = false
			}
			continue
		}
		file := n.fileOf(g.Server)
		if stored && file == "" {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(all[g.Name]), func(h state.Holder) bool { return n.stands(h) == settings.EntryGone })
		all[g.Name] = append(left, state.Holder{Server: g.Server, File: file, Unsure: g.Unsure})
	}
}

// fileOf returns the settings file of a server's entry; "" if it is not in a file.
func (n *serverNames) fileOf(server string) string {
	for _, s := range n.set.Entries() {
		if s.Name == server && filepath.IsAbs(s.Origin.Name) {
			return s.Origin.Name
		}
	}
	return ""
}
