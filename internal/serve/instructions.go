package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

const (
	// instructions tell a client's model what this server is.
	instructions = "Tools from several sources under one policy. Some calls ask the user first; the error of a refused call names the rule that refused it."
	// maxInstructions is how many bytes of the servers' own instructions follow.
	maxInstructions = 8 << 10
	// instructionsTime is how long the answer to the first request of a client waits for the
	// servers.
	instructionsTime = 5 * time.Second
)

// withInstructions adds the instructions of the servers that the caller is offered to the result of
// initialize or server/discover.
func (s *Server) withInstructions(ctx context.Context, result mcp.Result) {
	waiting, cancel := context.WithTimeout(ctx, instructionsTime)
	defer cancel()
	v, err := s.offered(waiting)
	if err != nil { // a later request says why
		return
	}
	more := v.instructionsFor(ctx)
	switch r := result.(type) {
	case *mcp.InitializeResult:
		r.Instructions += more
	case *mcp.DiscoverResult:
		r.Instructions += more
	}
}

// readInstructions returns what the servers of an offer say to models. What is withheld is warned
// about.
func (o *offer) readInstructions(warn func(registry.Diagnostic)) (out []engine.Instructions) {
	servers, _, _ := o.servers.Named() // without a name there is no error
	for _, one := range o.session.Instructions(o.registry, servers) {
		if f := one.Withheld; f != nil {
			warn(registry.Diagnostic{Severity: registry.SeverityWarning, Code: "instructions_withheld", Source: registry.MCPPrefix + one.Server,
				Message: fmt.Sprintf("clients do not get the instructions of server %q: %s: %s", one.Server, f.Rule, f.Words),
				Hint:    "toolreg servers check shows what was found; check.silence accepts it"})
			continue
		}
		out = append(out, one)
	}
	return out
}

// instructionsFor returns the instructions of the servers of which the caller of ctx is offered
// tools.
func (v *view) instructionsFor(ctx context.Context) string {
	offered := map[string]bool{}
	for _, t := range v.registry.Tools() {
		if t.OfServer() && !offered[t.Server] && v.profile.shows(t) &&
			!(v.rules.HasCallers() && v.rules.DeniesTool(ctx, t)) {
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
		for _, line := range strings.FieldsFunc(text.Valid(one.Text), isLineBreak) {
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}

// isLineBreak reports whether a character may begin a line where a text is shown.
func isLineBreak(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }
