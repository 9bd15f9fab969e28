package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
)

// DeniedOffer adds a request for a prompt or a resource that the policy denied to the audit log.
// method is that of the protocol.
func (c *Calls) DeniedOffer(ctx context.Context, method string, o policy.Offer, v policy.Verdict) {
	a := c.gate.audit
	if !a.set.Audit.Enabled {
		return
	}
	e := aboutTool(ctx, &registry.Tool{Definition: registry.Definition{Source: registry.MCPPrefix + o.Server, Server: o.Server, ServerTool: method}}, time.Now())
	e.Tool = registry.ValidName(o.Server + "__" + cmp.Or(o.Prompt, method))
	e.Decision, e.Rule, e.Outcome, e.Error = v.Decision.String(), v.Origin, audit.Denied, a.mask.message(v.Reason)
	e.Code, e.Exit = a.deps.Outcome(ctx, registry.ErrDenied)
	a.add(ctx, e)
}
