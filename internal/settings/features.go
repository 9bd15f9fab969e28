package settings

func featureRows() []setting {
	return []setting{
		{name: "shell.banned", typ: typeStrings, merge: mergeUnite, def: defaultBanned,
			doc: "Commands that run_shell_command refuses. A list of your own stands in place of the default; a project's adds to it."},
		{name: "shell.timeout", typ: typeDuration, def: `"` + defaultShellTimeout + `"`, loosens: whenLonger(defaultShellTimeout),
			doc: "Time limit of a shell command; 0 = none."},
		{name: "shell.maxTimeout", typ: typeDuration, def: `"` + defaultShellMaxTimeout + `"`, loosens: whenLonger(defaultShellMaxTimeout),
			doc: "Longest time limit that a call may ask for; 0 = any."},
		{name: "fetch.allowHosts", typ: typeStrings, loosens: whenFilled, doc: "Private hosts that web_fetch may reach: host or host:port."},
		{name: "fetch.processor", typ: typeCommand, doc: "Command that answers a prompt over fetched content."},
		{name: headersKey, typ: typeRawNamed, merge: mergeByName, secret: true,
			doc: "Headers by origin (https://host[:port]), sent to that origin alone. Values may be references."},
		{name: "fetch.proxy", typ: typeBool, def: "false", loosens: whenTrue,
			doc: "Fetch through the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name. The proxy then decides what a name stands for."},
		{name: "fetch.timeout", typ: typeDuration, def: `"` + defaultFetchTimeout + `"`, loosens: whenLonger(defaultFetchTimeout),
			doc: "Time limit of fetching a page, redirects included; 0 = none."},
		{name: "fetch.maxBytes", typ: typeSize, def: `"10MiB"`, loosens: always, doc: "What is read of a page, after decompression."},
		{name: "workspace.root", typ: typeString, loosens: always, doc: "Directory that file tools may touch; absent = the project root."},
		{name: "audit.enabled", typ: typeBool, def: "true", loosens: whenFalse, doc: "Log every call and refusal."},
		{name: "audit.maxSize", typ: typeSize, def: `"10MiB"`, loosens: always, doc: "Size at which the log is set aside and a new one begun."},
		{name: "audit.keep", typ: typeInt, def: "5", loosens: always, doc: "How many logs set aside are kept."},
		{name: "audit.params", typ: typeBool, def: "false", loosens: whenTrue, doc: "Log the params themselves, not only their hash."},
		{name: "display.images", typ: typeChoice, choices: []string{"auto", "kitty", "iterm2", "sixel", "never"}, def: `"auto"`,
			doc: "How images of results are shown on a terminal; auto reads from the environment what it knows."},
		{name: "serve.idle", typ: typeDuration, doc: "Time after which idle servers are closed; 0 = never."},
		{name: "limits.discoveryOutput", typ: typeSize, def: `"10MiB"`, loosens: always, doc: "Largest output of the discovery command."},
		{name: "limits.frame", typ: typeSize, def: `"16MiB"`, loosens: always, doc: "Largest message of an MCP server."},
		{name: "limits.result", typ: typeSize, def: `"64MiB"`, loosens: always, doc: "Largest result of a call."},
		{name: "limits.output", typ: typeSize, def: `"10MiB"`, loosens: always, doc: "Output of a call that is kept; the rest goes to a file."},
		{name: "limits.spill", typ: typeSize, def: `"1GiB"`, loosens: always, doc: "Largest file that holds the whole of a call's output."},
		{name: "limits.tools", typ: typeInt, def: "10000", loosens: always, doc: "Most tools of a source."},
		{name: "limits.pages", typ: typeInt, def: "100", loosens: always, doc: "Most pages of a server's listing."},
		{name: "limits.schema", typ: typeSize, def: `"1MiB"`, loosens: always, doc: "Largest schema of a tool."},
	}
}

// foreignRows names the settings of the Gemini CLI that have no meaning here,
// of both generations, so that its file works unchanged.
func foreignRows() []setting {
	names := []string{
		"$schema", "accessibility", "admin", "adminPolicyPaths", "advanced", "agents", "autoAccept", "billing", "bugCommand", "chatCompression",
		"checkpointing", "contextFileName", "contextManagement", "customThemes", "customWittyPhrases", "debugKeystrokeLogging",
		"disableAutoUpdate", "disableLoadingPhrases", "disableUpdateNag", "dnsResolutionOrder", "enablePromptCompletion",
		"enforcedAuthType", "excludedProjectEnvVars", "experimental", "extensionManagement", "extensions", "fileFiltering",
		"folderTrust", "folderTrustFeature", "general", "hasSeenIdeIntegrationNudge", "hideBanner", "hideCWD", "hideFooter",
		"hideModelInfo", "hideSandboxStatus", "hideTips", "hideWindowTitle", "hooksConfig", "ide", "ideMode", "ideModeFeature",
		"includeDirectories", "loadMemoryFromIncludeDirectories", "maxSessionTurns", "memoryDiscoveryMaxDirs", "memoryImportFormat",
		"model", "modelConfigs", "output", "policyPaths", "preferredEditor", "privacy", "sandbox", "security", "selectedAuthType",
		"shouldUseNodePtyShell", "showCitations", "showLineNumbers", "showMemoryUsage", "skills", "skipNextSpeakerCheck",
		"summarizeToolOutput", "telemetry", "theme", "tools.autoAccept", "tools.disableLLMCorrection",
		"tools.enableHooks", "tools.enableMessageBusIntegration", "tools.enableToolOutputTruncation", "tools.sandbox",
		"tools.sandboxAllowedPaths", "tools.sandboxNetworkAccess", "tools.shell", "tools.truncateToolOutputLines",
		"tools.truncateToolOutputThreshold", "tools.useRipgrep", "ui", "usageStatisticsEnabled", "useExternalAuth", "useRipgrep",
		"useSmartEdit", "useWriteTodos", "vimMode",
	}
	rows := make([]setting, len(names))
	for i, name := range names {
		rows[i] = setting{name: name, typ: typeRaw, foreign: true}
	}
	return rows
}
