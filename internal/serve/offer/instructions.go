package offer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// maxInstructions is how many bytes of the servers' own instructions clients get.
const maxInstructions = 8 << 10

// readInstructions reads what the servers say to models. It warns about what is withheld.
func (o *Offer) readInstructions() {
	for _, one := range o.Session.Instructions(o.Registry, o.Servers.On()) {
		if f := one.Withheld; f != nil {
			o.warn(registry.Warning("instructions_withheld", registry.MCPPrefix+one.Server,
				fmt.Sprintf("clients do not get the instructions of server %q: %s: %s", one.Server, f.Rule, f.Words),
				"toolreg servers check shows what was found; check.silence accepts it"))
			continue
		}
		o.instructions = append(o.instructions, one)
	}
}

// Instructions returns what the servers of which the caller of ctx is offered tools say to its model.
func (v *View) Instructions(ctx context.Context) string {
	offered := map[string]bool{}
	for _, t := range v.Registry.Tools() {
		if t.OfServer() && !offered[t.Server] && v.profile.shows(t) &&
			!(v.Rules.HasCallers() && v.Rules.DeniesTool(ctx, t)) {
			offered[t.Server] = true
		}
	}
	return joined(slices.DeleteFunc(slices.Clone(v.instructions), func(one engine.Instructions) bool {
		return !offered[one.Server]
	}))
}

// joined returns instructions, each under the name of its server. Their lines are indented, so that
// none can pass for those of another server. If they are too long together, each gets the same part.
func joined(all []engine.Instructions) string {
	size := 0
	for _, one := range all {
		size += len(one.Text)
	}
	var b strings.Builder
	for _, one := range all {
		if most := maxInstructions / len(all); size > maxInstructions && len(one.Text) > most {
			for most > 0 && !utf8.RuneStart(one.Text[most]) {
				most--
			}
			one.Text = one.Text[:most] + " […]"
		}
		fmt.Fprintf(&b, "\n\nInstructions of the MCP server %s:", text.Quote(one.Server))
		for _, line := range strings.FieldsFunc(text.Valid(one.Text), func(r rune) bool {
			return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) // what may begin a line where a text is shown
		}) {
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}
