package table

import "math"

const defaultBanned = `["sudo","su","doas","pkexec","rm","mkfs","fdisk","parted","dd","shutdown","reboot","halt","poweroff",` +
	`"systemctl reboot","systemctl halt","systemctl poweroff"]`

func featureRows() []Row {
	return []Row{
		{Name: "shell.banned", Type: Strings, Merge: Unite, Default: defaultBanned,
			Doc: "Commands that run_shell_command refuses. Your own list replaces the default; a project's list adds to it."},
		{Name: "shell.catastrophic", Type: Choice, Choices: []string{"deny", "ask"}, Default: `"deny"`, Loosens: whenText("ask"),
			Doc: "What happens to command lines that would ruin the machine: a recursive change of /, a system folder or your home folder, a write to a disk, a fork bomb. With ask, a person must confirm them; --yes does not."},
		timeLimit("shell.timeout", "120s", "Time limit of a shell command; 0 for none."),
		timeLimit("shell.maxTimeout", "1h", "Longest time limit that a call may request; 0 for no limit."),
		{Name: "fetch.allowHosts", Type: Strings, Check: checkHosts, Loosens: whenFilled, Doc: "Private hosts that web_fetch may reach: host or host:port."},
		{Name: "fetch.processor", Type: Command, Doc: "Command that answers a prompt about fetched content."},
		{Name: "fetch.headers", Type: RawNamed, Merge: ByName, Secret: true, CheckName: checkOrigin, Entry: &Row{Type: Pairs, Secret: true, CheckName: checkHeaderName, CheckEntry: checkHeader},
			Doc: "Headers by origin (https://host[:port]), sent only to that origin. Values may be references."},
		{Name: "fetch.proxy", Type: Bool, Default: "false", Loosens: whenTrue,
			Doc: "Fetch through the proxy set in HTTPS_PROXY, HTTP_PROXY and NO_PROXY. The proxy then resolves host names."},
		timeLimit("fetch.timeout", "30s", "Time limit for fetching a page, including redirects; 0 for none."),
		{Name: "fetch.maxBytes", Type: Size, Default: `"10MiB"`, Loosens: always, Doc: "Maximum size of a page, after decompression; the rest is not read."},
		{Name: "workspace.root", Type: String, Loosens: always, Doc: "Folder that file tools may use; by default the project root."},
		{
			Name: "telemetry.endpoint", Type: String, Looser: notByProject, FilesOnly: true,
			Doc: "Address of an OpenTelemetry collector that gets traces and metrics, such as http://localhost:4318. The variables OTEL_* have precedence.",
		},
		{
			Name: "telemetry.headers", Type: Pairs, Merge: ByName, Secret: true, Looser: notByProject, CheckName: checkHeaderName, CheckEntry: checkHeader,
			Doc: "HTTP headers of these requests. Values may be references.",
		},
		{
			Name: "telemetry.content", Type: Bool, Default: "false", Looser: notByProject, FilesOnly: true,
			Doc: "Also export the params and results of calls, with secrets masked, up to 4 KiB of each.",
		},
		{Name: "audit.enabled", Type: Bool, Default: "true", Loosens: whenFalse, Doc: "Log every call and refusal."},
		{Name: "audit.maxSize", Type: Size, Default: `"10MiB"`, Loosens: always, Doc: "Size at which the log is rotated."},
		{Name: "audit.keep", Type: Int, Default: "5", Loosens: always, Doc: "Number of rotated logs to keep."},
		{Name: "audit.params", Type: Bool, Default: "false", Loosens: whenTrue, Doc: "Log the params themselves, not just their hash."},
		{Name: "display.images", Type: Choice, Choices: []string{"auto", "kitty", "iterm2", "never"}, Default: `"auto"`,
			Doc: "How images in results are shown on a terminal; auto detects what the terminal supports."},
		{
			Name: "servers.keep", Type: Keep, Default: "false", Loosens: whenKept,
			Doc: "Keep servers running between runs: true (10m), how long they may be idle, or false; keep of a server overrides it.",
		},
		{
			Name: "check.silence", Type: Objects, Merge: Unite, Strict: true, Loosens: whenFilled,
			Doc: "Findings of servers check that were looked at and are accepted. The lists of all scopes apply.",
			Fields: []Row{
				{Name: "rule", Type: String, Required: true, Doc: "Rule of the findings."},
				{Name: "reason", Type: String, Required: true, Doc: "Why they are accepted."},
				{Name: "server", Type: String, Names: Others, Doc: "Name or glob of servers; by default all."},
				{
					Name: "tool", Type: String, Names: Others,
					Doc: "Name or glob of tools, prompts or resources, as the server names them; by default all, and the server itself.",
				},
			},
		},
		{Name: "serve.idle", Type: Duration, Default: `"10m"`, Doc: "Time after which serve closes an idle server; 0 for never."},
		{Name: "serve.session", Type: Duration, Default: `"10m"`, Loosens: always, Doc: "Time after which serve closes an unused session; 0 for never."},
		{
			Name: "serve.maxClients", Type: Int, Default: "1000", Loosens: always,
			Doc: "Maximum number of clients of serve; an unused session makes room for a new one; 0 for no limit.",
		},
		{
			Name: "serve.maxCalls", Type: Int, Default: "64", Loosens: always,
			Doc: "Maximum number of concurrent calls with one token of serve; all clients together may run 16 times as many; 0 for no limit.",
		},
		{
			Name: "serve.keepAlive", Type: Duration, Default: `"15s"`,
			Doc: "How often serve sends a comment on a stream over HTTP that has nothing to send, so that proxies keep it open; 0 for never.",
		},
		{
			Name: "serve.tls.cert", Type: String, Looser: notByProject,
			Doc: "File with the certificate of serve --http and its chain, in PEM; relative to the folder of the settings file. Read again after a change. Without one, HTTP.",
		},
		{Name: "serve.tls.key", Type: String, Looser: notByProject, Doc: "File with the key of the certificate, in PEM."},
		{
			Name: "serve.tls.clientCa", Type: String, Looser: notByProject,
			Doc: "File with certificates of authorities, in PEM: clients must have a certificate of one of them, besides the token.",
		},
		{
			Name: "serve.oauth.issuer", Type: String, Looser: notByProject,
			Doc: "Issuer whose access tokens clients of serve --http need: its URL, exactly as the tokens and its metadata have it. Without it, tokens of --token-file.",
		},
		{
			Name: "serve.oauth.audience", Type: String, Looser: notByProject,
			Doc: "URL of the MCP endpoint as clients reach it, such as https://tools.example.com/mcp: the resource in its metadata, and the audience that tokens must have.",
		},
		{Name: "serve.oauth.jwksUri", Type: String, Looser: notByProject, Doc: "Address of the issuer's keys; by default the address in its metadata."},
		{
			Name: "serve.oauth.scopes", Type: Scopes, Names: Tools, Match: FoldedGlobs, Looser: notByProject,
			Doc: "Scopes that every request needs; or an object from names or globs of tools to the scope that calls of them need, in which '*' is for every request.",
		},
		{
			Name: "serve.oauth.claims.name", Type: String, Default: `"sub"`, Looser: notByProject,
			Doc: "Claim with the caller's name: the name of a claim, or names of nested ones with dots between them.",
		},
		{Name: "serve.oauth.claims.groups", Type: String, Default: `"groups"`, Looser: notByProject, Doc: "Claim with the caller's groups: a list, or a single group."},
		{
			Name: "serve.limits", Type: Objects, Merge: Unite, Strict: true,
			Doc: "How many calls clients of serve may make in a time. The lists of all scopes apply.",
			Fields: []Row{
				{
					Name: "client", Type: String, Globs: true, Names: Others,
					Doc: "Name or glob of the clients' tokens; by default all. Each client has its own count.",
				},
				{Name: "group", Type: String, Globs: true, Names: Others, Doc: "Name or glob of groups that the clients' tokens name; by default all."},
				{
					Name: "tool", Type: String, Globs: true, Names: Tools, Match: FoldedGlobs,
					Doc: "Name or glob of tools, whose calls are counted together; by default all.",
				},
				{
					Name: "calls", Type: Int, Required: true,
					Check: refuse(isZero, "must be 1 or more", "a rule denies all calls (policy.rules)"),
					Doc:   "Maximum number of calls.",
				},
				{
					Name: "per", Type: Duration, Required: true,
					Check: refuse(outsideRange(math.MaxInt64), "must be a duration of more than 0", "such as 1m or 24h"),
					Doc:   "Length of the time, which begins with the first call that is counted.",
				},
			},
		},
		{
			Name: "serve.profiles", Type: Named, Merge: ByName, Strict: true, Loosens: always, CheckName: checkProfileName,
			Doc: "Selections of tools, prompts and resources that clients of serve get, by name. A client gets the profile that its token, the end of the address (/mcp/NAME) or --profile names.",
			Fields: []Row{
				{Name: "preset", Type: String, Doc: "Only built-in tools of this preset, as in --preset."},
				{Name: "source", Type: Strings, Globs: true, Names: Others, Doc: "Only tools of these sources: names or globs, as in --source."},
				{Name: "server", Type: Strings, Globs: true, Names: Servers, Doc: "Only tools, prompts and resources of these MCP servers: names or globs."},
				{Name: "category", Type: Strings, Doc: "Only tools of these categories."},
				{Name: "tag", Type: Strings, Doc: "Only tools with one of these tags."},
				{Name: "expose", Type: Choice, Choices: []string{"all", "search", "scripts"}, Default: `"all"`, Doc: "How the selected tools are offered, as in --expose."},
				{Name: "always", Type: Strings, Globs: true, Names: Tools, Doc: "With search or scripts: tools that are offered too, names or globs."},
				{
					Name: "rules", Type: Objects, Strict: true, Fields: ruleFields(),
					Doc: "Rules as in policy.rules, for the profile alone. They go before all other rules, but loosen nothing that a file read before denies.",
				},
				{
					Name: "groups", Type: Strings, Globs: true, Names: Others,
					Doc: "Groups of callers that get the profile: names or globs. All others can use it only if their token names it.",
				},
			},
		},
		{Name: "serve.stateKey", Type: String, Secret: true, Looser: notByProject,
			Doc: "Secret of at least 32 characters that lets several processes of serve continue each other's calls after a question; may be a reference: env:NAME, file:PATH, cmd:ARGV. By default a random one."},
		{Name: "serve.store", Type: String, Secret: true, Looser: notByProject, FilesOnly: true,
			Doc: "Address of a Redis or Valkey server through which several processes of serve --http share sessions, questions, answers and counts: redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=NAME], or rediss:// for TLS; may be a reference: env:NAME, file:PATH, cmd:ARGV. Needs serve.stateKey. A change needs a restart. Without it nothing is shared."},
		{Name: "limits.discoveryOutput", Type: Size, Default: `"10MiB"`, Loosens: always, Doc: "Maximum output of the discovery command."},
		{Name: "limits.document", Type: Size, Default: `"64MiB"`, Loosens: always, Doc: "Maximum size of an OpenAPI document, or of a file that it refers to."},
		{Name: "limits.frame", Type: Size, Default: `"16MiB"`, Loosens: always, Doc: "Maximum size of a message from an MCP server."},
		{Name: "limits.result", Type: Size, Default: `"64MiB"`, Loosens: always, Doc: "Maximum size of a call's result."},
		{Name: "limits.output", Type: Size, Default: `"10MiB"`, Loosens: always, Doc: "Maximum output of a call; longer output is cut and saved to a file; 0 for no limit."},
		{
			Name: "limits.answer", Type: Size, Default: `"100KB"`, Loosens: always,
			Doc: "Maximum text of a result for a model (call --format, --batch, serve); longer text is cut in the middle and saved to a file.",
		},
		{Name: "limits.spill", Type: Size, Default: `"1GiB"`, Loosens: always, Doc: "Maximum size of the file with a call's whole output."},
		{Name: "limits.tools", Type: Int, Default: "10000", Loosens: always, Doc: "Maximum number of tools of a source."},
		{Name: "limits.pages", Type: Int, Default: "100", Loosens: always, Doc: "Maximum number of pages of a server's listing."},
		{Name: "limits.description", Type: Size, Default: `"16KiB"`, Loosens: always, Doc: "Maximum length of a tool's description; the rest is cut off."},
		{Name: "limits.schema", Type: Size, Default: `"1MiB"`, Loosens: always, Doc: "Maximum size of a tool's schema."},
	}
}

