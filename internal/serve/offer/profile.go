package offer

import (
	"context"
	"slices"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Profile is a part of the registry that some clients are offered instead of all of it.
type Profile struct {
	Name string
	// Groups are globs of the groups whose members get the profile. If it is empty, every
	// client may use it.
	Groups []string
	// Select loads what it needs of a session and returns the registry and the tools that are offered,
	// in its order.
	Select func(context.Context, *engine.Session) (*registry.Registry, []engine.Found, error)
	// Tools reports whether a tool is part of the profile, so that it can be reached at all, also through
	// others. A nil Tools means that all are.
	Tools func(*registry.Tool) bool
	// Servers reports whether the prompts and resources of a server are part of the profile. A nil
	// Servers means that those of all are.
	Servers func(name string) bool
}

func (p *Profile) shows(t *registry.Tool) bool { return p.Tools == nil || p.Tools(t) }

// showsServer reports whether prompts and resources of a server are part of the profile.
func (p *Profile) showsServer(name string) bool { return p.Servers == nil || p.Servers(name) }

// isFor reports whether one of a caller's groups gets the profile.
func (p *Profile) isFor(groups []string) bool {
	return slices.ContainsFunc(p.Groups, func(glob string) bool {
		return slices.ContainsFunc(groups, func(group string) bool { return text.MatchName(glob, group) })
	})
}

// context returns a context in which tools outside the profile cannot be found, and its servers alone
// are named.
func (p *Profile) context(ctx context.Context) context.Context {
	return engine.WithScope(ctx, p.Tools, p.Servers)
}

// Profiles are the profiles of a session.
type Profiles []Profile

// Has reports whether there is a profile of a name.
func (p Profiles) Has(name string) bool {
	return slices.ContainsFunc(p, func(one Profile) bool { return one.Name == name })
}

// For returns the name of the profile of a client: the one that its token is bound to, one of those that its
// groups are bound to, or the one that the address names. It is empty if the client is offered everything.
// For reports false if the client may not use the address.
func (p Profiles) For(token string, groups []string, address string) (profile string, ok bool) {
	if token != "" {
		return token, address == "" || address == token
	}
	var bound []string
	for _, one := range p {
		if one.isFor(groups) {
			bound = append(bound, one.Name)
		}
	}
	switch {
	case len(bound) > 0 && address == "":
		return bound[0], true
	case len(bound) > 0:
		return address, slices.Contains(bound, address)
	case address == "":
		return "", true
	}
	return address, slices.ContainsFunc(p, func(one Profile) bool {
		return one.Name == address && len(one.Groups) == 0
	})
}
