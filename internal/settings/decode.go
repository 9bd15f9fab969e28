package settings

import (
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// settings converts merged, checked settings to plain structs.
func (m *merged) settings(g Globals, root string) *Settings {
	s := &Settings{
		ProjectRoot:      root,
		DiscoveryCommand: m.command("toolDiscoveryCommand"),
		DiscoveryTimeout: duration(m.node("toolDiscoveryTimeout")),
		CallCommand:      m.command("toolCallCommand"),
		Env:              m.pairs("env"), InheritEnv: m.node("inheritEnv").Is(jsonx.True),
		CoreTools: m.list("coreTools"), ExcludeTools: m.list("excludeTools"),
		AllowedTools: m.list("allowedTools"), AllowOptional: m.list("tools.allow"), OnlyTools: m.list("tools.only"),
		Conflicts:       m.node("conflicts.discovered").Text(),
		Rules:           m.rules(),
		ShellBanned:     m.banned(),
		ShellTimeout:    duration(m.node("shell.timeout")),
		ShellMaxTimeout: duration(m.node("shell.maxTimeout")),
		PluginPaths:     m.list("plugins.paths"),
		PluginsOff:      m.list("plugins.disabled"),
		FetchAllow:      m.list("fetch.allowHosts"),
		Fetch:           m.fetch(),
		Sampling:        Sampling{Command: m.command("sampling.command"), Timeout: duration(m.node("sampling.timeout")), Requests: number(m.node("sampling.requests"))},
		Search:          m.search(),
		Serve:           m.serve(),
		DiscoveryTTL:    duration(m.node("cache.discovery")),
		FailuresTTL:     duration(m.node("cache.failures")),
		Imports:         m.list("imports"),
		AuditParams:     m.node("audit.params").Is(jsonx.True),
		Images:          m.node("display.images").Text(),
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

// node returns the effective value, or the default of the table.
func (m *merged) node(name string) *jsonx.Value {
	if e, ok := m.last(name); ok {
		return e.node
	}
	return m.index.Row(name).DefaultValue()
}

func (m *merged) command(name string) Command {
	e, ok := m.last(name)
	if !ok {
		return Command{}
	}
	c := Command{Line: e.node.Text(), Origin: e.origin, Err: m.faults.of(e.node)}
	if c.Err == nil {
		c.Argv, _ = table.ParseCommand(e.node) // checked when it was read
	}
	return c
}

func (m *merged) pairs(name string) []Pair {
	var out []Pair
	for _, e := range m.named(name) {
		out = append(out, Pair{Name: e.Name, Value: e.Value.Text(), Origin: e.Origin})
	}
	return out
}

func (m *merged) search() Search {
	return Search{
		Command: m.command("search.command"), Timeout: duration(m.node("search.timeout")),
		Budget: number(m.node("search.budget")), Always: m.list("search.always"), Client: m.node("search.client").Is(jsonx.True),
	}
}

const bannedKey = "shell.banned"

// banned returns the list of the settings, which replaces the default unless
// only the project sets it; a project's list adds to it.
func (m *merged) banned() List {
	row := m.index.Row(bannedKey)
	l := m.list(bannedKey)
	for _, e := range m.entries[row] {
		if e.origin.Scope != ScopeProject {
			return l
		}
	}
	def := toList(row.DefaultValue(), Origin{})
	for _, e := range def.Entries {
		if !slices.ContainsFunc(l.Entries, func(have Entry) bool { return have.Value == e.Value }) {
			l.Entries = append(l.Entries, Entry{Value: e.Value})
		}
	}
	return l
}

func (m *merged) limits() Limits {
	return Limits{
		DiscoveryOutput: size(m.node("limits.discoveryOutput")), Frame: size(m.node("limits.frame")),
		Result: size(m.node("limits.result")), Output: size(m.node("limits.output")), Schema: size(m.node("limits.schema")), Description: size(m.node("limits.description")),
		Spill: size(m.node("limits.spill")),
		Tools: number(m.node("limits.tools")), Pages: number(m.node("limits.pages")),
	}
}

func (m *merged) channel() string {
	for _, e := range m.named("context") {
		if e.Name == "channel" && e.Value.Kind == jsonx.String {
			return e.Value.Text()
		}
	}
	return ""
}

func (s *Settings) approval(m *merged) {
	s.ApprovalMode = m.node("approvalMode").Text()
	s.ShellCatastrophic = m.node("shell.catastrophic").Text()
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
		s.Permissions[name] = e.node.Is(jsonx.True)
		if !e.node.Is(jsonx.True) {
			s.DeniedBy[name] = e.origin
		}
	}
}

func (s *Settings) policyDefaults(m *merged) {
	s.PolicyDefaults = map[string]Rule{}
	for _, category := range []string{"read", "write", "command", "network", "other"} {
		name := "policy.defaults." + category
		r := Rule{Category: category, Decision: m.node(name).Text()}
		if e, ok := m.last(name); ok {
			r.Origin = e.origin
		}
		s.PolicyDefaults[category] = r
	}
}

func (s *Settings) servers(m *merged) {
	row := m.index.Row(serversKey)
	for _, e := range m.named(serversKey) {
		server := decodeServer(row, e.Name, e.Value, e.Origin)
		server.Err = m.faults.of(e.Value)
		s.Servers = append(s.Servers, server)
	}
	if c := m.command("mcpServerCommand"); (c.IsSet() || c.Err != nil) && !slices.ContainsFunc(s.Servers, func(s Server) bool { return s.Name == "mcp" }) {
		server := decodeServer(row, "mcp", &jsonx.Value{Kind: jsonx.Object}, c.Origin)
		if server.Err = c.Err; c.IsSet() {
			server.Command, server.Args = c.Argv[0], c.Argv[1:]
		}
		s.Servers = append(s.Servers, server)
	}
	allowed, excluded := m.list("mcp.allowed"), m.list("mcp.excluded")
	for i := range s.Servers {
		server := &s.Servers[i]
		server.Excluded = excludedBy(server.Name, allowed, excluded)
		if s.Globals.TimeoutSet {
			server.Timeout = s.Globals.Timeout
		}
		if s.Globals.ConnectSet {
			server.ConnectTimeout = s.Globals.ConnectTimeout
		}
	}
}

// excludedBy returns the setting that excludes a server. Case is ignored where
// it would let a server through. An empty list of allowed servers allows all, as
// in the Gemini CLI.
func excludedBy(name string, allowed, excluded List) *Origin {
	matches := func(e Entry) bool { return registry.MatchName(e.Value, name) }
	if i := slices.IndexFunc(excluded.Entries, func(e Entry) bool {
		return registry.MatchName(strings.ToLower(e.Value), strings.ToLower(name))
	}); i >= 0 {
		return &excluded.Entries[i].Origin
	}
	if len(allowed.Entries) == 0 || slices.ContainsFunc(allowed.Entries, matches) {
		return nil
	}
	return &allowed.Entries[0].Origin
}

func (m *merged) serve() Serve {
	var key Entry
	if e, ok := m.last("serve.stateKey"); ok {
		key = Entry{Value: e.node.Text(), Origin: e.origin}
	}
	return Serve{
		Idle: duration(m.node("serve.idle")), Session: duration(m.node("serve.session")),
		MaxClients: number(m.node("serve.maxClients")), MaxCalls: number(m.node("serve.maxCalls")), StateKey: key,
	}
}
