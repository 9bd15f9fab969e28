package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/decode"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
)

func newSettings(m *merge.Merged, g Globals, root string) *Settings {
	s := &Settings{
		ProjectRoot:    root,
		Rules:          rules(m),
		OwnToolOptions: ownToolOptions(m),
		Hooks:          hooks(m),
		Globals:        g,
		Permissions:    map[string]bool{},
		DeniedBy:       map[string]Origin{},
		merged:         m,
	}
	decode.Settings(m, s)
	s.Fetch.Headers = originHeaders(m)
	rankLimits(s.CallLimits)
	if e, ok := m.Last(approvalMode); ok {
		s.ApprovalOrigin = e.Origin
	}
	if _, ok := m.Last("registries"); !ok {
		s.Registries = []Registry{{URL: officialRegistry}}
	}
	s.permissions(m)
	s.policyDefaults(m)
	s.servers(m)
	s.apis(m)
	return s
}

func (s *Settings) permissions(m *merge.Merged) {
	for _, name := range []string{"filesystem", "network", "shell", "database"} {
		e, ok := m.Last("permissions." + name)
		if !ok {
			continue
		}
		s.Permissions[name] = e.Value.Is(jsonx.True)
		if !e.Value.Is(jsonx.True) {
			s.DeniedBy[name] = e.Origin
		}
	}
}

func (s *Settings) policyDefaults(m *merge.Merged) {
	s.PolicyDefaults = map[string]Rule{}
	for _, category := range []string{"read", "write", "command", "network", "other"} {
		name := "policy.defaults." + category
		r := Rule{Category: category, Decision: m.Index.Row(name).DefaultValue().Text()}
		if e, ok := m.Last(name); ok {
			r.Decision, r.Origin = e.Value.Text(), e.Origin
		}
		s.PolicyDefaults[category] = r
	}
}

func (s *Settings) servers(m *merge.Merged) {
	row := m.Index.Row(table.ServersKey)
	replaced := m.Replaced(table.ServersKey)
	for _, e := range m.Named(table.ServersKey) {
		server := decodeServer(row, e.Name, e.Value, e.Origin)
		server.Err = m.Faults.Of(e.Value)
		if was, ok := replaced[e.Name]; ok && e.Origin.Scope == ScopeProject {
			server.Replaces = &was.Origin
			server.ExcludeTools = union(decodeServer(row, e.Name, was.Value, was.Origin).ExcludeTools,
				server.ExcludeTools)
		}
		s.Servers = append(s.Servers, server)
	}
	var c Command
	if decode.Setting(m, &c, m.Index.Row("mcpServerCommand")); (c.IsSet() || c.Err != nil) && s.Server("mcp") == nil {
		server := decodeServer(row, "mcp", &jsonx.Value{Kind: jsonx.Object}, c.Origin)
		if server.Err = c.Err; c.IsSet() {
			server.Command, server.Args = c.Argv[0], c.Argv[1:]
		}
		if was, ok := replaced["mcp"]; ok && c.Origin.Scope == ScopeProject {
			server.Replaces = &was.Origin
		}
		s.Servers = append(s.Servers, server)
	}
	allowed, excluded := m.List("mcp.allowed"), m.List("mcp.excluded")
	for i := range s.Servers {
		server := &s.Servers[i]
		server.Excluded = excludedBy(server.Name, allowed, excluded)
		s.setTimeouts(server)
	}
}

func decodeServer(row *table.Row, name string, n *jsonx.Value, origin Origin) Server {
	s := Server{TrustOrigin: origin}
	decode.Entry(&s, row, name, n, origin)
	if lifecycle := n.Get("lifecycle"); s.Keep == nil && lifecycle != nil {
		decode.Value(&s.Keep, row.Field("lifecycle"), lifecycle, origin)
	}
	if trust := n.Get("trust"); trust != nil && trust.Line > 0 {
		s.TrustOrigin.Line, s.TrustOrigin.Col = trust.Place()
	}
	return s
}

// setTimeouts applies the flags.
func (s *Settings) setTimeouts(server *Server) {
	if s.Globals.TimeoutSet {
		server.Timeout = s.Globals.Timeout
	}
	if s.Globals.ConnectSet {
		server.ConnectTimeout = s.Globals.ConnectTimeout
	}
}

// excludedBy returns the setting that excludes a server. Case is ignored where
// it would let a server through. An empty list of allowed servers allows all, as
// in the Gemini CLI.
func excludedBy(name string, allowed, excluded List) *Origin {
	matches := func(e Entry) bool { return text.MatchName(e.Value, name) }
	if i := slices.IndexFunc(excluded.Entries, func(e Entry) bool {
		return text.MatchName(strings.ToLower(e.Value), strings.ToLower(name))
	}); i >= 0 {
		return &excluded.Entries[i].Origin
	}
	if len(allowed.Entries) == 0 || slices.ContainsFunc(allowed.Entries, matches) {
		return nil
	}
	return &allowed.Entries[0].Origin
}

func union(a, b List) List {
	out := List{Set: a.Set || b.Set, Entries: slices.Clip(a.Entries)}
	out.Add(b.Entries)
	return out
}

