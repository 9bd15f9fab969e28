package settings

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const secretive = `mcpServers:
  s:
    command: npx
    args: [--api-key, S3CRET, --token=S3CRET, --header, "Authorization=S3CRET", -y, --password, $PW]
    env: {PLAIN: S3CRET, VAR: $NAME, REF: "env:NAME", FILE: "file:/run/x", CMD: "cmd:pass show S3CRET", MIXED: "S3CRET$NAME"}
  h:
    url: https://u:S3CRET@h/?token=S3CRET
    headers: {Authorization: Bearer S3CRET}
    oauth: {clientId: me, clientSecret: S3CRET}
env: {K: S3CRET}
toolCallCommand: [run, "--secret=S3CRET"]
hooks:
  afterCall: [{command: [run, --token, S3CRET]}]
  BeforeTool: [{env: {K: S3CRET}, password: S3CRET}]
context: {apiToken: S3CRET, channel: dev}
`

func TestEffectiveMasksSecrets(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", secretive)
	want := []string{
		`toolCallCommand = ["run","--secret=***"]`,
		`mcpServers.s = {"command":"npx","args":["--api-key","***","--token=***","--header","Authorization=***","-y","--password","$PW"],` +
			`"env":{"PLAIN":"***","VAR":"$NAME","REF":"env:NAME","FILE":"file:/run/x","CMD":"cmd:pass ***","MIXED":"***"}}`,
		`mcpServers.h = {"url":"https://***@h/?token=***","headers":{"Authorization":"***"},"oauth":{"clientId":"me","clientSecret":"***"}}`,
		`context.apiToken = "***"`,
		`context.channel = "dev"`,
		`env.K = "***"`,
		`hooks = {"afterCall":[{"command":["run","--token","***"]}],"BeforeTool":[{"env":{"K":"***"},"password":"***"}]}`,
	}
	s := b.load(b.options())
	if diff := cmp.Diff(want, effective(s)); diff != "" {
		t.Errorf("effective (-want +got):\n%s", diff)
	}
	if len(s.Hooks) != 1 || s.Hooks[0].Command.Argv[2] != "S3CRET" {
		t.Errorf("the decoded value must not be masked, got %v", s.Hooks)
	}
}

// A value that is secret in one place is masked wherever it is.
func TestEffectiveMasksSecretsElsewhere(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", `mcpServers:
  s: {command: x, args: [hunter22], env: {DB_PASS2: hunter22, MODE: fast-mode}, description: It logs in with hunter22., headers: {X-Auth: Bearer tok-en-123}}
context: {a: hunter22, b: fast-mode, c: tok-en-123, d: "env:TOKEN", channel: dev}
env: {TOKEN: "env:TOKEN", SHORT_KEY: dev}
`)
	want := []string{
		`mcpServers.s = {"command":"x","args":["***"],"env":{"DB_PASS2":"***","MODE":"***"},"description":"It logs in with ***.","headers":{"X-Auth":"***"}}`,
		`context.a = "***"`, `context.b = "fast-mode"`, `context.c = "***"`, `context.d = "env:TOKEN"`, `context.channel = "dev"`,
		`env.TOKEN = "env:TOKEN"`, `env.SHORT_KEY = "***"`,
	}
	if diff := cmp.Diff(want, effective(b.load(b.options()))); diff != "" {
		t.Errorf("effective (-want +got):\n%s", diff)
	}
}

func TestOriginsInNamedEntries(t *testing.T) {
	b := newSandbox(t)
	b.user("settings.yaml", "composites:\n  one:\n    steps:\n      - {tool: a}\n      - tool: b\n")
	s := b.load(b.options())
	got := map[string]string{}
	for _, n := range s.RawNamed("composites") {
		for _, pointer := range []string{"", "/steps/1/tool", "/none"} {
			o := n.At(pointer)
			got[pointer] = strings.TrimPrefix(o.String(), filepath.Dir(o.Name)+"/")
		}
	}
	want := map[string]string{"": "settings.yaml:2", "/steps/1/tool": "settings.yaml:5", "/none": "settings.yaml:3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
