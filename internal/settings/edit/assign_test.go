package edit

import (
	"strings"
	"testing"
)

func TestAssignParsesWordsByType(t *testing.T) {
	tests := []struct {
		key   string
		words []string
		path  string // the first of the paths
		want  string // as JSON, or the error
	}{
		{"approvalMode", []string{"plan"}, "approvalMode", `"plan"`},
		{"approvalMode", []string{"none"}, "", `approvalMode: unknown value "none" (one of default, auto-edit, plan, yolo)`},
		{"audit.params", []string{"true"}, "audit/params", `true`},
		{"audit.params", []string{"yes"}, "", `audit.params: expected true or false, got string`},
		{"audit.keep", []string{"7"}, "audit/keep", `7`},
		{"audit.keep", []string{"many"}, "", "audit.keep: "},
		{"shell.timeout", []string{"30s"}, "shell/timeout", `"30s"`},
		{"shell.timeout", []string{"2000"}, "shell/timeout", `2000`},
		{"shell.timeout", []string{"soon"}, "", `shell.timeout: expected whole milliseconds or a duration`},
		{"shell.timeout", []string{"1s", "2s"}, "", `shell.timeout: takes one value, got 2`},
		{"excludeTools", []string{"a", "b c"}, "excludeTools", `["a","b c"]`},
		{"tools.exclude", []string{"a"}, "excludeTools", `["a"]`},
		{"excludeTools", []string{`["a"]`}, "excludeTools", `["a"]`},
		{"excludeTools", []string{`[a, b]`}, "", `excludeTools: "[a, b]" is not JSON; give the values without brackets, one by one`},
		{"excludeTools", []string{`[1]`}, "", "excludeTools[0]: expected a string"},
		{"hooks", []string{`{"beforeCall": [{"comand": "x"}]}`}, "", "hooks.beforeCall[0]: command is missing\nhooks: unknown setting \"hooks.beforeCall[0].comand\" (did you mean \"hooks.beforeCall[0].command\"?)"},
		{"mcpServers.a", []string{`{"command":"q","tim":1}`}, "", `mcpServers.a: unknown setting "mcpServers.a.tim" (did you mean "mcpServers.a.timeout"?)`},
		{"toolCallCommand", []string{"./call --now"}, "toolCallCommand", `"./call --now"`},
		{"toolCallCommand", []string{"./call", "a b"}, "toolCallCommand", `["./call","a b"]`},
		{"mcpServers.a.b.connectTimeout", []string{"5s"}, "mcpServers/a.b/connectTimeout", `"5s"`},
		{"mcpServers.a.env.X.Y", []string{"true"}, "mcpServers/a/env/X.Y", `"true"`},
		{"mcpServers.a.oauth.clientId", []string{"me"}, "mcpServers/a/oauth/clientId", `"me"`},
		{"openapi.a.auth.bearer", []string{"env:T"}, "openapi/a/auth/bearer", `"env:T"`},
		{"openapi.a.auth.apiKey.in", []string{"body"}, "", `openapi.a.auth.apiKey.in: unknown value "body" (one of header, query, cookie)`},
		{"mcpServers.a", []string{`{"command":"q"}`}, "mcpServers/a", `{"command":"q"}`},
		{"mcpServers.a", []string{"q"}, "", `mcpServers.a: "q" is not JSON`},
		{"mcpServers.a.comand", []string{"q"}, "", `unknown setting "mcpServers.a.comand"; did you mean "mcpServers.a.command"?`},
		{"composites.x", []string{`{"steps":[{"tool":"a"}]}`}, "composites/x", `{"steps":[{"tool":"a"}]}`},
		{"composites.x.steps", []string{"[]"}, "", `composites.x.steps: must have 1 to 100 steps`},
		{"plugins.settings.weather.key", []string{"k"}, "", `unknown setting "plugins.settings.weather.key"`},
		{"fetch.headers.https://a.b", []string{`{"X":"y"}`}, "fetch/headers/https://a.b", `{"X":"y"}`},
		{"policy.rules.0.decision", []string{"ask"}, "", "unknown setting \"policy.rules.0.decision\"\n"},
		{"context.channel", []string{"mail"}, "context/channel", `"mail"`},
		{"toolOptions.read_*.timeout", []string{"1s"}, "toolOptions/read_*/timeout", `"1s"`},
		{"aprovalMode", []string{"plan"}, "", `unknown setting "aprovalMode"; did you mean "approvalMode"?`},
		{"policy.defaults", []string{"ask"}, "", `"policy.defaults" is a group; name one of its settings: command, network, other, read, write`},
		{"vimMode", []string{"true"}, "", `unknown setting "vimMode"`},
		{"", []string{"x"}, "", "unknown setting"},
	}
	for _, test := range tests {
		a, err := Assign(test.key, test.words)
		if test.path == "" {
			if err == nil || !strings.HasPrefix(err.Error()+"\n", test.want) {
				t.Errorf("%s %q: %v; want an error that begins with %s", test.key, test.words, err, test.want)
			}
			continue
		}
		if err != nil || strings.Join(a.Paths[0], "/") != test.path || string(a.Value) != test.want {
			t.Errorf("%s %q: %v = %s, %v; want %s = %s", test.key, test.words, a.Paths, a.Value, err, test.path, test.want)
		}
	}
}