func toolOptionFields() []Row {
	return []Row{
		{Name: "timeout", Type: Duration, Doc: "Time limit of a call."},
		{Name: "maxOutput", Type: Size, Doc: "Maximum output of a call; overrides limits.output; 0 for no limit."},
		{Name: "retries", Type: Int, Doc: "How many times a failed call is retried, if retrying is safe."},
		{Name: "retryDelay", Type: Duration, Doc: "Delay before the first retry, doubled each time; default 500ms."},
		{Name: "cache", Type: Duration, Doc: "How long a result may be reused, for tools that only read."},
		{Name: "log", Type: Choice, Choices: []string{"calls", "params", "none"}, Doc: "What is logged about its calls."},
	}
}

// foreignRows names the settings of the Gemini CLI, of both generations, that
// toolreg ignores, so that its file works unchanged.
func foreignRows() []Row {
	names := []string{
		"$schema", "accessibility", "admin", "adminPolicyPaths", "advanced", "agents", "autoAccept",
		"billing", "bugCommand", "chatCompression", "checkpointing", "contextFileName", "contextManagement",
		"customThemes", "customWittyPhrases", "debugKeystrokeLogging", "disableAutoUpdate",
		"disableLoadingPhrases", "disableUpdateNag", "dnsResolutionOrder", "enablePromptCompletion",
		"enforcedAuthType", "excludedProjectEnvVars", "experimental", "extensionManagement", "extensions",
		"fileFiltering", "folderTrust", "folderTrustFeature", "general", "hasSeenIdeIntegrationNudge",
		"hideBanner", "hideCWD", "hideFooter", "hideModelInfo", "hideSandboxStatus", "hideTips",
		"hideWindowTitle", "hooksConfig", "ide", "ideMode", "ideModeFeature", "includeDirectories",
		"loadMemoryFromIncludeDirectories", "maxSessionTurns", "memoryDiscoveryMaxDirs", "memoryImportFormat",
		"model", "modelConfigs", "output", "policyPaths", "preferredEditor", "privacy", "sandbox", "security",
		"selectedAuthType", "shouldUseNodePtyShell", "showCitations", "showLineNumbers", "showMemoryUsage",
		"skills", "skipNextSpeakerCheck", "summarizeToolOutput", "telemetry.enabled", "telemetry.logPrompts",
		"telemetry.otlpEndpoint", "telemetry.otlpProtocol", "telemetry.outfile", "telemetry.target",
		"telemetry.traces", "telemetry.useCliAuth", "telemetry.useCollector", "theme", "tools.autoAccept",
		"tools.disableLLMCorrection", "tools.enableHooks", "tools.enableMessageBusIntegration",
		"tools.enableToolOutputTruncation", "tools.sandbox", "tools.sandboxAllowedPaths",
		"tools.sandboxNetworkAccess", "tools.shell", "tools.truncateToolOutputLines",
		"tools.truncateToolOutputThreshold", "tools.useRipgrep", "ui", "usageStatisticsEnabled",
		"useExternalAuth", "useRipgrep", "useSmartEdit", "useWriteTodos", "vimMode",
	}
	rows := make([]Row, len(names))
	for i, name := range names {
		rows[i] = Row{Name: name, Type: Raw, Foreign: true}
	}
	return rows
}

