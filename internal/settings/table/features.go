package table

func featureRows() []Row {
	return []Row{
		{Name: "shell.banned", Type: Strings, Merge: Unite, Default: defaultBanned,
			Doc: "Commands that run_shell_command refuses. A list of your own stands in place of the default; a project's adds to it."},
		{Name: "shell.catastrophic", Type: Choice, Choices: []string{"deny", "ask"}, Default: `"deny"`, Loosens: whenText("ask"),
			Doc: "What happens to a shell line that would ruin the machine whatever was meant: a recursive change of /, a system folder or home, a write to a disk, a fork bomb. ask is a question for a person, which --yes does not answer."},
		{Name: "shell.timeout", Type: Duration, Default: `"` + defaultShellTimeout + `"`, Loosens: whenLonger(defaultShellTimeout),
			Doc: "Time limit of a shell command; 0 = none."},
		{Name: "shell.maxTimeout", Type: Duration, Default: `"` + defaultShellMaxTimeout + `"`, Loosens: whenLonger(defaultShellMaxTimeout),
			Doc: "Longest time limit that a call may ask for; 0 = any."},
		{Name: "fetch.allowHosts", Type: Strings, Loosens: whenFilled, Doc: "Private hosts that web_fetch may reach: host or host:port."},
		{Name: "fetch.processor", Type: Command, Doc: "Command that answers a prompt over fetched content."},
		{Name: "fetch.headers", Type: RawNamed, Merge: ByName, Secret: true,
			Doc: "Headers by origin (https://host[:port]), sent to that origin alone. Values may be references."},
		{Name: "fetch.proxy", Type: Bool, Default: "false", Loosens: whenTrue,
			Doc: "Fetch through the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name. The proxy then decides what a name stands for."},
		{Name: "fetch.timeout", Type: Duration, Default: `"` + defaultFetchTimeout + `"`, Loosens: whenLonger(defaultFetchTimeout),
			Doc: "Time limit of fetching a page, redirects included; 0 = none."},
		{Name: "fetch.maxBytes", Type: Size, Default: `"10MiB"`, Loosens: always, Doc: "What is read of a page, after decompression."},
		{Name: "workspace.root", Type: String, Loosens: always, Doc: "Directory that file tools may touch; absent = the project root."},
		{Name: "audit.enabled", Type: Bool, Default: "true", Loosens: whenFalse, Doc: "Log every call and refusal."},
		{Name: "audit.maxSize", Type: Size, Default: `"10MiB"`, Loosens: always, Doc: "Size at which the log is set aside and a new one begun."},
		{Name: "audit.keep", Type: Int, Default: "5", Loosens: always, Doc: "How many logs set aside are kept."},
		{Name: "audit.params", Type: Bool, Default: "false", Loosens: whenTrue, Doc: "Log the params themselves, not only their hash."},
		{Name: "display.images", Type: Choice, Choices: []string{"auto", "kitty", "iterm2", "never"}, Default: `"auto"`,
			Doc: "How images of results are shown on a terminal; auto reads from the environment what it knows."},
		{Name: "serve.idle", Type: Duration, Doc: "Time after which idle servers are closed; 0 = never."},
		{Name: "limits.discoveryOutput", Type: Size, Default: `"10MiB"`, Loosens: always, Doc: "Largest output of the discovery command."},
		{Name: "limits.frame", Type: Size, Default: `"16MiB"`, Loosens: always, Doc: "Largest message of an MCP server."},
		{Name: "limits.result", Type: Size, Default: `"64MiB"`, Loosens: always, Doc: "Largest result of a call."},
		{Name: "limits.output", Type: Size, Default: `"10MiB"`, Loosens: always, Doc: "Output of a call that is kept; the rest goes to a file."},
		{Name: "limits.spill", Type: Size, Default: `"1GiB"`, Loosens: always, Doc: "Largest file that holds the whole of a call's output."},
		{Name: "limits.tools", Type: Int, Default: "10000", Loosens: always, Doc: "Most tools of a source."},
		{Name: "limits.pages", Type: Int, Default: "100", Loosens: always, Doc: "Most pages of a server's listing."},
		{Name: "limits.description", Type: Size, Default: `"16KiB"`, Loosens: always, Doc: "Longest description of a tool; the rest is cut off."},
		{Name: "limits.schema", Type: Size, Default: `"1MiB"`, Loosens: always, Doc: "Largest schema of a tool."},
	}
}

func toolOptionFields() []Row {
	return []Row{
		{Name: "timeout", Type: Duration, Doc: "Time limit of a call."},
		{Name: "maxOutput", Type: Size, Doc: "Output of a call that is kept, in place of limits.output."},
		{Name: "retries", Type: Int, Doc: "How often a failed call is repeated, where repeating is safe."},
		{Name: "retryDelay", Type: Duration, Doc: "Wait before the first repetition, doubled with each; default 500ms."},
		{Name: "cache", Type: Duration, Doc: "How long a result may be given again, of tools that only read."},
		{Name: "log", Type: Choice, Choices: []string{"calls", "params", "none"}, Doc: "What of its calls is logged."},
	}
}

// foreignRows names the settings of the Gemini CLI that have no meaning here,
// of both generations, so that its file works unchanged.
func foreignRows() []Row {
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
	rows := make([]Row, len(names))
	for i, name := range names {
		rows[i] = Row{Name: name, Type: Raw, Foreign: true}
	}
	return rows
}
