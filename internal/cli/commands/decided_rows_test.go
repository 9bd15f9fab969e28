package commands_test

import "fmt"

// The calls that the rows are about. Those of the person's server gh echo their text.
func readSecret() attempt { return attempt{"read_file", `{"file_path":"secret/key.txt"}`} }
func writeFile() attempt  { return attempt{"write_file", `{"file_path":"new.txt","content":"x"}`} }
func gitStatus() attempt  { return attempt{"run_shell_command", `{"command":"git status"}`} }
func echo() attempt       { return attempt{"run_shell_command", `{"command":"echo hello"}`} }
func ping() attempt       { return attempt{"ping", `{"text":"x"}`} }
func pong() attempt       { return attempt{"pong", `{"text":"x"}`} }
func danger() attempt     { return attempt{"danger", `{"text":"x"}`} }
func fetch() attempt      { return attempt{"web_fetch", `{"url":"API/page"}`} }

func calls(all ...attempt) []attempt { return all }

// sayings returns the rows: what a person can say.
func sayings() []saying {
	rule := func(rule string) string { return "policy: {rules: [{" + rule + "}]}" }
	return []saying{
		{what: "deny by name", settings: rule("tool: write_file, decision: deny"), calls: calls(writeFile())},
		{what: "deny by name and path", settings: rule(`tool: read_file, path: "secret/**", decision: deny`), calls: calls(readSecret())},
		{what: "deny by alias", settings: rule("tool: write, decision: deny"), calls: calls(writeFile())},
		{what: "deny by alias and path", settings: rule(`tool: ReadFileTool, path: "secret/**", decision: deny`), calls: calls(readSecret())},
		{what: "deny by path", settings: rule(`path: "secret/**", decision: deny`), calls: calls(readSecret())},
		{what: "deny by category", settings: rule("category: write, decision: deny"), calls: calls(writeFile())},
		{what: "deny by category and path", settings: rule(`category: read, path: "secret/**", decision: deny`), calls: calls(readSecret())},
		{what: "deny a command", settings: rule("tool: run_shell_command, command: git, decision: deny"), calls: calls(gitStatus())},
		{what: "deny a tool of a server by its name", settings: rule("tool: danger, decision: deny"), calls: calls(danger())},
		{what: "deny a tool of a server", settings: rule("server: gh, tool: danger, decision: deny"), calls: calls(danger())},
		{what: "deny a server", settings: rule("server: gh, decision: deny"), calls: calls(danger())},
		{what: "deny by a condition", settings: rule(`tool: danger, when: '.text == "x"', decision: deny`), calls: calls(danger())},
		{what: "only certain params", settings: "overrides: {danger: {params: {text: {enum: [y]}}}}", flags: []string{"--yes"}, calls: calls(danger())},
		{what: "ask by name", settings: rule("tool: read_file, decision: ask"), calls: calls(readSecret())},
		{what: "ask by category", settings: rule("category: command, decision: ask"), calls: calls(echo())},
		{what: "ask by alias and command", settings: rule("tool: bash, command: echo, decision: ask"), calls: calls(echo())},
		{what: "the defaults as they are", calls: calls(writeFile(), echo(), danger())},
		{what: "deny by default", settings: "policy: {defaults: {write: deny, command: deny}}", calls: calls(writeFile(), echo())},
		{what: "ask by default", settings: "policy: {defaults: {read: ask}}", calls: calls(readSecret())},
		{what: "plan mode", settings: "approvalMode: plan", calls: calls(writeFile(), echo(), danger())},
		{what: "plan mode by flag", flags: []string{"--approval-mode", "plan"}, calls: calls(writeFile(), danger())},
		{what: "banned commands", settings: "shell: {banned: [git]}", flags: []string{"--yes"}, calls: calls(gitStatus())},
		{what: "exclude by name", settings: "excludeTools: [write_file, danger]", calls: calls(writeFile(), danger())},
		{what: "exclude by alias", settings: "excludeTools: [write]", calls: calls(writeFile())},
		{what: "exclude a command", settings: `excludeTools: ["run_shell_command(git)"]`, calls: calls(gitStatus())},
		{what: "exclude a tool of a server", settings: "mcpServers: {gh: {httpUrl: GH, excludeTools: [danger]}}", calls: calls(danger())},
		{what: "only some built-in tools", settings: "coreTools: [read_file]", calls: calls(writeFile(), echo())},
		{what: "a permission that is off", settings: "permissions: {shell: false}", calls: calls(echo())},
		{what: "only some tools", settings: "tools: {only: [read_file, ping]}", calls: calls(writeFile(), danger())},
		{what: "a hook that denies", settings: `hooks: {beforeCall: [{tools: [write_file, danger], command: [echo, '{"decision":"deny"}']}]}`, flags: []string{"--yes"}, calls: calls(writeFile(), danger())},
		{what: "a hook that denies by alias", settings: `hooks: {beforeCall: [{tools: [write], command: [echo, '{"decision":"deny"}']}]}`, flags: []string{"--yes"}, calls: calls(writeFile())},
		{what: "a hook that denies by params", settings: `hooks: {beforeCall: [{tools: [danger], command: [sh, -c, 'grep -q text.:.x && echo "{\"decision\":\"deny\"}"; true']}]}`, flags: []string{"--yes"}, calls: calls(danger())},
		{what: "rules of a profile", settings: "serve: {profiles: {p: {rules: [{tool: danger, decision: deny}, {tool: write, decision: deny}]}}}", through: byServeWith("--profile", "p"), calls: calls(danger(), writeFile())},
		{what: "a profile for reading", settings: "serve: {profiles: {p: {category: [read]}}}", flags: []string{"--yes"}, through: byServeWith("--profile", "p"), calls: calls(danger(), writeFile())},
		{what: "a preset", flags: []string{"--preset", "read-only"}, calls: calls(writeFile(), echo())},

		{what: "only a tool, by its name", allows: true, settings: "tools: {only: [ping]}", flags: []string{"--yes"}, calls: calls(ping())},
		{what: "only tools, by a glob", allows: true, settings: `tools: {only: ["p?ng"]}`, flags: []string{"--yes"}, calls: calls(ping(), pong())},
		{what: "an optional tool", allows: true, settings: "tools: {allow: [rare]}\nplugins: {paths: [hers]}\n" + rule(`source: "plugin:hers", decision: allow`), before: optional("rare"), calls: calls(attempt{"rare", "{}"})},
		{what: "allow by a profile", allows: true, settings: "serve: {profiles: {p: {rules: [{tool: pong, decision: allow}]}}}", through: byServeWith("--profile", "p"), calls: calls(pong())},

		{what: "allow a tool by its name", allows: true, settings: "allowedTools: [pong, ping]", calls: calls(pong(), ping())},
		{what: "allow tools by a glob", allows: true, settings: `allowedTools: ["p*"]`, calls: calls(pong(), ping())},
		{what: "allow a tool by a rule", allows: true, settings: rule("tool: pong, decision: allow"), calls: calls(pong())},
		{what: "allow a tool of a server", allows: true, settings: rule("server: gh, tool: pong, decision: allow"), calls: calls(pong())},
		{what: "allow a tool by its server's name", allows: true, settings: "allowedTools: [gh__pong]", calls: calls(pong())},
		{what: "allow by a source", allows: true, settings: rule(`source: "mcp:gh", tool: pong, decision: allow`), calls: calls(pong())},
		{what: "allow a built-in tool", allows: true, settings: rule("tool: write_file, decision: allow"), calls: calls(writeFile())},
		{what: "allow built-in tools by a glob", allows: true, settings: rule(`tool: "write_*", decision: allow`), calls: calls(writeFile())},
		{what: "allow by path", allows: true, settings: rule(`category: write, path: "new.txt", decision: allow`), calls: calls(writeFile())},
		{what: "allow a command", allows: true, settings: `allowedTools: ["run_shell_command(echo)"]`, calls: calls(echo())},
		{what: "allow by default", allows: true, settings: "policy: {defaults: {write: allow}}", calls: calls(writeFile())},
		{what: "edits by mode", allows: true, settings: "approvalMode: auto-edit", calls: calls(writeFile())},
		{what: "trust a server", allows: true, covers: "mcp:gh ", settings: "mcpServers: {gh: {httpUrl: GH, trust: true}}", calls: calls(pong())},
		{what: "always allow a tool of a server", allows: true, before: always(pong()), calls: calls(pong())},
		{what: "always allow a command", allows: true, before: always(echo()), calls: calls(echo())},
		{what: "always allow a host", allows: true, settings: "fetch: {allowHosts: [127.0.0.1]}", before: always(fetch()), calls: calls(fetch())},
		{what: "always allow edits", allows: true, before: always(writeFile()), calls: calls(writeFile())},
	}
}

// optional gives the person a plugin with an optional tool.
func optional(name string) func(*world) {
	return func(w *world) {
		w.write("config/toolreg/hers/plugin.yaml", fmt.Sprintf("id: hers\ntools: [{name: %q, optional: true, command: [cat], parameters: {type: object}}]\n", name))
	}
}

// always answers "always" to the question about a call.
func always(a attempt) func(*world) {
	return func(w *world) {
		w.save()
		w.write("answer.yaml", `approval: {command: [echo, '{"choice":"always"}']}`)
		a.params = w.servers.expand(a.params)
		args, _ := byCall(w, a)
		w.run("", append([]string{"--settings", "../answer.yaml"}, args[:len(args)-1]...)...)
	}
}
