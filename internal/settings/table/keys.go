package table

import (
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// all returns every setting, in the order of the documentation.
func all() []Row {
	return slices.Concat(sourceRows(), filterRows(), policyRows(),
		callRows(), featureRows(), sandboxRows(), foreignRows())
}

func sourceRows() []Row {
	return []Row{
		{Name: "toolDiscoveryCommand", Shapes: true, Twin: "tools.discoveryCommand", Type: Command, Apart: true,
			Doc: "Command that prints the project's tools: one string, split into words without a shell, or a list of words."},
		{Name: "toolDiscoveryTimeout", Twin: "tools.discoveryTimeout", Type: Duration, Default: `"30s"`, Loosens: whenLonger("30s"),
			Doc: "Time limit of the discovery command; 0 for none."},
		{Name: "toolCallCommand", Shapes: true, Twin: "tools.callCommand", Type: Command, Apart: true,
			Doc: "Command that runs a discovered tool; the tool's name is appended as the last argument."},
		{Name: "mcpServers", Shapes: true, Type: Named, Apart: true, Merge: ByName, Fields: serverFields(), CheckEntry: checkServer,
			Doc: "MCP servers by name. A later scope replaces the whole entry."},
		{Name: "mcpServerCommand", Shapes: true, Twin: "mcp.serverCommand", Type: Command, Apart: true,
			Doc: "Command of one additional stdio server, named mcp."},
		{Name: "openapi", Shapes: true, Type: Named, Apart: true, Merge: ByName, Fields: apiFields(), CheckEntry: checkAPI,
			Doc: "HTTP APIs by name, each described by an OpenAPI document whose operations become tools. A later scope replaces the whole entry."},
		{Name: "registries", Type: Addresses, Loosens: whenFilled,
			Doc: "Registries of MCP servers that servers find, add, outdated and upgrade ask, in this order; by default the official one.", Fields: []Row{
				{Name: "url", Type: String, Required: true, Check: checkRegistry, Doc: "Address of the registry, below which its API is at /v0.1."},
				{Name: "headers", Type: Pairs, Secret: true, CheckName: checkHeaderName, CheckEntry: checkHeader,
					Doc: "HTTP headers, sent only to the registry's own origin. Values may be references."},
			}},
		{
			Name: "mcp.allowed", Twin: "allowMCPServers", Type: Strings, Names: Others, Loosens: always,
			Doc: "The only servers that may be connected; empty = all. disabled in a server's entry switches one off.",
		},
		{Name: "mcp.excluded", Twin: "excludeMCPServers", Type: Strings, Names: Others, Merge: Unite, Doc: "Servers that may not be connected."},
		{Name: "plugins.paths", Shapes: true, Type: Strings, Runs: true, Doc: "Additional plugin folders."},
		{Name: "plugins.disabled", Shapes: true, Type: Strings, Names: Plugins, Merge: Unite, Doc: "Ids of disabled plugins."},
		{Name: "plugins.settings", Type: RawNamed, Merge: ByName, Secret: true, Loosens: whenFilled,
			Doc: "Settings of plugins by id, passed only to that plugin. Strings may be references."},
		{Name: "composites", Shapes: true, Type: Named, Apart: true, Merge: ByName, Strict: true, Fields: compositeFields(), Doc: "Tools that call other tools, by name."},
		{
			Name: "imports", Type: Strings,
			Choices: []string{"gemini", "antigravity", "claude", "claude-desktop", "vscode", "cursor", "codex", "windsurf", "opencode", "zed", "mcporter"},
			Doc:     "Programs whose MCP servers are imported: gemini, antigravity, claude, claude-desktop, vscode, cursor, codex, windsurf, opencode, zed, mcporter.",
			Loosens: whenFilled,
		},
	}
}

func compositeFields() []Row {
	return []Row{
		{Name: "description", Type: String, Doc: "Its description."},
		{Name: "displayName", Type: String, Doc: "Display name."},
		{
			Name: "icon", Type: Choice,
			Choices: []string{"fileSearch", "folder", "globe", "hammer", "lightBulb", "pencil", "regex", "terminal"},
			Doc:     "Icon for clients that show one.",
		},
		{
			Name: "category", Type: Choice,
			Choices: []string{"read", "write", "command", "network", "other"}, Default: `"other"`,
			Doc: "Category; each step is also decided on by itself.",
		},
		{Name: "tags", Type: Strings, Doc: "Its tags."},
		{Name: "parameters", Type: RawNamed, Doc: "JSON Schema of its params; by default it takes none."},
		{Name: "steps", Type: Objects, Strict: true, Check: refuse(func(n *jsonx.Value) bool {
			return n.Is(jsonx.Array) && (len(n.Items) == 0 || len(n.Items) > 100)
		},
			"must have 1 to 100 steps", ""), Doc: "Calls that are made one after the other, at most 100.", Fields: []Row{
			{Name: "tool", Type: String, Required: true, Doc: "Name of the tool."},
			{Name: "params", Type: String, Doc: "jq expression over {params, steps, context} for its params; by default those of the composite."},
			{Name: "if", Type: String, Doc: "jq expression; if it is false, the step is skipped."},
			{Name: "continueOnError", Type: Bool, Default: "false", Doc: "Continue with the next step if the call fails."},
		}},
		{Name: "result", Type: String, Doc: "jq expression whose value is the result; by default the results of the steps that succeeded, joined."},
		{Name: "script", Type: String, Doc: "File of a script that runs instead of steps, relative to the project root."},
	}
}

func serverFields() []Row {
	return []Row{
		{Name: "command", Type: String, Doc: "Program of a stdio server. A command line, as in \"npx -y foo\", is split into words if no file has that name."},
		{Name: "args", Type: Strings, Doc: "Arguments of the program."},
		{Name: "env", Type: Pairs, CheckName: checkVariableName, Secret: true, Doc: "Variables added to its environment. Values may be references: env:NAME, file:PATH, cmd:ARGV."},
		{Name: "inheritEnv", Type: Bool, Default: "false", Doc: "Pass toolreg's whole environment to it.", Loosens: whenTrue},
		{Name: "cwd", Type: String, Doc: "Working directory, relative to the project root."},
		{Name: "url", Type: String, Doc: "Address of a remote server: streamable HTTP, falling back to SSE."},
		{Name: "httpUrl", Type: String, Doc: "Address of a streamable HTTP server."},
		{
			Name: "type", Type: Choice,
			Choices: []string{"stdio", "http", "sse", "streamable-http", "streamableHttp"},
			Doc:     "Transport, if command or url do not determine it. The last two are other names of http.",
		},
		{Name: "headers", Type: Pairs, Secret: true, CheckName: checkHeaderName, CheckEntry: checkHeader,
			Doc: "HTTP headers, sent only to the server's own origin. Values may be references."},
		timeLimit("timeout", "10m", "Time limit of a call; 0 for none."),
		timeLimit("connectTimeout", "30s", "Time limit for starting and listing; 0 for none."),
		{Name: "protocol", Type: Choice, Choices: []string{"auto", "legacy", "modern"}, Default: `"auto"`, Doc: "Protocol generation to use."},
		{Name: "trust", Type: Bool, Default: "false", Doc: "Run its tools without asking.", Loosens: whenTrue},
		{Name: "perClient", Type: Bool, Default: "false", Doc: "With serve: give each client its own process of the server."},
		{Name: "optional", Type: Bool, Default: "false", Doc: "With serve: /readyz does not depend on the server."},
		{
			Name: "keep", Type: Keep, Loosens: whenKept,
			Doc: "Keep the server running between runs: true (10m) or how long it may be idle, false to stop it with the run; by default servers.keep.",
		},
		{Name: "lifecycle", Type: Keep, Loosens: whenKept, Doc: "mcporter's form of keep: keep-alive, ephemeral, or an object with mode and idleTimeoutMs."},
		{Name: "description", Type: String, Doc: "Purpose of the server."},
		{Name: "includeTools", Type: Strings, Globs: true, Names: OwnTools, Parens: true, Doc: "The only tools to register, as the server names them; by default all."},
		{
			Name: "excludeTools", Type: Strings, Globs: true, Names: OwnTools,
			Doc: "Tools not to register, as excludeTools with server__tool; overrides includeTools.",
		},
		{
			Name: "oauth", Type: Object, Doc: "OAuth 2.1 client settings.",
			Fields: append(oauthFields(), Row{Name: "per", Type: Choice, Choices: []string{"server", "client"}, Default: `"server"`,
				Doc: "With serve: whose login is used for a client: the one of the server, which is yours; or one of its own for each client."}),
		},
		{Name: "disabled", Type: Bool, Default: "false", Doc: "Disable this server."},
		{Name: "from", Type: Object, Doc: "Where servers add got the entry, for servers outdated and upgrade.", Fields: []Row{
			{Name: "registry", Type: String, Doc: "Address of the registry, if it was not a file."},
			{Name: "name", Type: String, Doc: "Name of the server there."},
			{Name: "version", Type: String, Doc: "Version that the entry runs."},
			{Name: "runtime", Type: String, Doc: "How it is run: npm, pypi, oci, nuget, mcpb, remote."},
			{Name: "bundle", Type: String, Doc: "SHA-256 of the bundle."},
			{Name: "values", Type: RawNamed, Secret: true, Doc: "Values that were given for it, each a list."},
		}},
	}
}

func oauthFields() []Row {
	return []Row{
		{Name: "enabled", Type: Bool, Doc: "Use OAuth even before the server asks for it."},
		{Name: "grant", Type: Choice, Choices: []string{"authorization_code", "client_credentials", "jwt_bearer"}, Default: `"authorization_code"`,
			Doc: "How tokens are obtained: by a login in the browser; with the client's own credentials; with an assertion from another party."},
		{Name: "clientId", Type: String, Doc: "Client identifier, or the https address of a client metadata document; by default toolreg registers itself."},
		{Name: "clientSecret", Type: String, Secret: true, Doc: "Client secret; may be a reference."},
		{Name: "privateKey", Type: String, Secret: true, Doc: "Private key (PEM) that signs for the client instead of a secret; may be a reference."},
		{Name: "assertion", Type: String, Secret: true, Doc: "Grant jwt_bearer: the assertion, such as a workload's identity token; may be a reference."},
		{
			Name: "idToken", Type: String, Secret: true,
			Doc: "Grant jwt_bearer without assertion: the identity token to exchange for one at idpIssuer; may be a reference.",
		},
		{Name: "idpIssuer", Type: String, Doc: "Identity provider that exchanges idToken."},
		{Name: "idpClientId", Type: String, Doc: "Client identifier at the identity provider; by default clientId."},
		{Name: "authorizationUrl", Type: String, Doc: "Authorization endpoint, if discovery does not find it."},
		{Name: "tokenUrl", Type: String, Doc: "Token endpoint."},
		{Name: "registrationUrl", Type: String, Doc: "Registration endpoint."},
		{Name: "issuer", Type: String, Doc: "Issuer of the authorization server."},
		{Name: "scopes", Type: Strings, Doc: "Scopes to request."},
		{Name: "audiences", Type: Strings, Doc: "Audiences to request."},
		{Name: "resource", Type: String, Doc: "Resource to request (RFC 8707) in place of the server's; with none, the parameter is not sent, for authorization servers that refuse it."},
		{
			Name: "redirectUri", Type: String,
			Doc: "Where the browser returns: an address of this machine, by default a free port; for clients of serve its /login/callback.",
		},
		{Name: "tokenParamName", Type: String, Doc: "Query parameter that carries the token to an SSE server."},
		{Name: "dpop", Type: Choice, Choices: []string{"auto", "require", "off"}, Default: `"auto"`,
			Doc: "Bind tokens to a key of the login (DPoP, RFC 9449): auto = if the authorization server supports it."},
	}
}

func apiFields() []Row {
	return []Row{
		{
			Name: "spec", Type: String, Required: true,
			Doc: "The document: OpenAPI 3.0, OpenAPI 3.1 or Swagger 2.0, JSON or YAML; a file, relative to the project root, or an http or https address.",
		},
		{Name: "baseUrl", Type: String, Doc: "Address of the API, which replaces the servers that the document names."},
		{Name: "headers", Type: Pairs, Secret: true, CheckName: checkHeaderName, CheckEntry: checkHeader,
			Doc: "HTTP headers, sent only to the API's own origin. Values may be references."},
		{
			Name: "auth", Type: OneOrMore, Strict: true, Fields: authFields(),
			Doc: "How requests are authenticated: one way, or a list of ways that are used together. Sent only to the API's own origin.",
		},
		{
			Name: "include", Type: Strings, Globs: true, Names: Operations,
			Doc: "The only operations to register: globs of operationId, tag or METHOD /path; by default all.",
		},
		{Name: "exclude", Type: Strings, Globs: true, Names: Operations, Doc: "Operations not to register; overrides include."},
		timeLimit("timeout", "10m", "Time limit of a call; 0 for none."),
		timeLimit("connectTimeout", "30s", "Time limit for getting the document; 0 for none."),
		{Name: "trust", Type: Bool, Default: "false", Doc: "Run its tools without asking.", Loosens: whenTrue},
		{Name: "maxOutput", Type: Size, Doc: "Maximum size of the text of a result; by default limits.output.", Loosens: always},
		{Name: "description", Type: String, Doc: "Purpose of the API."},
		{Name: "optional", Type: Bool, Default: "false", Doc: "With serve: /readyz does not depend on the API."},
		{Name: "disabled", Type: Bool, Default: "false", Doc: "Disable this API."},
	}
}

func authFields() []Row {
	return []Row{
		{Name: "bearer", Type: String, Secret: true, Doc: "Token of the header Authorization: Bearer; may be a reference."},
		{Name: "basic", Type: Object, Strict: true, Doc: "Basic authentication.", Fields: []Row{
			{Name: "username", Type: String, Required: true, Doc: "User name; may be a reference."},
			{Name: "password", Type: String, Secret: true, Required: true, Doc: "Password; may be a reference."},
		}},
		{Name: "apiKey", Type: Object, Strict: true, Doc: "A key in a header, a query parameter or a cookie.", Fields: []Row{
			{Name: "in", Type: Choice, Choices: []string{"header", "query", "cookie"}, Required: true, Doc: "Where the key is sent."},
			{Name: "name", Type: String, Required: true, Doc: "Name of the header, parameter or cookie."},
			{Name: "value", Type: String, Secret: true, Required: true, Doc: "The key; may be a reference."},
		}},
		{Name: "oauth", Type: Object, Fields: oauthFields(), Doc: "OAuth 2.1 client settings: the fields of mcpServers.NAME.oauth, without per."},
	}
}

func filterRows() []Row {
	return []Row{
		{
			Name: "coreTools", Shapes: true, Twin: "tools.core", Type: Strings, Globs: true, Names: Tools, Parens: true, Loosens: always,
			Doc: "The only built-in tools to register; by default all. run_shell_command(git status) registers the shell tool for commands that begin with these words alone. tools.only does the same for tools of every source.",
		},
		{Name: "excludeTools", Shapes: true, Twin: "tools.exclude", Type: Strings, Globs: true, Names: Tools, Parens: true, Match: FoldedGlobs, Merge: Unite,
			Doc: "Tools not to register: names or globs. run_shell_command(rm) denies that command."},
		{Name: "allowedTools", Twin: "tools.allowed", Type: Strings, Globs: true, Names: Tools, Parens: true, Loosens: whenFilled,
			Doc: "Tools that run without asking. run_shell_command(git status) allows commands that begin with these words."},
		{Name: "tools.only", Shapes: true, Type: Strings, Globs: true, Names: Tools, Parens: true, Loosens: always, Doc: "The only tools to register, from any source: names or globs. By default all."},
		{
			Name: "tools.allow", Shapes: true, Type: Strings, Globs: true, Names: Optional, Match: FoldedGlobs, Loosens: whenFilled,
			Doc: "Optional tools to enable: a tool, a plugin id, or group:plugins.",
		},
		{Name: "permissions.filesystem", Shapes: true, Type: Bool, Default: "true", Doc: "Register tools that need the file system.", Loosens: whenTrue},
		{Name: "permissions.network", Shapes: true, Type: Bool, Default: "true", Doc: "Register tools that need the network.", Loosens: whenTrue},
		{Name: "permissions.shell", Shapes: true, Type: Bool, Default: "true", Doc: "Register tools that need a shell.", Loosens: whenTrue},
		{Name: "permissions.database", Shapes: true, Type: Bool, Default: "true", Doc: "Register tools that need a database.", Loosens: whenTrue},
		{Name: "conflicts.discovered", Type: Choice, Choices: []string{"overwrite", "reject", "qualify"}, Default: `"overwrite"`,
			Doc: "What happens to a discovered tool whose name is already taken.", Loosens: always},
		{Name: "names.servers", Type: Choice, Choices: []string{"first", "qualified"}, Default: `"first"`,
			Doc:     "Names of servers' tools: the server that had a name first has it without its own name, or every tool is server__tool.",
			Loosens: always},
		{
			Name: "context", Type: RawNamed, Merge: ByName,
			Doc:     "Facts for plugin factories and conditions: channel, sandboxed, agentId, sessionKey and your own. Each sessionKey has its own todo list; agentId identifies who writes to it.",
			Loosens: whenFilled,
		},
	}
}

func policyRows() []Row {
	rows := []Row{
		{Name: "approvalMode", Type: Choice, Choices: ApprovalModes(), Default: `"default"`,
			Doc: "How calls are approved: ask; allow edits in the workspace; deny everything except reads; never ask.", Loosens: whenNot("plan")},
		{Name: "approval.command", Type: Command, Looser: notByProject, FilesOnly: true,
			Doc: "Command that answers questions about calls if nobody can be asked; without it such calls fail, and the questions wait for toolreg approvals answer."},
		{
			Name: "approval.timeout", Type: Duration, Default: `"10m"`, Looser: notByProject,
			FilesOnly: true,
			Doc:       "Time limit of that command, and how long the console of serve shows a question; 0 for none.",
		},
		{
			Name: "policy.rules", Type: Objects, Merge: Unite, Strict: true, Fields: ruleFields(),
			Doc: "Rules, of which the first match decides.", Loosens: hasAllow,
		},
	}
	for _, c := range []struct{ category, def string }{
		{"read", "allow"}, {"write", "ask"}, {"command", "ask"}, {"network", "ask"}, {"other", "ask"},
	} {
		rows = append(rows, Row{Name: "policy.defaults." + c.category, Type: Choice,
			Choices: []string{"allow", "ask", "deny"}, Default: `"` + c.def + `"`,
			Doc: "Decision for " + c.category + " tools that no rule matches.", Loosens: whenNot("deny")})
	}
	return rows
}

// ApprovalModes lists the values of approvalMode.
func ApprovalModes() []string { return []string{"default", "auto-edit", "plan", "yolo"} }

func callRows() []Row {
	return []Row{
		{
			Name: "env", Type: Pairs, CheckName: checkVariableName, Merge: ByName, Secret: true, Loosens: whenFilled,
			Doc: "Variables added for discovery, call and plugin commands. Values may be references.",
		},
		{Name: "inheritEnv", Type: Bool, Default: "false", Doc: "Pass toolreg's whole environment to those commands.", Loosens: whenTrue},
		{Name: "toolOptions", Type: Named, Names: Tools, Merge: ByName, Fields: toolOptionFields(), Loosens: whenFilled,
			Doc: "Options of tools by name or glob. All entries that match a tool apply; later ones override earlier ones."},
		{Name: "overrides", Shapes: true, Type: Named, Names: Upstream, Match: Exact, Merge: ByName, Strict: true, Fields: overrideFields(), Loosens: always,
			Doc: "Changes to names, descriptions, params and results of tools, by registered name or server__tool. A project cannot replace an entry of your own settings that fixes or hides something."},
		{Name: "hooks", Type: Object, Merge: Unite, Runs: true, Fields: hookFields(), Doc: "Commands to run around each call. The hooks of all scopes run."},
		{Name: "cache.discovery", Type: Duration, Default: "0", Doc: "How long a source's cached tools are used before it is queried again; 0 for no caching."},
		{
			Name: "cache.failures", Type: Duration, Default: `"1m"`,
			Doc: "With cache.discovery: how long a failed source is not started again; 0 to start it every time.",
		},
		{Name: "sampling.command", Type: Command, Doc: "Command that answers sampling requests of MCP servers; without it they are declined."},
		timeLimit("sampling.timeout", "2m", "Time limit of that command; 0 for none."),
		{Name: "sampling.requests", Type: Int, Default: "10", Loosens: always, Doc: "Maximum number of sampling requests of a server during one call."},
		{Name: "search.command", Type: Command, Doc: "Command that reorders the tools a search found; without it they are ordered by score."},
		timeLimit("search.timeout", "10s", "Time limit of that command; 0 for none."),
		{
			Name: "search.budget", Type: Int, Default: "10000",
			Doc: "Maximum tokens of declarations, as estimated by list --cost, before schema --defer auto defers tools.",
		},
		{Name: "search.always", Shapes: true, Type: Strings, Globs: true, Names: Tools, Doc: "Tools that schema --defer never defers: names or globs."},
		{Name: "scripts", Shapes: true, Type: Bool, Default: "false", Doc: "Declare the tool run_script, which runs a script that calls tools; short for scripts.declare."},
		{Name: "scripts.declare", Shapes: true, Type: Bool, Default: "false", Doc: "Declare the tool run_script to models: schema and serve offer it, and call accepts it."},
		{Name: "scripts.steps", Type: Int, Default: "100000000", Loosens: always, Doc: "Maximum steps of a script; 0 for no limit."},
		{Name: "scripts.calls", Type: Int, Default: "1000", Loosens: always, Doc: "Maximum calls of a script; 0 for no limit."},
		timeLimit("scripts.timeout", "5m", "Time limit of a script, without the time that a person takes to answer; 0 for none."),
		{Name: "scripts.memory", Type: Size, Default: `"256MiB"`, Loosens: always, Doc: "Maximum memory of a script, not counting the interpreter; 0 for no limit."},
		{
			Name: "search.client", Type: Bool, Default: "false",
			Doc: "With schema --defer and format openai-responses: call --format answers the model's searches instead of OpenAI's server.",
		},
	}
}

func hookFields() []Row {
	var out []Row
	for _, event := range [][2]string{
		{"beforeCall", "Commands that run before a call and may deny it, ask about it or replace its params."},
		{"afterCall", "Commands that run after a call and may replace its result."},
		{"onRegister", "Commands that receive the list of registered tools."},
		{"onDiagnostic", "Commands that receive the diagnostics of a run."},
	} {
		out = append(out, Row{Name: event[0], Type: Objects, Strict: true, Doc: event[1], Fields: []Row{
			{Name: "command", Type: Command, Required: true, Doc: "The command: one string, split into words without a shell, or a list of words."},
			{Name: "tools", Type: Strings, Globs: true, Names: Tools, Match: FoldedGlobs, Doc: "Tools that the hook applies to: names or globs; by default all."},
			// Without a limit a hook could block every call.
			{
				Name: "timeout", Type: Duration, Default: `"10s"`,
				Check: refuse(outsideRange(time.Hour), "must be a duration of more than 0, at most 1h", "such as 5s"),
				Doc:   "Time limit of the command, at most 1h.",
			},
		}})
	}
	return out
}