func (s *Settings) apis(m *merge.Merged) {
	row := m.Index.Row(table.APIsKey)
	replaced := m.Replaced(table.APIsKey)
	for _, e := range m.Named(table.APIsKey) {
		a := API{Server: decodeServer(row, e.Name, e.Value, e.Origin)}
		a.URL = e.Value.Get("baseUrl").Text()
		decode.Entry(&a, row, e.Name, e.Value, e.Origin)
		for i := range a.Auth {
			if a.Auth[i].OAuth != nil {
				a.OAuth = a.Auth[i].OAuth
			}
		}
		a.Err = m.Faults.Of(e.Value)
		if was, ok := replaced[e.Name]; ok {
			var own API
			decode.Entry(&own, row, e.Name, was.Value, was.Origin)
			a.Replaces, a.Exclude = &was.Origin, union(own.Exclude, a.Exclude)
		}
		s.setTimeouts(&a.Server)
		s.APIs = append(s.APIs, a)
	}
	for i := range s.Servers {
		if api := s.API(s.Servers[i].Name); api != nil {
			oneName(&s.Servers[i], &api.Server)
		}
	}
}

// oneName makes the later of a server and an API with the same name unusable, because NAME__tool
// would be ambiguous.
func oneName(server, api *Server) {
	first, second, kind := server, api, "an MCP server"
	if api.Origin.Scope < server.Origin.Scope {
		first, second, kind = api, server, "an API of the setting openapi"
	}
	if second.Err == nil {
		message := fmt.Sprintf("%q is already the name of %s (%s)", second.Name, kind, first.Origin)
		second.Err = document.NewError([]document.Problem{second.Origin.Problem(message, "rename one of them")})
	}
}

// WithServer returns settings in which a server of [Settings.Servers] has a different entry and is
// enabled, to test it.
func (s *Settings) WithServer(name string, entry json.RawMessage) (*Settings, error) {
	x := s.Merged().Index
	node, problem := layers.ReadEntry(x, table.ServersKey, name, entry)
	if problem != "" {
		return nil, errors.New(problem)
	}
	node.SetPos(jsonx.Pos{})
	next := *s
	next.Servers = slices.Clone(s.Servers)
	if was := next.Server(name); was != nil {
		server := decodeServer(x.Row(table.ServersKey), name, node, was.Origin)
		server.Excluded, server.Disabled = was.Excluded, false
		s.setTimeouts(&server)
		next.merged = s.Merged().With(layers.Setting{Row: x.Row(table.ServersKey), Key: table.ServersKey,
			Value: jsonx.NewObject(jsonx.NewMember(name, node)), Origin: was.Origin})
		*was = server
	}
	return &next, nil
}

// rules returns the rules in their order, those of profiles first.
func rules(m *merge.Merged) []Rule {
	out := profileRules(m)
	for _, e := range m.Rules() {
		out = append(out, rulesOf(m.Index.Row(merge.RulesKey), e.Value, e, "")...)
	}
	return out
}

// rulesOf reads a checked list of rules; row is that of a rule's fields, in is where they are.
func rulesOf(row *table.Row, list *jsonx.Value, in layers.Setting, profile string) []Rule {
	if list == nil {
		return nil
	}
	var out []Rule
	decode.Value(&out, row, list, in.Origin)
	for i := range out {
		out[i].Profile, out[i].Layer = profile, in.Layer
	}
	return out
}

func profileRules(m *merge.Merged) []Rule {
	row := m.Index.Row(profilesKey)
	var out []Rule
	for _, n := range m.Named(profilesKey) {
		for _, e := range m.Of(row) {
			if e.Value.Get(n.Name) == n.Value {
				out = append(out, rulesOf(row.Field("rules"), n.Value.Get("rules"), e, n.Name)...)
			}
		}
	}
	return out
}

// hooks returns the hooks of all scopes, those of one file in the order of the events.
func hooks(m *merge.Merged) []Hook {
	var out []Hook
	row := m.Index.Row("hooks")
	for _, e := range m.Of(row) {
		for i := range row.Fields {
			event, from := &row.Fields[i], len(out)
			if list := e.Value.Get(event.Name); list != nil {
				decode.Value(&out, event, list, e.Origin)
			}
			for j := from; j < len(out); j++ {
				out[j].Event, out[j].Layer = event.Name, e.Layer
			}
		}
	}
	return out
}

// ownToolOptions returns the tool options without the project's; nil if the project has none.
func ownToolOptions(m *merge.Merged) (out []ToolOption) {
	row := m.Index.Row("toolOptions")
	own := m.Without(func(e layers.Setting) bool { return e.Row == row && e.Origin.Scope == ScopeProject })
	if own != m {
		decode.Setting(own, &out, row)
	}
	return out
}

func originHeaders(m *merge.Merged) []OriginHeaders {
	var out []OriginHeaders
	for _, e := range m.Named("fetch.headers") {
		origin, _ := table.ParseOrigin(e.Name) // already checked
		out = append(out, OriginHeaders{URL: origin, Headers: decode.Pairs(e.Value, e.Origin)})
	}
	return out
}
