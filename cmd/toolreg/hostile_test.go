//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/provider"
)

// nasty is the text that a hostile source puts wherever it can: it sets the clipboard,
// clears the screen, hides text, reverses a line, has invisible characters, and writes
// over a line.
const nasty = "N\x1b]52;c;eA==\a\x1b[2J\x1b[8m\u009b2J\u202e\u115f\u200b\U000e0041\rX"

// hostile returns the arguments with which each command is run. They cover all output
// about tools, servers, plugins and files that others made.
func hostile() map[string][][]string {
	schema := make([][]string, 0, 20)
	for _, f := range provider.Formats() {
		schema = append(schema, []string{"--format", f.Name})
	}
	call := [][]string{{"evil", "--help"}, {"evil_plugin", "--help"}, {"evil", "--yes"}, {"evil", "--yes", "--stream"}, {"evil_plugin"}, {"evil_plugin", "--stream"}, {"evil_command"}, {"evil"}, {"no" + nasty},
		{"evil", "--params", `{"` + nasty + `":1}`}, {"read_file", "file_path=evil.txt"}, {"read_file", "file_path=no" + nasty}, {"list_directory", "path=."}}
	return map[string][][]string{
		"approvals": {{}}, "approvals clear": {{}}, "approvals list": {{}, {"--all"}}, "approvals revoke": {{"no" + nasty}}, "approvals pending": {{}, {"--all"}}, "approvals answer": {{"no" + nasty, "yes"}, {"a", "no" + nasty}},
		"audit": {{}}, "call": call, "discover": {{}, {"no" + nasty}}, "doctor": {{}}, "init": {{}},
		"keep-background": {{}}, "evaluate-expression": {{}}, "execute-script": {{}}, "run": {{"no" + nasty}, {"-"}}, "list": {{}, {"--all"}, {"evil"}, {"evil_plugin", "--examples"}, {"--html", "page.html"}, {"--cost"}, {"no" + nasty}},
		"lock": {{}, {"--check"}}, "plugins check": {{"plugins/evil"}, {"no" + nasty}}, "plugins list": {{}}, "plugins": {{}},
		"plugins new": {{"no" + nasty}}, "plugins schema": {{}},
		"policy": {{}}, "policy export": {{"claude"}, {"codex"}, {"no" + nasty}}, "policy import": {{"claude"}, {"claude", "no" + nasty}, {"claude", "evil.json"}, {"no" + nasty}},
		"rpc":   {{}, {"--schema"}, {"--typescript"}, {"--preset", "no" + nasty}},
		"serve": {{}, {"--http", "no" + nasty}, {"--print-config", "no" + nasty}}, "serve token": {{"alice"}, {"no" + nasty}},
		"schema":  append(schema, []string{"--lint"}, []string{"--explain"}, []string{"no" + nasty}),
		"servers": {{}, {"--prompts"}, {"--resources"}}, "servers list": {{}}, "servers add": {{"no" + nasty, "x"}}, "servers add-json": {{"no" + nasty, nasty}}, "servers disable": {{"no" + nasty}},
		"servers check": {{"evil"}, {"--all"}, {"no" + nasty}}, "servers find": {{"no" + nasty}}, "servers outdated": {{}}, "servers upgrade": {{"evil"}, {"no" + nasty}},
		"servers enable": {{"no" + nasty}}, "servers login": {{"evil"}, {"no" + nasty}}, "servers logout": {{"evil"}},
		"servers prompt": {{"evil", "greet"}, {"evil", "no" + nasty}}, "servers read": {{"evil", "test://one"}, {"evil", "no" + nasty}},
		"servers remove": {{"no" + nasty}}, "servers edit": {{"no" + nasty}}, "servers import": {{"no" + nasty}}, "servers test": {{"evil"}, {"no" + nasty}},
		"servers start": {{"evil"}, {"no" + nasty}}, "servers stop": {{"no" + nasty}, {"--all"}}, "servers restart": {{"evil"}, {"no" + nasty}}, "keep-server": {{}},
		"search": {{"evil"}, {nasty}}, "settings edit": {{}}, "settings set": {{"no" + nasty, nasty}}, "settings unset": {{"no" + nasty}}, "settings path": {{}}, "settings schema": {{}}, "settings show": {{}}, "settings": {{}},
		"stats": {{}}, "tasks": {{}, {"no" + nasty}}, "tasks cancel": {{"no" + nasty}}, "trust": {{}}, "trust grant": {{}}, "trust revoke": {{}}, "trust status": {{}},
		"complete": {{"zsh", "call", ""}, {"fish", "call", "evil", ""}, {"bash", "toolreg list --tag ", "63", "80", "="}}, "completion": {{"bash"}, {"no" + nasty}},
		"cache": {{}}, "cache list": {{}}, "cache clear": {{}}, "version": {{}}, "why": {{"evil"}, {"run_shell_command", "command=echo " + nasty}},
	}
}

