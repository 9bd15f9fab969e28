// Package owner decides which server a name belongs to, so that no other server's tool, prompt or
// resource ever takes it. [Names] does so for tools, [Offers] for prompts and resources. A name
// belongs to the server that had it first, as long as that server's entry is in the settings; the
// state folder remembers the names of each project. For tools, the lock file takes precedence.
// Package engine passes Names to the registry, and Offers to package serve.
package owner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/lock"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/trust"
)

// Options are what [Names] and [Offers] of a project need. All fields are required.
type Options struct {
	Settings *settings.Settings
	Folders  *state.Folders
	Warn     func(registry.Diagnostic)
	Log      *slog.Logger
	Locks    func() (*lock.Set, error) // reads the lock files
	Relock   bool                      // the lock file is written anew, so that a damaged one does not matter
	Store    bool                      // the names that are given out are remembered for later runs
}

// unknown warns that the owners of names are unknown.
func (o *Options) unknown(message, hint string) {
	o.Warn(registry.Warning("names_unknown", "", message, hint))
}

// hintForget says how to get rid of a record that cannot be read.
const hintForget = "`toolreg cache clear --names` forgets which server each name belongs to"

// Open returns the record of which server each name of a tool belongs to in the project. Its Forget
// removes the record of prompts and resources, too.
func Open(set *settings.Settings, folders *state.Folders) (*state.Names, error) {
	return folders.Names(trust.Real(set.ProjectRoot))
}

// holders are the servers that have had each name, earliest first.
type holders struct {
	set    *settings.Settings
	record *state.Names // nil if nothing can be remembered
	held   map[string][]state.Holder
	states map[state.Holder]settings.EntryState
}

// readHolders reads the holders from a record. If there is no record, err says why.
func (o *Options) readHolders(record *state.Names, err error) (holders, error) {
	h := holders{set: o.Settings, record: record, states: map[state.Holder]settings.EntryState{}}
	if err == nil {
		h.held, err = record.Read()
	}
	if h.held == nil {
		h.held = map[string][]state.Holder{}
	}
	return h, err
}

// first returns the first of the holders whose entry is still in the settings; nil if there is none.
func (h *holders) first(all []state.Holder) *state.Holder {
	for i := range all {
		if h.entryState(all[i]) > settings.EntryGone {
			return &all[i]
		}
	}
	return nil
}

// remaining returns a copy of the holders without those whose entries were removed from the settings.
func (h *holders) remaining(all []state.Holder) []state.Holder {
	return slices.DeleteFunc(slices.Clone(all),
		func(one state.Holder) bool { return h.entryState(one) == settings.EntryGone })
}

func (h *holders) entryState(one state.Holder) settings.EntryState {
	one.Unsure, one.Since = false, 0
	s, ok := h.states[one]
	if !ok {
		s = h.set.EntryState(one.Server, one.File)
		h.states[one] = s
	}
	return s
}

// fileOf returns the settings file of a server's entry; "" if it is not in a file.
func (h *holders) fileOf(server string) string {
	if s := h.set.Entry(server); s != nil && filepath.IsAbs(s.Origin.Name) {
		return s.Origin.Name
	}
	return ""
}

// Names decides which server a tool's name belongs to. "server__…" belongs to that server. A plain
// name belongs to the server that the lock file names, or else to the one that had it first, as
// long as its entry is in the settings. It implements [registry.Names].
type Names struct {
	opts Options

	mu     sync.Mutex
	loaded bool
	holders
	blind    bool              // the owners of plain names are unknown
	locked   map[string]string // by lock files
	own      map[string]string // by lock files that the person trusts
	hasLock  bool              // the person trusts one of them
	prefixes []prefix          // longest first
}

// NewNames returns the names of tools in a project. It reads nothing until it is asked.
func NewNames(o Options) *Names { return &Names{opts: o} }

// prefix is the beginning of the names that are kept for a server.
type prefix struct{ text, server string }

// qualified is the value of the setting names.servers with which no server's tool has a plain name.
const qualified = "qualified"

