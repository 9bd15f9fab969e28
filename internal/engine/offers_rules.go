package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/audit"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/uri"
)

// Offer is a prompt or a resource of a server.
type Offer policy.Offer

// String returns the kind and the quoted name of the offer.
func (o Offer) String() string {
	if o.Prompt != "" {
		return fmt.Sprintf("prompt %q", cmp.Or(o.Name, o.Prompt))
	}
	return fmt.Sprintf("resource %q", o.URI)
}

// OfferRules decide which prompts and resources clients may use. They are safe for concurrent
// use.
type OfferRules struct {
	policy *policy.Policy
	audit  *callRecorder
}

// OfferRules returns the rules for what servers offer besides a registry's tools. The error is
// an *InputError.
func (c *Calls) OfferRules(reg *registry.Registry) (*OfferRules, error) {
	p, err := c.Policy(reg)
	return &OfferRules{p, c.gate.audit}, err
}

// OfferDenied says why the caller may not use a prompt or a resource.
type OfferDenied struct {
	Offer
	Reason string
	Origin string // of the rule
}

// Error implements error.
func (e *OfferDenied) Error() string {
	return fmt.Sprintf("%s is not allowed: %s (%s)", e.Offer, e.Reason, e.Origin)
}

// Check returns why the caller of ctx may not use a prompt or a resource; nil if it may.
func (r *OfferRules) Check(ctx context.Context, o Offer) *OfferDenied {
	v := r.policy.DecideOffer(ctx, policy.Offer(o))
	if v.Decision != policy.Deny {
		return nil
	}
	return &OfferDenied{o, v.Reason, v.Origin}
}

// HasCallers reports whether a rule is about certain callers, so that lists differ by caller.
func (r *OfferRules) HasCallers() bool { return r.policy.HasCallers() }

// DeniesTool reports whether every call of a tool that the caller of ctx makes is denied.
func (r *OfferRules) DeniesTool(ctx context.Context, t *registry.Tool) bool {
	_, denied := r.policy.DeniesAll(ctx, t)
	return denied
}

// Log adds a denied request of an MCP method to the audit log.
func (r *OfferRules) Log(ctx context.Context, method string, d *OfferDenied) {
	if !r.audit.set.Audit.Enabled {
		return
	}
	e := aboutTool(ctx, &registry.Tool{Definition: registry.Definition{Source: registry.MCPPrefix + d.Server, Server: d.Server, ServerTool: method}}, time.Now())
	e.Tool = registry.ValidName(d.Server + "__" + cmp.Or(d.Prompt, method))
	e.Decision, e.Rule, e.Outcome, e.Error = policy.Deny.String(), d.Origin, audit.Denied, r.audit.mask.message(d.Reason)
	if d.URI != "" {
		form, _, _ := strings.Cut(uri.Canonical(d.URI), "?") // a query may have secrets
		e.URI = r.audit.mask.message(form)
	}
	e.Code, e.Exit = r.audit.outcome(ctx, registry.ErrDenied)
	r.audit.add(ctx, e)
}