// A server, a plugin, a discovery command and a project put escape sequences into all
// their texts. No command writes them to a terminal, nor to a pipe, except as the bytes of
// a result.
func TestForeignTextIsEscaped(t *testing.T) {
	t.Parallel()
	commandLines := hostile()
	for _, path := range leaves() {
		if _, ok := commandLines[path]; !ok {
			t.Errorf("this test does not run %s", path)
		}
	}
	dir, command := inProject(t, "-v", "--trust-project", "--settings", "s.yaml")
	writeHostile(t, dir)
	for path, lines := range commandLines {
		t.Run(path, func(t *testing.T) {
			for _, line := range lines {
				argv := slices.Concat(strings.Fields(path), line)
				shown, _ := atTerminal(atHostile(command(argv...)), nil)
				checkShown(t, argv, "terminal", shown)
				shown, _ = atTerminal(atHostile(command(append(argv, "--json")...)), nil)
				checkShown(t, append(argv, "--json"), "terminal", shown)
				out, errOut := piped(t, atHostile(command(argv...)))
				checkShown(t, argv, "stderr", errOut)
				if path != "call" && path != "servers read" && path != "servers prompt" { // their stdout is the result
					checkShown(t, argv, "stdout", out)
				}
			}
		})
	}
	out, errOut := piped(t, command("call", "evil", "--yes"))
	if !strings.Contains(out, nasty) {
		t.Errorf("the server is not hostile: %q\n%s", out, errOut)
	}
}

// leaves returns the path of every command that can be run.
func leaves() []string {
	var out []string
	eachCommand(func(path string, c *cobra.Command) {
		if c.Runnable() {
			out = append(out, path)
		}
	})
	return out
}

// atHostile sets the environment of cmd. Its stdin stays empty.
func atHostile(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, "TERM=xterm", "PAGER=cat", "EDITOR=true", "GORACE=atexit_sleep_ms=0")
	return cmd
}

func piped(t *testing.T, cmd *exec.Cmd) (out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String()
}

// drawn matches the sequences that toolreg itself writes: styles, and the erasing of live
// lines.
var drawn = regexp.MustCompile(`\x1b\[([0-79]|3[1-6])(;([0-79]|3[1-6]))*m|(\x1b\[1A\x1b\[2K)+\r`)

// checkShown reports characters that are invisible or that move the cursor.
func checkShown(t *testing.T, argv []string, where, shown string) {
	t.Helper()
	if strings.Contains(shown, "panic:") || strings.Contains(shown, "SIGQUIT:") || strings.Contains(shown, "DATA RACE") {
		t.Errorf("%q: %s", argv, shown)
	}
	for line := range strings.Lines(drawn.ReplaceAllString(shown, "")) {
		for _, r := range strings.TrimSuffix(line, "\n") {
			if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || r == '\u115f' || r == unicode.ReplacementChar) {
				t.Errorf("%q: %U on %s in %q", argv, r, where, line)
				break
			}
		}
	}
}

