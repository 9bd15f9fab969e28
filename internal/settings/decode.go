package settings

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// settings makes the plain structs of merged, checked settings.
func (m *merged) settings(g Globals, root string) *Settings {
	s := &Settings{
		ProjectRoot:      root,
		DiscoveryCommand: m.command("toolDiscoveryCommand"),
		DiscoveryTimeout: m.node("toolDiscoveryTimeout").duration(),
		CallCommand:      m.command("toolCallCommand"),
		Env:              m.pairs("env"), InheritEnv: m.node("inheritEnv").bool,
		CoreTools: m.list("coreTools"), ExcludeTools: m.list("excludeTools"),
		AllowedTools: m.list("allowedTools"), AllowOptional: m.list("tools.allow"),
		Conflicts:       m.node("conflicts.discovered").text,
		Rules:           m.rules(),
		ShellBanned:     m.banned(),
		ShellTimeout:    m.node("shell.timeout").duration(),
		ShellMaxTimeout: m.node("shell.maxTimeout").duration(),
		PluginPaths:     m.list("plugins.paths"),
		PluginsOff:      m.list("plugins.disabled"),
		FetchAllow:      m.list("fetch.allowHosts"),
		Fetch:           m.fetch(),
		Sampling:        Sampling{Command: m.command("sampling.command"), Timeout: m.node("sampling.timeout").duration(), Requests: m.node("sampling.requests").number()},
		DiscoveryTTL:    m.node("cache.discovery").duration(),
		Imports:         m.list("imports"),
		AuditParams:     m.node("audit.params").bool,
		Images:          m.node("display.images").text,
		Limits:          m.limits(),
		Globals:         g,
		merged:          m,
		Permissions:     map[string]bool{},
		DeniedBy:        map[string]Origin{},
	}
	s.Audit, s.ToolOptions = m.audit(), m.toolOptions()
	s.approval(m)
	s.permissions(m)
	s.policyDefaults(m)
	s.servers(m)
	if s.Globals.Channel == "" {
		s.Globals.Channel = m.channel()
	}
	return s
}

// node returns the value that stands, or the default of the table.
func (m *merged) node(name string) *node {
	if e, ok := m.last(name); ok {
		return e.node
	}
	return defaultNode(m.index.byName[name])
}

// defaultNode reads a default of the table, which is JSON without escapes.
func defaultNode(set *setting) *node {
	switch def := set.def; {
	case def == "":
		return &node{}
	case def[0] == '"':
		return &node{kind: kindString, text: strings.Trim(def, `"`)}
	case def == "true" || def == "false":
		return &node{kind: kindBool, bool: def == "true"}
	case isJSONNumber(def):
		return &node{kind: kindNumber, text: def}
	default:
		p := parser{limit: maxNodes}
		return p.json([]byte(def))
	}
}

func (m *merged) command(name string) Command {
	e, ok := m.last(name)
	if !ok {
		return Command{}
	}
	return toCommand(e.node, e.origin)
}

func toCommand(n *node, o Origin) Command {
	if n.kind != kindString {
		return Command{Argv: n.strings(), Origin: o}
	}
	words, _ := splitCommand(n.text) // checked when it was read
	return Command{Argv: words, Line: n.text, Origin: o}
}

func (m *merged) pairs(name string) []Pair {
	var out []Pair
	for _, e := range m.named(name) {
		out = append(out, Pair{Name: e.name, Value: e.node.text, Origin: e.origin})
	}
	return out
}

const bannedKey = "shell.banned"

// banned is the list of the settings, which stands in place of the default where
// anybody but the project sets it: a project adds to what is banned.
func (m *merged) banned() List {
	set := m.index.byName[bannedKey]
	l := m.list(bannedKey)
	for _, e := range m.entries[set] {
		if e.origin.Scope != ScopeProject {
			return l
		}
	}
	def := defaultNode(set).toList(Origin{})
	for _, e := range def.Entries {
		if !slices.ContainsFunc(l.Entries, func(have Entry) bool { return have.Value == e.Value }) {
			l.Entries = append(l.Entries, Entry{Value: e.Value})
		}
	}
	return l
}

func (m *merged) limits() Limits {
	return Limits{
		DiscoveryOutput: m.node("limits.discoveryOutput").size(), Frame: m.node("limits.frame").size(),
		Result: m.node("limits.result").size(), Output: m.node("limits.output").size(), Schema: m.node("limits.schema").size(),
		Spill: m.node("limits.spill").size(),
		Tools: m.node("limits.tools").number(), Pages: m.node("limits.pages").number(),
	}
}

func (m *merged) channel() string {
	for _, e := range m.named("context") {
		if e.name == "channel" && e.node.kind == kindString {
			return e.node.text
		}
	}
	return ""
}

func (s *Settings) approval(m *merged) {
	s.ApprovalMode = m.node("approvalMode").text
	if e, ok := m.last("approvalMode"); ok {
		s.ApprovalOrigin = e.origin
	}
}

func (s *Settings) permissions(m *merged) {
	for _, name := range []string{"filesystem", "network", "shell", "database"} {
		e, ok := m.last("permissions." + name)
		if !ok {
			continue
		}
		s.Permissions[name] = e.node.bool
		if !e.node.bool {
			s.DeniedBy[name] = e.origin
		}
	}
}

func (s *Settings) policyDefaults(m *merged) {
	s.PolicyDefaults = map[string]Rule{}
	for _, category := range []string{"read", "write", "command", "network", "other"} {
		name := "policy.defaults." + category
		r := Rule{Category: category, Decision: m.node(name).text}
		if e, ok := m.last(name); ok {
			r.Origin = e.origin
		}
		s.PolicyDefaults[category] = r
	}
}

func (s *Settings) servers(m *merged) {
	for _, e := range m.named("mcpServers") {
		s.Servers = append(s.Servers, decodeServer(e.name, e.node, e.origin))
	}
	if c := m.command("mcpServerCommand"); c.IsSet() && !slices.ContainsFunc(s.Servers, func(s Server) bool { return s.Name == "mcp" }) {
		server := decodeServer("mcp", &node{kind: kindObject}, c.Origin)
		server.Command, server.Args = c.Argv[0], c.Argv[1:]
		s.Servers = append(s.Servers, server)
	}
	allowed, excluded := m.list("mcp.allowed"), m.list("mcp.excluded")
	for i := range s.Servers {
		server := &s.Servers[i]
		server.Excluded = keptOut(server.Name, allowed, excluded)
		if s.Globals.TimeoutSet {
			server.Timeout = s.Globals.Timeout
		}
		if s.Globals.ConnectSet {
			server.ConnectTimeout = s.Globals.ConnectTimeout
		}
	}
}

// keptOut returns the setting that keeps a server from being connected. An
// empty list of allowed servers allows all, as in the Gemini CLI.
func keptOut(name string, allowed, excluded List) *Origin {
	matches := func(e Entry) bool { return registry.MatchName(e.Value, name) }
	if i := slices.IndexFunc(excluded.Entries, matches); i >= 0 {
		return &excluded.Entries[i].Origin
	}
	if len(allowed.Entries) == 0 || slices.ContainsFunc(allowed.Entries, matches) {
		return nil
	}
	return &allowed.Entries[0].Origin
}
