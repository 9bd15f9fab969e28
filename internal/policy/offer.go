package policy

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/uri"
)

// Offer is a prompt or a resource of a server.
type Offer struct {
	Server string
	Prompt string // the server's name of it; "" for a resource
	Name   string // under which the prompt is listed, if that is another name
	URI    string // of the resource, or its template
}

// maxURI limits the URIs that rules are compared with, in bytes.
const maxURI = 64 << 10

// DecideOffer decides whether the caller of ctx may use a prompt or a resource, which counts as
// reading. Rules about tools or params do not apply. Of the other rules, those that match decide as
// they do on calls, except that a rule which asks without naming prompts or resources allows. If no
// rule matches, it is allowed unless the default for reading denies. The zero Offer is a resource
// without a URI.
func (p *Policy) DecideOffer(ctx context.Context, o Offer) Verdict {
	if r := decidingRule(p.rulesFor(caller.From(ctx), false),
		func(r *Rule) bool { return r.isAboutOffers() && r.matchesOffer(o) }); r != nil {
		v := Verdict{Decision: Allow, Reason: r.Reason, Origin: r.Origin, Rule: r}
		switch {
		case r.Decision == Deny:
			v.Decision, v.Reason = Deny, cmp.Or(r.Reason, "a rule denies it")
		case r.Decision == Ask && r.Prompt+r.Resource != "" && p.Mode == ModeYolo:
			v.Origin = p.modeOrigin()
		case r.Decision == Ask && r.Prompt+r.Resource != "":
			v.Decision, v.Reason = Ask, cmp.Or(r.Reason, "a rule requires confirmation")
		}
		return v
	}
	if r, ok := p.Defaults[registry.CategoryRead]; ok && r.Decision == Deny {
		return Verdict{Decision: Deny, Reason: cmp.Or(r.Reason, "reading is denied"), Origin: r.Origin}
	}
	return Verdict{Decision: Allow, Origin: originDefault}
}

// matchesOffer reports whether the rule's prompt or resource matches. A rule that loosens must
// match every spelling of a name, others any.
func (r *Rule) matchesOffer(o Offer) bool {
	match := r.matcher()
	switch {
	case r.Category != "" && !strings.EqualFold(r.Category, string(registry.CategoryRead)),
		r.Source != "" && !match(r.Source, registry.MCPPrefix+o.Server),
		r.Server != "" && !match(r.Server, o.Server),
		r.Prompt != "" && o.Prompt == "",
		r.Resource != "" && o.Prompt != "":
		return false
	case r.Prompt != "":
		return r.matchesPrompt(o)
	case r.Resource != "":
		return r.matchesURI(o.URI)
	}
	return true
}

// matchesPrompt reports whether the rule names the prompt. A rule that loosens must use the name
// under which the prompt is listed, with the server's name before it or, if the rule names the
// server, the server's own name.
func (r *Rule) matchesPrompt(o Offer) bool {
	names := []string{o.Server + "__" + o.Prompt, cmp.Or(o.Name, o.Prompt)}
	if !r.isNarrow() || r.Server != "" {
		names = append(names, o.Prompt)
	}
	return slices.ContainsFunc(names, func(name string) bool { return r.matcher()(r.Prompt, name) })
}

// matchesURI reports whether the rule names the resource. A rule that loosens must match all
// readings of its URI. Others match if one reading does, or one that a careless server may use.
func (r *Rule) matchesURI(u string) bool {
	if len(u) > maxURI {
		return !r.isNarrow()
	}
	patterns := uri.Patterns(r.Resource)
	match := func(reading string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool { return r.matcher()(pattern, reading) })
	}
	if r.isNarrow() {
		return !slices.ContainsFunc(uri.Readings(u), func(reading string) bool { return !match(reading) })
	}
	if match(u) || slices.ContainsFunc(uri.Readings(u), match) {
		return true
	}
	loose := uri.LoosePattern(r.Resource)
	return slices.ContainsFunc(uri.Loose(u), func(reading string) bool { return r.matcher()(loose, reading) })
}