// writeHostile creates a project whose sources and files are hostile.
func writeHostile(t *testing.T, dir string) {
	t.Helper()
	quoted, err := json.Marshal(nasty)
	if err != nil {
		t.Fatal(err)
	}
	q := string(quoted)
	answer := func(result string) []string { return []string{`{"jsonrpc":"2.0","id":$ID,"result":` + result + `}`} }
	log := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":` + q + `,"data":` + q + `}}`
	steps := []map[string]any{
		{"On": "start", "Stderr": nasty + "\n", "Print": []string{"noise " + nasty}},
		{"On": "server/discover", "Print": []string{`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":` + q + `}}`}},
		{"On": "initialize", "Print": answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{},"logging":{}},"serverInfo":{"name":` + q + `,"version":` + q + `,"title":` + q + `},"instructions":` + q + `}`)},
		{"On": "tools/list", "Print": append(answer(`{"tools":[`+
			`{"name":"evil","title":`+q+`,"description":`+q+`,"annotations":{"title":`+q+`},"inputSchema":{"type":"object","description":`+q+`,"properties":{"a":{"type":"string","description":`+q+`,"enum":[`+q+`,"b"],"default":`+q+`,"title":`+q+`},`+q+`:{"type":"number","pattern":`+q+`}}},"outputSchema":{"type":"object","description":`+q+`}},`+
			`{"name":`+q+`,"description":"odd","inputSchema":{"type":"object"}},{"name":"bad","inputSchema":`+q+`}]}`), log)},
		{"On": "prompts/list", "Print": answer(`{"prompts":[{"name":"greet","title":` + q + `,"description":` + q + `},{"name":` + q + `}]}`)},
		{"On": "prompts/get", "Print": answer(`{"description":` + q + `,"messages":[{"role":"user","content":{"type":"text","text":` + q + `}}]}`)},
		{"On": "resources/list", "Print": answer(`{"resources":[{"uri":"test://one","name":` + q + `,"title":` + q + `,"description":` + q + `,"mimeType":` + q + `}]}`)},
		{"On": "resources/templates/list", "Print": answer(`{"resourceTemplates":[{"uriTemplate":"test://{x}","name":` + q + `,"description":` + q + `}]}`)},
		{"On": "resources/read", "Print": answer(`{"contents":[{"uri":` + q + `,"mimeType":` + q + `,"text":` + q + `}]}`)},
		{"On": "tools/call", "Print": append([]string{log}, answer(`{"content":[{"type":"text","text":`+q+`},{"type":"resource_link","uri":`+q+`,"name":`+q+`}],"isError":false}`)...)},
	}
	script, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	declaration := `[{"name":"evil_command","description":` + q + `,"parameters":{"type":"object","properties":{"a":{"type":"string","description":` + q + `}}}},{"name":` + q + `},` + q + `]`
	q = strconv.QuoteToASCII(nasty) // which YAML reads too
	files := map[string]string{
		"steps.json": string(script),
		"evil.txt":   nasty + "\n",
		"evil.json":  `{"permissions":{"allow":[` + q + `,"Bash(` + strconv.Quote(nasty)[1:5] + `)",1],"deny":["Read(` + "\u202e" + `)"],` + q + `:1}}`,
		"found.json": declaration,
		nasty:        "",
		"found.sh":   "#!/bin/sh\ncat nasty.txt >&2\ncat found.json\n",
		"call.sh":    "#!/bin/sh\ncat nasty.txt nasty.txt >&2\ncat nasty.txt\nexit 3\n",
		"nasty.txt":  nasty + "\n",
		"s.yaml": `
registries: ["http://127.0.0.1:1"]
toolDiscoveryCommand: [./found.sh]
toolCallCommand: [./call.sh]
mcpServers:
  evil: {command: mcp-testserver, args: [--steps, steps.json], description: ` + q + `}
  dead: {command: sh, args: [-c, 'printf "%s\n" "$0" >&2; exit 3', ` + q + `]}
  gone: {command: ` + q + `}
plugins: {paths: [plugins]}
composites:
  evil_composite: {description: ` + q + `, steps: [{tool: evil, params: "{b}"}]}
policy:
  rules:
    - {tool: evil_rule, decision: deny, reason: ` + q + `}
    - {tool: run_shell_command, decision: deny, reason: ` + q + `}
` + q + `: 1
`,
		"plugins/evil/plugin.yaml": `
id: evil
author: ` + q + `
description: ` + q + `
tools:
  - {name: evil_plugin, category: read, isOutputMarkdown: true, description: ` + q + `, tags: [` + q + `], version: 1.0.0, command: [sh, -c, 'cat ../../nasty.txt; cat ../../nasty.txt >&2'], examples: [{description: ` + q + `, params: {a: ` + q + `}}], parameters: {type: object, properties: {a: {type: string, description: ` + q + `}}}}
`,
		"plugins/worse/plugin.yaml":   "id: worse\n" + q + ": 1\ntools: " + q + "\n",
		"plugins/screams/plugin.yaml": "id: screams\nfactory: [sh, -c, 'cat ../../nasty.txt >&2; exit 3']\ncall: [cat]\n",
		".toolreg/settings.yaml":      "toolDiscoveryCommand: [" + q + "]\nenv: {A: " + q + "}\n",
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o777); err != nil {
			t.Fatal(fmt.Errorf("writing %q: %w", name, err))
		}
	}
}
