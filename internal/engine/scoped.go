package engine

import (
	"context"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// scoped denies calls for which the caller's access token lacks a scope (serve.oauth.scopes).
type scoped struct{ exec.Decider }

// Decide implements exec.Decider.
func (s scoped) Decide(ctx context.Context, t *registry.Tool, call registry.Call) policy.Verdict {
	if c := caller.From(ctx); c != nil && c.Lacks != nil {
		if scope, origin := c.Lacks(t.Spellings()); scope != "" {
			return policy.Verdict{Decision: policy.Deny, Reason: "the access token lacks the scope " + text.Quote(scope), Origin: origin}
		}
	}
	return s.Decider.Decide(ctx, t, call)
}
