package cluster

import (
	"context"
	"sync"
	"time"
)

// Claims are things of which one replica at a time has each. Create them with [Member.Claims]. They
// are safe for concurrent use.
type Claims struct {
	member *Member
	kind   string
	last   time.Duration

	own sync.Map // by ID
}

// Claims returns the claims of a kind. One lasts that long after it was renewed.
func (m *Member) Claims(kind string, last time.Duration) *Claims {
	return &Claims{member: m, kind: kind, last: last}
}

// Claim returns the other replica that has a thing. If none that lives has it, this one gets it, and
// Claim returns the zero value, as it does while the store is away.
func (c *Claims) Claim(ctx context.Context, id string) Peer {
	m := c.member
	v, err := m.store.Get(ctx, c.kind, id)
	if err != nil || string(v.Data) == m.ID {
		return Peer{}
	}
	if v.Exists() {
		if holder, err := m.Find(ctx, string(v.Data)); err != nil || holder != (Peer{}) {
			return holder
		}
	}
	now, claimed, err := m.store.Swap(ctx, c.kind, id, v, []byte(m.ID), c.last)
	switch {
	case claimed:
		c.own.Store(id, nil)
		return Peer{}
	case err != nil || string(now.Data) == m.ID:
		return Peer{}
	}
	holder, _ := m.Find(ctx, string(now.Data))
	return holder
}

// Has reports whether this replica has a thing.
func (c *Claims) Has(id string) bool {
	_, has := c.own.Load(id)
	return has
}

// Renew writes again what this replica has, and forgets what another one has claimed.
func (c *Claims) Renew(ctx context.Context) {
	m := c.member
	for key := range c.own.Range {
		id := key.(string)
		v, err := m.store.Get(ctx, c.kind, id)
		switch {
		case err != nil:
		case !v.Exists() || string(v.Data) == m.ID:
			_, _, _ = m.store.Swap(ctx, c.kind, id, v, []byte(m.ID), c.last) // the next time shows who has it
		default:
			c.own.Delete(id)
		}
	}
}

// GiveUp lets other replicas have what this one has.
func (c *Claims) GiveUp(ctx context.Context) {
	for id := range c.own.Range {
		c.own.Delete(id)
		_ = c.member.store.Delete(ctx, c.kind, id.(string)) // otherwise this replica must have ended first
	}
}