// load reads the lock file and the record of names. The caller holds mu.
func (n *Names) load() {
	if n.loaded {
		return
	}
	n.loaded = true
	locks, unread := n.opts.Locks()
	hint := registry.HintOf(unread)
	switch {
	case unread == nil:
		n.locked, n.own, n.hasLock = locks.Owners()
	case n.opts.Relock, errors.Is(unread, fs.ErrNotExist):
		unread = nil
	}
	var err error
	if n.holders, err = n.opts.readHolders(Open(n.opts.Settings, n.opts.Folders)); err != nil && n.record != nil {
		unread, hint = err, hintForget
	}
	if n.blind = unread != nil; n.blind {
		n.opts.unknown(fmt.Sprintf("plain names of servers' tools are not known: %v", unread), hint)
	}
	n.setPrefixes(locks)
}

// setPrefixes collects the servers whose qualified names are kept.
func (n *Names) setPrefixes(locks *lock.Set) {
	servers := n.set.ServerNamesKnown()
	for _, server := range locks.Servers() {
		servers = text.AppendNew(servers, server)
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
func (n *Names) Owner(name string) registry.Owner {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.owner(name)
}

// keptFor returns the server that a qualified name may belong to; "" if there is none. The caller
// holds mu.
func (n *Names) keptFor(name string) string {
	n.load()
	for _, p := range n.prefixes {
		if strings.HasPrefix(name, p.text) {
			return p.server
		}
	}
	return ""
}

func (n *Names) owner(name string) registry.Owner {
	if server := n.keptFor(name); server != "" {
		return registry.Owner{Kept: true, Server: server, Foreign: n.isForeign(server)}
	}
	if n.set.ServerNames == qualified || n.blind {
		return registry.Owner{Kept: true, Foreign: n.blind}
	}
	h := n.first(n.held[name])
	if server := n.locked[name]; server != "" {
		own := n.own[name]
		if own == "" && h != nil {
			own = h.Server
		}
		return registry.Owner{Kept: true, Server: server, Lent: own != server, Other: own != "" && own != server,
			Foreign: own != server || n.isForeign(server)}
	}
	if h != nil {
		return registry.Owner{Kept: true, Server: h.Server, Unsure: h.Unsure && !n.hasLock, Foreign: n.isForeign(h.Server)}
	}
	return registry.Owner{Unsure: !n.hasLock}
}

func (n *Names) isForeign(server string) bool {
	entry := n.set.Entry(server)
	return entry == nil || entry.Origin.Scope == settings.ScopeProject
}

// Kept implements [registry.Names].
func (n *Names) Kept() []registry.KeptName {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.load()
	if n.set.ServerNames == qualified || n.blind {
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
		k := registry.KeptName{Name: name, Server: all[name], IsAPI: n.set.API(all[name]) != nil}
		k.Absent, k.Setting = n.absent(k.Server, files[name])
		out = append(out, k)
	}
	return out
}

// absent returns why a server has no tools in this run, and the origin of the setting that causes
// this. why is "" if it should have some. file is where its entry was; "" if only the lock file
// names it.
func (n *Names) absent(server, file string) (why, setting string) {
	if entry := n.set.Entry(server); entry != nil {
		return entry.Off()
	}
	switch {
	case file == "":
		return "not in the settings, but in " + lock.Name, ""
	case n.entryState(state.Holder{Server: server, File: file}) == settings.EntryUntrusted:
		return "in the settings of this project, which are not trusted", file
	}
	return "in settings of this project that cannot be read", file
}

// Keep implements [registry.Names].
func (n *Names) Keep(ctx context.Context, given []registry.GivenName) bool {
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
	if n.record != nil && !n.blind && n.opts.Store {
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
			n.opts.Log.Debug("remembering names of servers' tools", "err", err)
		}
	}
	n.merge(n.held, fresh, false)
	return !slices.ContainsFunc(fresh, func(g registry.GivenName) bool { return n.owner(g.Name).Server != g.Server })
}

// merge adds names that were given to those that are held. Servers that are not in a
// settings file are not stored.
func (n *Names) merge(all map[string][]state.Holder, given []registry.GivenName, stored bool) {
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
		all[g.Name] = append(n.remaining(all[g.Name]), state.Holder{Server: g.Server, File: file, Unsure: g.Unsure})
	}
}
