package settings

// Defaults that more than one place needs.
const (
	defaultCallTimeout      = "10m"
	defaultConnectTimeout   = "30s"
	defaultDiscoveryTimeout = "30s"
	defaultShellTimeout     = "120s"
	defaultShellMaxTimeout  = "1h"
	defaultFetchTimeout     = "30s"
	defaultBanned           = `["sudo","su","doas","pkexec","rm","mkfs","fdisk","parted","dd","shutdown","reboot","halt","poweroff"]`
)

// table returns every setting of spec section 4, in the order of the
// documentation.
func table() []setting {
	rows := make([]setting, 0, 192)
	rows = append(rows, sourceRows()...)
	rows = append(rows, filterRows()...)
	rows = append(rows, policyRows()...)
	rows = append(rows, callRows()...)
	rows = append(rows, featureRows()...)
	return append(rows, foreignRows()...)
}

func sourceRows() []setting {
	return []setting{
		{name: "toolDiscoveryCommand", twin: "tools.discoveryCommand", typ: typeCommand,
			doc: "Command that prints the project's tools: one string, split into words without a shell, or a list of words."},
		{name: "toolDiscoveryTimeout", twin: "tools.discoveryTimeout", typ: typeDuration, def: `"` + defaultDiscoveryTimeout + `"`,
			doc: "Time limit of the discovery command; 0 = none.", loosens: whenLonger(defaultDiscoveryTimeout)},
		{name: "toolCallCommand", twin: "tools.callCommand", typ: typeCommand,
			doc: "Command that runs a discovered tool; the tool's name is appended as the last argument."},
		{name: "mcpServers", typ: typeNamed, merge: mergeByName, fields: serverFields(),
			doc: "MCP servers by name. A later place replaces the whole entry of a name."},
		{name: "mcpServerCommand", twin: "mcp.serverCommand", typ: typeCommand,
			doc: "Command of one more stdio server, named mcp."},
		{name: "mcp.allowed", twin: "allowMCPServers", typ: typeStrings, loosens: always, doc: "The only servers that may be connected; empty = all."},
		{name: "mcp.excluded", twin: "excludeMCPServers", typ: typeStrings, merge: mergeUnite, doc: "Servers that may not be connected."},
		{name: "plugins.paths", typ: typeStrings, runs: true, doc: "Plugin folders beyond the project's and the user's own."},
		{name: "plugins.disabled", typ: typeStrings, merge: mergeUnite, doc: "Ids of plugins that stay off."},
		{name: "plugins.settings", typ: typeRawNamed, merge: mergeByName, secret: true, loosens: whenFilled,
			doc: "Settings of plugins by id, handed to the plugin of that id alone. Strings may be references."},
		{name: "composites", typ: typeRawNamed, merge: mergeByName, doc: "Tools made of other tools, by name."},
		{name: "imports", typ: typeStrings, doc: "Programs whose MCP servers are added: gemini, claude, vscode, cursor, codex, windsurf, opencode, zed.", loosens: whenFilled},
	}
}

func serverFields() []setting {
	return []setting{
		{name: "command", typ: typeString, doc: "Program of a stdio server."},
		{name: "args", typ: typeStrings, doc: "Its arguments."},
		{name: "env", typ: typePairs, secret: true, loosens: passesOn, doc: "Variables added to its environment. Values may be references: env:NAME, file:PATH, cmd:ARGV."},
		{name: "inheritEnv", typ: typeBool, def: "false", doc: "Give it our whole environment.", loosens: whenTrue},
		{name: "cwd", typ: typeString, doc: "Its working directory, relative to the project root."},
		{name: "url", typ: typeString, doc: "Address of a remote server: streamable HTTP, falling back to SSE."},
		{name: "httpUrl", typ: typeString, doc: "Address of a streamable HTTP server."},
		{name: "type", typ: typeChoice, choices: []string{"stdio", "http", "sse"}, doc: "Transport, where command or url alone do not tell."},
		{name: "headers", typ: typePairs, secret: true, doc: "HTTP headers, sent to the server's own origin alone. Values may be references."},
		{name: "timeout", typ: typeDuration, def: `"` + defaultCallTimeout + `"`, doc: "Time limit of a call; 0 = none.", loosens: whenLonger(defaultCallTimeout)},
		{name: "connectTimeout", typ: typeDuration, def: `"` + defaultConnectTimeout + `"`, doc: "Time limit of starting and listing; 0 = none.", loosens: whenLonger(defaultConnectTimeout)},
		{name: "protocol", typ: typeChoice, choices: []string{"auto", "legacy", "modern"}, def: `"auto"`, doc: "Generation of the protocol to speak."},
		{name: "trust", typ: typeBool, def: "false", doc: "Do not ask about its tools.", loosens: whenTrue},
		{name: "description", typ: typeString, doc: "What it is for."},
		{name: "includeTools", typ: typeStrings, doc: "The only tools to register, as the server names them; absent = all."},
		{name: "excludeTools", typ: typeStrings, doc: "Tools not to register; wins over includeTools."},
		{name: "oauth", typ: typeObject, fields: oauthFields(), doc: "OAuth 2.1 client."},
		{name: "disabled", typ: typeBool, def: "false", doc: "Leave it out."},
	}
}

