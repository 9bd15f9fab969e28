package layers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// problemsOf returns the mistakes in text as the settings file of the given name.
func problemsOf(name, text string) []string {
	l := Read(table.NewIndex(), ScopeUser, name, []byte(text))
	out := []string{}
	for _, p := range l.Mistakes() {
		out = append(out, p.String())
	}
	return out
}

func TestMistakesHavePositions(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             []string
	}{
		{"all mistakes at once", "s.yaml", "coreTools: read_file\nenv: {A: 5}\napprovalMode: yes\n", []string{
			"s.yaml:1:12: coreTools: expected a list of strings, got string",
			"s.yaml:2:10: env.A: expected a string, got number (put it in quotes)",
			`s.yaml:3:15: approvalMode: unknown value "yes" (one of default, auto-edit, plan, yolo)`,
		}},
		{"the same in JSON", "s.json", "{\n  // note\n  \"coreTools\": \"read_file\",\n  \"env\": {\"A\": 5},\n}", []string{
			"s.json:3:16: coreTools: expected a list of strings, got string",
			"s.json:4:16: env.A: expected a string, got number (put it in quotes)",
		}},
		{"columns count characters", "s.json", `{"env": {"ÄÖÜ": 5}}`, []string{
			"s.json:1:17: env.ÄÖÜ: expected a string, got number (put it in quotes)",
		}},
		{"duplicate key", "s.yaml", "inheritEnv: true\ninheritEnv: false\n", []string{
			`s.yaml:2:1: duplicate key "inheritEnv", first on line 1 (keep one of them)`,
		}},
		{"duplicate key in JSON", "s.json", "{\"mcpServers\": {\n\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}", []string{
			`s.json:3:1: duplicate key "a", first on line 2 (keep one of them)`,
		}},
		{"twins of one setting", "s.yaml", "coreTools: [edit]\ntools:\n  core: [read_file]\n", []string{
			"s.yaml:3:3: tools.core is already set as coreTools on line 1 (keep one of them)",
		}},
		{"tag", "s.yaml", "inheritEnv: !!bool true\nenv: !go/struct {A: b}\n", []string{
			"s.yaml:1:13: YAML tags such as !!bool are not supported (quote text, write numbers and booleans plainly)",
			"s.yaml:2:6: YAML tags such as !go/struct are not supported (quote text, write numbers and booleans plainly)",
		}},
		{"merge key", "s.yaml", "mcpServers:\n  a: &a {command: x}\n  b:\n    <<: *a\n", []string{
			"s.yaml:4:5: merge keys (<<) are not supported (write out the members, or use an alias as the whole value)",
			"s.yaml:4:5: mcpServers.b: needs a command, a url or an httpUrl",
		}},
		{"two documents", "s.yaml", "inheritEnv: true\n---\ninheritEnv: false\n", []string{
			"s.yaml:2:1: a second YAML document (keep one document; the rest would be ignored)",
		}},
		{"alias in its own anchor", "s.yaml", "context: &a\n  x: *a\n", []string{"s.yaml:2:6: alias *a is used inside its own anchor"}},
		{"no is a string, not false", "s.yaml", "inheritEnv: no\n", []string{
			"s.yaml:1:13: inheritEnv: expected true or false, got string (write true or false without quotes)",
		}},
		{"octal", "s.yaml", "toolDiscoveryTimeout: 010\n", []string{
			"s.yaml:1:23: 010 is not a decimal number (write it in decimal, or quote it if it is text)",
		}},
		{"underscores", "s.yaml", "limits: {tools: 1_000}\n", []string{
			"s.yaml:1:17: 1_000 is not a decimal number (write it in decimal, or quote it if it is text)",
			"s.yaml:1:17: limits.tools: expected an integer, 0 or more",
		}},
		{"large integer", "s.yaml", "scripts: {steps: 10000000000000000000}\n", []string{"s.yaml:1:18: scripts.steps: expected an integer of at most 9007199254740992"}},
		{"duration without unit", "s.yaml", "toolDiscoveryTimeout: \"30\"\n", []string{
			`s.yaml:1:23: toolDiscoveryTimeout: expected whole milliseconds or a duration such as "30s", 0 or more`,
		}},
		{"negative duration", "s.yaml", "shell: {timeout: -1s}\n", []string{
			`s.yaml:1:18: shell.timeout: expected whole milliseconds or a duration such as "30s", 0 or more`,
		}},
		{"overflowing duration", "s.json", `{"toolDiscoveryTimeout": 9223372036854775807}`, []string{
			`s.json:1:26: toolDiscoveryTimeout: expected whole milliseconds or a duration such as "30s", 0 or more`,
		}},
		{"tab", "s.yaml", "shell:\n\ttimeout: 5\n", []string{"s.yaml:2:1: invalid YAML: found character that cannot start any token (indent with spaces; YAML does not allow tabs)"}},
		{"glob without quotes", "s.yaml", "policy:\n  rules:\n    - {tool: edit, path: **/x.md, decision: deny}\n", []string{
			"s.yaml:3:1: invalid YAML: did not find expected alphabetic or numeric character (put text that begins with * or & in quotes)",
		}},
		{"name without quotes", "s.yaml", "excludeTools:\n  - *fetch\n", []string{
			"s.yaml:2:1: invalid YAML: unknown anchor 'fetch' referenced (put text that begins with * or & in quotes)",
		}},
		{"colon in a line", "s.yaml", "policy:\n  rules:\n    - {tool: edit, reason: a: b}\n\nenv: {}\n", []string{
			`s.yaml:3:1: invalid YAML: did not find expected ',' or '}' (close every bracket, and put text that contains ": " in quotes)`,
		}},
		{"indentation", "s.yaml", "policy:\n  rules:\n    - tool: edit\n     decision: deny\nenv: {}\n", []string{
			"s.yaml:4:1: invalid YAML: did not find expected '-' indicator (begin what belongs together at the same column; inside '…', write '' for ')",
		}},
		{"second document", "s.yaml", "env: {}\n---\nenv: [b\n", []string{
			`s.yaml:3:1: invalid YAML: did not find expected ',' or ']' (close every bracket, and put text that contains ": " in quotes)`,
		}},
		{"condition that there is not", "s.yaml", "policy:\n  rules:\n    - {tool: web_fetch, url: x, decision: deny}\n", []string{
			`s.yaml:3:25: unknown setting "policy.rules[0].url" (policy.rules[0] has the keys tool, source, server, category, annotations, command, path, client, group, prompt, resource, when, decision, reason, match, notMatch)`,
		}},
		{"not UTF-8", "s.yaml", "env:\n  A: \"\xff\"\n", []string{"s.yaml:2:1: the file is not valid UTF-8 (save it as UTF-8)"}},
		{"NUL", "s.json", `{"toolCallCommand": ["a\u0000b"]}`, []string{"s.json:1:22: a string contains a NUL character"}},
		{"a list at the top", "s.yaml", "- a\n", []string{"s.yaml:1:1: expected an object, got list"}},
		{"JSON that ends too early", "s.json", "{\n \"env\": [ // x\n\n", []string{"s.json:2:15: invalid JSON: unexpected end of the file"}},
		{"at sign", "s.yaml", "env: @x\n", []string{"s.yaml:1:1: invalid YAML: found character that cannot start any token (put text that begins with @, % or ` in quotes)"}},
		{"trailing text in JSON", "s.json", "{}\nx", []string{"s.json:2:1: invalid JSON: text after the JSON value (a file has one object; remove what follows it)"}},
		{"broken YAML", "s.yaml", "a: [1\nb: 2\n", []string{"s.yaml:1:1: invalid YAML: did not find expected ',' or ']'"}},
		{"shell operators", "s.yaml", "toolDiscoveryCommand: ./a | ./b\n", []string{"s.yaml:1:23: toolDiscoveryCommand: the command contains shell syntax"}},
		{"empty program", "s.yaml", "toolCallCommand: ['', x]\n", []string{"s.yaml:1:19: toolCallCommand: the program's name is empty"}},
		{"malformed globs", "s.yaml", "excludeTools: ['[a', 'sh([ x)']\nhooks: {beforeCall: [{command: x, tools: ['{a']}]}\n",
			[]string{`s.yaml:1:16: excludeTools: "[a" is not a valid glob`, `s.yaml:2:43: hooks.beforeCall[0].tools: "{a" is not a valid glob`}},
		{"server with a malformed glob", "s.yaml", "mcpServers:\n  a: {command: x, excludeTools: ['[a']}\n", []string{"s.yaml:2:34: mcpServers.a.excludeTools: \"[a\" is not a valid glob"}},
		{"server without a way to reach it", "s.yaml", "mcpServers:\n  a: {args: [x]}\n", []string{"s.yaml:2:6: mcpServers.a: needs a command, a url or an httpUrl"}},
		{"server with a blank command", "s.yaml", "mcpServers:\n  a: {command: '  '}\n", []string{"s.yaml:2:6: mcpServers.a: needs a command, a url or an httpUrl"}},
		{"logins of clients without a browser", "s.yaml", "mcpServers:\n  a: {url: 'http://h', oauth: {per: client, grant: client_credentials}}\n", []string{"s.yaml:2:6: mcpServers.a: oauth.per: client needs a url, and the grant authorization_code"}},
		{"logins of clients to a program", "s.yaml", "mcpServers:\n  a: {command: x, oauth: {per: client}}\n", []string{"s.yaml:2:6: mcpServers.a: oauth.per: client needs a url"}},
		{"expression without quotes", "s.yaml", "composites:\n  a: {result: {n: .n}}\n", []string{"s.yaml:2:15: composites.a.result: expected a string, got object (text in braces, such as a jq expression, needs quotes)"}},
		{"command of another type", "s.yaml", "mcpServers:\n  a: {command: 5}\n", []string{"s.yaml:2:16: mcpServers.a.command: expected a string, got number (put it in quotes)"}},
		{"server that is null", "s.yaml", "mcpServers:\n  a:\n", []string{"s.yaml:2:5: mcpServers.a: expected an object, got null"}},
		{"address of another kind", "s.yaml", "mcpServers:\n  a: {url: 'file:///etc/passwd'}\n", []string{"s.yaml:2:6: mcpServers.a: the URL must begin with http:// or https:// and name a host"}},
		{"header injection", "s.json", `{"mcpServers": {"a": {"url": "http://h/", "headers": {"X": "a\r\nY: b", "B c": "d"}}}}`, []string{
			"s.json:1:60: mcpServers.a.headers: the value of header X contains a control character",
			`s.json:1:73: mcpServers.a.headers: "B c" is not a valid header name`,
		}},
		{"variable with =", "s.yaml", "env: {'A=B': c}\n", []string{`s.yaml:1:7: env: "A=B" is not a valid variable name`}},
		{"headers of telemetry", "s.yaml", "telemetry:\n  headers: {'A b': c, A: \"b\\r\\nX: 1\"}\n", []string{
			`s.yaml:2:13: telemetry.headers: "A b" is not a valid header name`,
			"s.yaml:2:26: telemetry.headers: the value of header A contains a control character",
		}},
		{"addresses of registries", "s.yaml", "registries: ['http://a.example', 5, {url: 'https://a.example?q'}, {url: 5}, {}]\n", []string{
			"s.yaml:1:14: registries[0]: ",
			"s.yaml:1:34: registries[1]: expected an address, or an object with url and headers, got number",
			"s.yaml:1:43: registries[2].url: its address has a query or a fragment",
			"s.yaml:1:73: registries[3].url: expected a string, got number (put it in quotes)",
			"s.yaml:1:77: registries[4]: url is missing",
		}},
		{"rule without decision", "s.yaml", "policy:\n  rules:\n    - tool: edit\n", []string{"s.yaml:3:7: policy.rules[0]: decision is missing"}},
		{"unknown key in a rule", "s.yaml", "policy: {rules: [{decision: allow, tol: a, zzzzzz: 1}]}\n", []string{
			`s.yaml:1:36: unknown setting "policy.rules[0].tol" (did you mean "policy.rules[0].tool"?)`,
			`s.yaml:1:44: unknown setting "policy.rules[0].zzzzzz"`,
		}},
		{"empty condition of a rule", "s.yaml", "policy:\n  rules:\n    - decision: allow\n      tool:\n      server: ' '\n", []string{
			"s.yaml:4:7: policy.rules[0].tool is empty (give it a value or remove it)",
			"s.yaml:5:7: policy.rules[0].server is empty (give it a value or remove it)",
		}},
		{"hooks", "s.yaml", "hooks:\n  afterCall:\n  - command: []\n  - {command: ['', x]}\n  - {command: x, timeout: 0}\n  - {command: x, timeout: 2h, tools: [a]}\n  - {command: x, timeout: 1h}\n", []string{
			"s.yaml:3:5: hooks.afterCall[0].command is empty (give it a value or remove it)",
			"s.yaml:4:16: hooks.afterCall[1].command: the program's name is empty",
			"s.yaml:5:27: hooks.afterCall[2].timeout: must be a duration of more than 0, at most 1h (such as 5s)",
			"s.yaml:6:27: hooks.afterCall[3].timeout: must be a duration of more than 0, at most 1h (such as 5s)",
		}},
		{"group that is not an object", "s.yaml", "tools: [a]\n", []string{"s.yaml:1:8: tools: expected an object, got list"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := problemsOf(test.file, test.text)
			if len(got) != len(test.want) {
				t.Fatalf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]) {
					t.Errorf("problem %d = %s\nwant %s", i, got[i], test.want[i])
				}
			}
		})
	}
}

