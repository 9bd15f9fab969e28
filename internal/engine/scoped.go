package engine

import (
	"context"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/text"
)

// scoped denies calls for which the caller's access token lacks a scope (serve.oauth.scopes).
type scoped struct {
	exec.Decider
	oauth *settings.ServeOAuth
}

// Decide implements exec.Decider.
func (s scoped) Decide(ctx context.Context, t *registry.Tool, call registry.Call) policy.Verdict {
	if c := caller.From(ctx); c != nil && c.Scopes != nil {
		if lacking := s.oauth.Lacking(c.Scopes, t.Called()...); lacking != nil {
			return policy.Verdict{Decision: policy.Deny, Reason: "the access token lacks the scope " + text.Quote(lacking.Scope), Origin: lacking.Origin.String()}
		}
	}
	return s.Decider.Decide(ctx, t, call)
}

// renewed decides by the settings of the session that has replaced its own last, because a call may
// have waited for an answer meanwhile. What any of them denies is denied.
type renewed struct {
	exec.Decider
	policies *policies
	reg      *registry.Registry
}

// Decide implements exec.Decider.
func (d renewed) Decide(ctx context.Context, t *registry.Tool, call registry.Call) policy.Verdict {
	v := d.Decider.Decide(ctx, t, call)
	for next := d.policies.next.Load(); next != nil && v.Decision != policy.Deny; next = next.next.Load() {
		p, err := next.policy(d.reg)
		if err != nil {
			return policy.Verdict{Decision: policy.Deny, Reason: err.Error(), Origin: "the changed settings"}
		}
		v = p.Decide(ctx, t, call)
	}
	return v
}