func oauthFields() []setting {
	return []setting{
		{name: "enabled", typ: typeBool, doc: "Use OAuth even before the server asks for it."},
		{name: "grant", typ: typeChoice, choices: oauthGrants(), def: `"authorization_code"`,
			doc: "How tokens are got: by a login in the browser; with the client's own credentials; with an assertion of another party."},
		{name: "clientId", typ: typeString, doc: "Client identifier, or the https address of a client metadata document; absent = registered with the server."},
		{name: "clientSecret", typ: typeString, secret: true, doc: "Client secret; may be a reference."},
		{name: "privateKey", typ: typeString, secret: true, doc: "Private key (PEM) that signs for the client in place of a secret; may be a reference."},
		{name: "assertion", typ: typeString, secret: true, doc: "Grant jwt_bearer: the assertion, such as a workload's identity token; may be a reference."},
		{name: "idToken", typ: typeString, secret: true, doc: "Grant jwt_bearer without assertion: the identity token to exchange for one at idpIssuer; may be a reference."},
		{name: "idpIssuer", typ: typeString, doc: "Identity provider that exchanges idToken."},
		{name: "idpClientId", typ: typeString, doc: "Client identifier at the identity provider; absent = clientId."},
		{name: "authorizationUrl", typ: typeString, doc: "Authorization endpoint, where discovery does not find it."},
		{name: "tokenUrl", typ: typeString, doc: "Token endpoint."},
		{name: "registrationUrl", typ: typeString, doc: "Registration endpoint."},
		{name: "issuer", typ: typeString, doc: "Issuer of the authorization server."},
		{name: "scopes", typ: typeStrings, doc: "Scopes to ask for."},
		{name: "audiences", typ: typeStrings, doc: "Audiences to ask for."},
		{name: "redirectUri", typ: typeString, doc: "Loopback redirect address; absent = a free port."},
		{name: "tokenParamName", typ: typeString, doc: "Query parameter that carries the token to an SSE server."},
	}
}

func oauthGrants() []string {
	return []string{GrantAuthorizationCode, GrantClientCredentials, GrantJWTBearer}
}

func filterRows() []setting {
	return []setting{
		{name: "coreTools", twin: "tools.core", typ: typeStrings, loosens: always, doc: "The only built-in tools to register; absent = all."},
		{name: "excludeTools", twin: "tools.exclude", typ: typeStrings, merge: mergeUnite,
			doc: "Tools not to register: names or globs. run_shell_command(rm) denies that command."},
		{name: "allowedTools", twin: "tools.allowed", typ: typeStrings, loosens: whenFilled,
			doc: "Tools that are not asked about. run_shell_command(git status) allows commands that begin so."},
		{name: "tools.allow", typ: typeStrings, loosens: whenFilled, doc: "Optional tools to switch on: a tool, a plugin id, or group:plugins."},
		{name: "permissions.filesystem", typ: typeBool, def: "true", doc: "Register tools that need the file system.", loosens: whenTrue},
		{name: "permissions.network", typ: typeBool, def: "true", doc: "Register tools that need the network.", loosens: whenTrue},
		{name: "permissions.shell", typ: typeBool, def: "true", doc: "Register tools that need a shell.", loosens: whenTrue},
		{name: "permissions.database", typ: typeBool, def: "true", doc: "Register tools that need a database.", loosens: whenTrue},
		{name: "conflicts.discovered", typ: typeChoice, choices: []string{"overwrite", "reject", "qualify"}, def: `"overwrite"`,
			doc: "What a discovered tool does whose name is taken.", loosens: whenText("overwrite")},
		{name: "context", typ: typeRawNamed, merge: mergeByName, doc: "Facts for plugin factories and conditions: channel, sandboxed, agentId, sessionKey and your own. Each sessionKey has a todo list; agentId tells its writers apart.", loosens: whenFilled},
	}
}