func TestOversizedDocumentsAreRefused(t *testing.T) {
	bomb := "context:\n  a0: &a0 [x, x]\n"
	for i := 1; i < 40; i++ {
		bomb += fmt.Sprintf("  a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	tests := []struct{ name, file, text, want string }{
		{"aliases", "s.yaml", bomb, "more than 100000 values"},
		{"deep JSON", "s.json", strings.Repeat("[", 1<<20), "nested deeper than 64 levels"},
		{"deep JSON behind a comment", "s.json", "/* \" */ {\"x\": " + strings.Repeat("[", 100), "nested deeper than 64 levels"},
		{"deep YAML", "s.yaml", "context: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper than 64 levels"},
		{"many values", "s.json", `{"coreTools": [` + strings.Repeat("1,", 200_000) + "1]}", "more than 100000 values"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := problemsOf(test.file, test.text)
			if !strings.Contains(strings.Join(got, "\n"), test.want) {
				t.Errorf("problems %.300q, want one with %q", got, test.want)
			}
		})
	}
}

func TestBracketsInStringsAndCommentsDoNotNest(t *testing.T) {
	brackets := strings.Repeat("[", 200)
	text := "{ // " + brackets + "\n/*" + brackets + "*/ \"env\": {\"A\": \"\\\"" + brackets + "\"}}"
	if got := problemsOf("s.json", text); len(got) > 0 {
		t.Errorf("problems %q, want none", got)
	}
}