func overrideFields() []Row {
	return []Row{
		{Name: "name", Type: String, Doc: "New name; the old one can no longer be called."},
		{Name: "displayName", Type: String, Doc: "Display name."},
		{Name: "description", Type: String, Doc: "Replaces its description."},
		{Name: "appendDescription", Type: String, Doc: "Text added to its description, after an empty line."},
		{Name: "category", Type: String, Doc: "read, write, command, network, other. A project can change only that of a server without trust."},
		{Name: "tags", Type: Strings, Doc: "Its tags."},
		{Name: "examples", Type: Objects, Strict: true, Fields: []Row{
			{Name: "description", Type: String, Doc: "What the example shows."},
			{Name: "params", Type: RawNamed, Doc: "Params of the call, under their overridden names."},
		}, Doc: "Its examples."},
		{Name: "hidden", Type: Bool, Doc: "Hide the tool: only composites can call it."},
		{Name: "params", Type: Named, Strict: true, Fields: overrideParamFields(), Doc: "Changes to its params, by their names in the source."},
		{Name: "result", Type: String, Doc: "jq expression over {content, structuredContent, isError} whose value is the result; 1 s at most."},
		{Name: "deferLoading", Type: Bool, Doc: "Whether the model has to search for the tool instead of seeing its declaration from the start."},
		{Name: "strict", Type: Bool, Doc: "Whether calls must match the schema exactly."},
		{Name: "inputExamples", Type: Raw, Doc: "List of example params: objects with the overridden names."},
		{Name: "cacheControl", Type: Object, Strict: true, Fields: []Row{
			{Name: "ttl", Type: Choice, Choices: []string{"5m", "1h"}, Doc: "Lifetime of the cache entry."},
		}, Doc: "Marks the declaration as the end of a cached prefix of the request."},
		{Name: "allowedCallers", Type: Strings, Doc: "Who may call the tool, in the provider's terms."},
		{Name: "outputSchema", Type: Raw, Doc: "true to declare its own output schema, false to declare none, or the schema to declare."},
		{Name: "eagerInputStreaming", Type: Bool, Doc: "Whether to stream params while the model generates them."},
		{Name: "async", Type: Bool, Doc: "Whether the model may go on before it has the result of a call."},
		{Name: "behavior", Type: Choice, Choices: []string{"BLOCKING", "NON_BLOCKING"}, Doc: "Behavior in Gemini's Live API."},
	}
}