func policyRows() []setting {
	rows := []setting{
		{name: "approvalMode", typ: typeChoice, choices: approvalModes(), def: `"default"`,
			doc: "How calls are approved: ask; allow edits in the workspace; deny all but read; ask nothing.", loosens: whenNot("plan")},
		{name: rulesKey, typ: typeObjects, fields: ruleFields(), doc: "Rules of all places add up; the first match decides.", loosens: allowsSomething},
	}
	for _, c := range []struct{ category, def string }{{"read", "allow"}, {"write", "ask"}, {"command", "ask"}, {"network", "ask"}, {"other", "ask"}} {
		rows = append(rows, setting{name: "policy.defaults." + c.category, typ: typeChoice, choices: decisions(), def: `"` + c.def + `"`,
			doc: "Decision for " + c.category + " tools that no rule matches.", loosens: whenText("allow")})
	}
	return rows
}

func approvalModes() []string { return []string{"default", "auto-edit", "plan", "yolo"} }

func decisions() []string { return []string{"allow", "ask", "deny"} }

func ruleFields() []setting {
	return []setting{
		{name: "tool", typ: typeString, doc: "Name or glob of tools."},
		{name: "source", typ: typeString, doc: "Source: builtin, plugin:ID, command, composite, mcp:SERVER, or a glob."},
		{name: "server", typ: typeString, doc: "Name or glob of MCP servers."},
		{name: "category", typ: typeString, doc: "Category: read, write, command, network, other."},
		{name: "command", typ: typeString, doc: "Beginning of a shell command, in whole words."},
		{name: "path", typ: typeString, doc: "Glob of paths."},
		{name: "decision", typ: typeChoice, choices: decisions(), required: true, doc: "What to do."},
		{name: "reason", typ: typeString, doc: "Shown with the decision."},
	}
}

func allowsSomething(rules *node) bool {
	for _, rule := range rules.items {
		if d := rule.get("decision"); d != nil && d.text == "allow" {
			return true
		}
	}
	return false
}

func callRows() []setting {
	return []setting{
		{name: "env", typ: typePairs, merge: mergeByName, secret: true, loosens: whenFilled, doc: "Variables added for discovery, call and plugin commands. Values may be references."},
		{name: "inheritEnv", typ: typeBool, def: "false", doc: "Give those commands our whole environment.", loosens: whenTrue},
		{name: "toolOptions", typ: typeNamed, merge: mergeByName, fields: toolOptionFields(), loosens: whenFilled,
			doc: "Options of tools by name or glob. All entries that match a tool count, later ones over earlier."},
		{name: "hooks", typ: typeRaw, merge: mergeUnite, runs: true, loosens: whenFilled, doc: "Commands around each call. Those of all places run."},
		{name: "cache.discovery", typ: typeDuration, def: "0", doc: "How long what a source gave may stand for asking it again; 0 = not at all."},
		{name: "sampling.command", typ: typeCommand, doc: "Command that answers sampling requests of MCP servers; absent = declined."},
		{name: "sampling.timeout", typ: typeDuration, def: `"2m"`, loosens: whenLonger("2m"), doc: "Time limit of that command; 0 = none."},
		{name: "sampling.requests", typ: typeInt, def: "10", loosens: always, doc: "Most sampling requests of a server during one call."},
	}
}