func TestValidForms(t *testing.T) {
	tests := []struct{ name, file, text string }{
		{"empty YAML", "s.yaml", ""},
		{"only a comment", "s.yaml", "# nothing yet\n"},
		{"empty JSON", "s.json", " \n"},
		{"null", "s.json", "null"},
		{"BOM", "s.json", "\ufeff{\"inheritEnv\": true}"},
		{"BOM in YAML", "s.yaml", "\ufeffinheritEnv: true\n"},
		{"CRLF", "s.yaml", "inheritEnv: true\r\nenv:\r\n  A: b\r\n"},
		{"null is not set", "s.yaml", "mcpServers:\ncoreTools: null\ntools:\n"},
		{"aliases", "s.yaml", "mcpServers:\n  a: {command: x, env: &e {A: b}}\n  b: {command: y, env: *e}\n"},
		{"dates are text", "s.yaml", "env: {DAY: 2026-01-02}\n"},
		{"escaped slash", "s.json", `{"mcpServers": {"a": {"url": "https:\/\/h\/x"}}}`},
		{"disabled server needs nothing", "s.yaml", "mcpServers: {a: {disabled: true}}\n"},
		{"address with variables", "s.yaml", "mcpServers: {a: {url: $BASE/mcp}}\n"},
		{"commands as lists", "s.yaml", "toolDiscoveryCommand: [sh, -c, './a | ./b']\n"},
		{"empty command switches off", "s.yaml", "toolDiscoveryCommand: ''\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{}, problemsOf(test.file, test.text)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessagesEscapeInvisibleCharacters(t *testing.T) {
	got := problemsOf("s.yaml", "env: {\"a\\e[2J\\u202Eé\": 5}\n")
	want := `s.yaml:1:24: env.a\x1b[2J\u202eé: expected a string, got number (put it in quotes)`
	if len(got) != 1 || got[0] != want {
		t.Errorf("problems %q, want %q", got, want)
	}
}

func TestCheckFileReportsPositions(t *testing.T) {
	diags, err := CheckFile("s.yaml", []byte("shell:\n  timeout: soon\naprovalMode: plan\nmcpServers:\n  a: {args: [x]}\n"))
	bad, ok := errors.AsType[*document.Error](err)
	if !ok || len(bad.Problems) != 2 || !strings.HasPrefix(err.Error(), "s.yaml:2:12: shell.timeout: ") || !strings.Contains(err.Error(), "\ns.yaml:5:6: mcpServers.a: ") {
		t.Errorf("error %v", err)
	}
	if len(diags) != 1 || diags[0].Hint != `did you mean "approvalMode"?` {
		t.Errorf("diagnostics %v", diags)
	}
}

func TestMistakesContainNoSecret(t *testing.T) {
	for _, text := range []string{
		"env: [S3CRET]\n", "mcpServers: {a: {command: x, headers: {'S 1': S3CRET}}}\n", "mcpServers: {a: {url: 'ftp://S3CRET'}}\n",
		"mcpServers: {a: {command: x, headers: \"S3CRET\"}}\n", "env: {A: {B: S3CRET}}\n", "mcpServers: {a: {command: x, oauth: S3CRET}}\n",
	} {
		got := strings.Join(problemsOf("s.yaml", text), "\n")
		if got == "" || strings.Contains(got, "S3CRET") {
			t.Errorf("problems of %q: %q", text, got)
		}
	}
}

func TestInvalidFetchHeaders(t *testing.T) {
	for text, want := range map[string]string{
		`{"fetch":{"headers":{"example.com":{"A":"b"}}}}`:                      `s.json:1:`,
		`{"fetch":{"headers":{"https://user:pw@example.com":{"A":"b"}}}}`:      `more than scheme, host and port`,
		`{"fetch":{"headers":{"https://example.com/path":{"A":"b"}}}}`:         `more than scheme, host and port`,
		`{"fetch":{"headers":{"ftp://example.com":{"A":"b"}}}}`:                `not an http or https origin`,
		`{"fetch":{"headers":{"https://example.com":{"A b":"c"}}}}`:            `is not a valid header name`,
		`{"fetch":{"headers":{"https://example.com":{"A":"b\r\nX-Evil: 1"}}}}`: `control character`,
		`{"fetch":{"headers":{"https://example.com":"x"}}}`:                    `expected an object of strings`,
		`{"fetch":{"headers":[]}}`:                                             `expected an object`,
	} {
		l := Read(table.NewIndex(), ScopeUser, "s.json", []byte(text))
		if len(l.Problems) != 1 || !strings.Contains(l.Problems[0].String(), want) {
			t.Errorf("%s: %v, want %q", text, l.Problems, want)
		}
		for _, p := range l.Problems {
			if strings.Contains(p.String(), "pw") {
				t.Errorf("problem contains a secret: %s", p)
			}
		}
	}
}

// TestDefaultsAreValid checks the defaults of the table as if they were in a file.
func TestDefaultsAreValid(t *testing.T) {
	x := table.NewIndex()
	for i := range x.Rows {
		row := &x.Rows[i]
		if row.Default == "" {
			continue
		}
		for _, p := range CheckValue(x, row, row.Name, row.DefaultValue(), Origin{}).Problems {
			t.Errorf("default of %s: %s", row.Name, p.Message)
		}
	}
}

func TestDocumentationExamplesAreValid(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "settings.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range strings.Split(string(text), "\n```")[1:] {
		kind, example, _ := strings.Cut(block, "\n")
		if kind == "" || kind == "sh" { // the end of a block, or commands
			continue
		}
		found++
		l := Read(table.NewIndex(), ScopeUser, "docs."+kind, []byte(example))
		for _, p := range l.Problems {
			t.Errorf("%s", p)
		}
		for _, d := range l.Unknown {
			t.Errorf("%s", d.Message)
		}
	}
	if found != 2 {
		t.Errorf("%d examples, want 2", found)
	}
}