func overrideParamFields() []Row {
	return []Row{
		{Name: "name", Type: String, Doc: "New name."},
		{Name: "description", Type: String, Doc: "Its description."},
		{Name: "default", Type: Raw, Doc: "Value that is declared as the default, and sent if a call omits the param."},
		{Name: "const", Type: Raw, Doc: "Value that is always sent; the param is not declared, and a call that sets it is invalid."},
		{Name: "hidden", Type: Bool, Doc: "Do not declare the param; a call that sets it is invalid. Its const or default is sent, if any."},
		{Name: "enum", Type: Raw, Doc: "List of the only values that it accepts."},
	}
}

func ruleFields() []Row {
	return []Row{
		{Name: "tool", Type: String, Names: Tools, Doc: "Name or glob of tools."},
		{Name: "source", Type: String, Names: Sources, Doc: "Source: builtin, plugin:ID, command, composite, mcp:SERVER, or a glob."},
		{Name: "server", Type: String, Names: Servers, Doc: "Name or glob of MCP servers."},
		{Name: "category", Type: String, Doc: "Category: read, write, command, network, other."},
		{Name: "annotations", Type: Object, Strict: true, Doc: "Annotations of the tool. A rule that allows by them must name the server.", Fields: []Row{
			{Name: "readOnlyHint", Type: Bool, Doc: "The tool says that it changes nothing."},
			{Name: "destructiveHint", Type: Bool, Doc: "The tool says that it may destroy something; by default true for tools of servers."},
			{Name: "idempotentHint", Type: Bool, Doc: "The tool says that repeating a call changes nothing more."},
			{Name: "openWorldHint", Type: Bool, Doc: "The tool says that it deals with the world outside; by default true for tools of servers."},
		}},
		{Name: "command", Type: String, Doc: "Prefix of a shell command, matched by whole words."},
		{Name: "path", Type: String, Doc: "Glob of paths."},
		{
			Name: "client", Type: String, Names: Others,
			Doc: "Name or glob of the callers: the names of tokens of serve, stdio, or local. Other calls do not match.",
		},
		{Name: "group", Type: String, Names: Others, Doc: "Name or glob of groups that the caller's token names (serve.oauth). Other calls do not match."},
		{Name: "prompt", Type: String, Names: Others, Doc: "Name or glob of prompts of servers. Such a rule applies only to prompts; its decision is allow, ask or deny."},
		{
			Name: "resource", Type: String, Names: Others,
			Doc: "URI or glob of resources of servers. Such a rule applies only to resources; its decision is allow, ask or deny.",
		},
		{
			Name: "when", Type: String,
			Doc: "A jq expression over the params that must return true. An error is treated as true for deny and ask, and as false for allow and sandbox.",
		},
		{
			Name: "decision", Type: Choice, Choices: []string{"allow", "sandbox", "ask", "deny"},
			Required: true,
			Doc:      "What to do. sandbox runs a program in the sandbox without asking, or asks if that is not possible.",
		},
		{Name: "reason", Type: String, Doc: "Shown with the decision."},
		{Name: "match", Type: Calls, Entry: callRow(), Doc: "Example calls that the rule must match: objects with tool and params, or shell lines."},
		{Name: "notMatch", Type: Calls, Entry: callRow(), Doc: "Example calls that the rule must not match."},
	}
}

// callRow is an example call that is an object.
func callRow() *Row {
	return &Row{Strict: true,
		Fields: []Row{{Name: "tool", Type: String, Required: true}, {Name: "params", Type: RawNamed}}}
}
