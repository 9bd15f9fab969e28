package serverjson

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/secret"
)

func options() Options {
	return Options{Has: func(p string) bool { return p == "podman" }, Keep: func(name string) string { return "file:" + name }}
}

// planOf plans the first way of a server with these packages or remotes.
func planOf(t *testing.T, rest string, given Given) (*Plan, error) {
	t.Helper()
	s, err := Parse([]byte(`{"name": "com.example/x", "version": "1.0.0", ` + rest + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return s.Ways()[0].Plan(given, options())
}

func npm(more string) string {
	return `"packages": [{"registryType": "npm", "identifier": "@e/x", "version": "1.0.0", "transport": {"type": "stdio"}` + more + `}]`
}

func oci(more string) string {
	return `"packages": [{"registryType": "oci", "identifier": "docker.io/e/x:1.0", "transport": {"type": "stdio"}` + more + `}]`
}

func remote(url, more string) string {
	return `"remotes": [{"type": "streamable-http", "url": "` + url + `"` + more + `}]`
}

// TestRefused has what a publisher could use to run something else than what is shown.
func TestRefused(t *testing.T) {
	pack := func(kind, identifier, version string) string {
		return `"packages": [{"registryType": "` + kind + `", "identifier": "` + identifier + `", "version": "` + version + `", "transport": {"type": "stdio"}}]`
	}
	for _, rest := range []string{
		pack("npm", "-y", "1.0.0"), pack("npm", "--call=id", "1.0.0"), pack("npm", "./x", "1.0.0"), pack("npm", "../x", "1.0.0"), pack("npm", "owner/repository", "1.0.0"),
		pack("npm", "https://example.com/x.tgz", "1.0.0"), pack("npm", "git+ssh://example.com/x", "1.0.0"), pack("npm", "npm:other", "1.0.0"), pack("npm", "file:x", "1.0.0"),
		pack("npm", "x y", "1.0.0"), pack("npm", "@e/x", "latest"), pack("npm", "@e/x", "^1.0.0"), pack("npm", "@e/x", "1.x"), pack("npm", "@e/x", "1.0"), pack("npm", "@e/x", ""),
		pack("npm", "@e/x", "1.0.0 || 2.0.0"), pack("npm", "xа", "1.0.0"), pack("pypi", "-r", "1"), pack("pypi", "x @ https://example.com/x.whl", "1"), pack("pypi", "x", ">=1"),
		pack("pypi", "x", "1.*"), pack("pypi", "x", "1,2"), pack("pypi", "x", "1 --with evil"), pack("nuget", "../x", "1.0.0"), pack("nuget", "x", "1.*"), pack("nuget", "x", "[1.0,2.0)"),
		pack("oci", "--privileged", ""), pack("oci", "example/x", ""), pack("oci", "example/x:latest", ""), pack("oci", "example/x:1 sh", ""), pack("oci", "https://example.com/x:1", ""),
		pack("oci", "x@sha256:zz", ""), pack("cargo", "x", "1.0.0"), pack("mcpb", "https://example.com/x.mcpb", "1"), pack("brew", "x", "1"),
		npm(`, "runtimeHint": "bunx"`), npm(`, "runtimeHint": "sh"`), npm(`, "registryBaseUrl": "file:///tmp"`), npm(`, "registryBaseUrl": "http://example.com"`),
		npm(`, "registryBaseUrl": "https://a:b@example.com"`), npm(`, "runtimeArguments": [{"type": "named", "name": "-c", "value": "id"}]`),
		npm(`, "runtimeArguments": [{"type": "named", "name": "--package", "value": "evil"}]`), npm(`, "runtimeArguments": [{"type": "positional", "value": "evil"}]`),
		npm(`, "runtimeArguments": [{"type": "positional", "value": "--registry=https://evil.example"}]`), npm(`, "runtimeArguments": [{"type": "positional", "value": "--"}]`),
		npm(`, "runtimeArguments": [{"type": "positional", "value": "--quiet=evil"}]`), npm(`, "runtimeArguments": [{"type": "named", "name": "--quiet", "value": "evil"}]`),
		oci(`, "runtimeArguments": [{"type": "positional", "value": "-v"}], "packageArguments": [{"type": "positional", "value": "evil"}]`),
		oci(`, "runtimeArguments": [{"type": "named", "name": "--volume"}], "packageArguments": [{"type": "positional", "value": "evil"}]`),
		npm(`, "runtimeArguments": [{"type": "positional", "valueHint": "package"}]`), npm(`, "environmentVariables": [{"name": "npm_config_registry", "value": "https://evil.example"}]`),
		npm(`, "environmentVariables": [{"name": "PATH", "value": "/tmp"}]`), npm(`, "environmentVariables": [{"name": "A=B", "value": "x"}]`), npm(`, "environmentVariables": [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}]`),
		npm(`, "packageArguments": [{"type": "named", "name": "--a b", "value": "x"}]`), `"packages": [{"registryType": "npm", "identifier": "x", "version": "1.0.0", "transport": {"type": "sse"}}]`,
		oci(`, "runtimeArguments": [{"type": "named", "name": "--privileged"}]`), oci(`, "runtimeArguments": [{"type": "positional", "value": "evil/image"}]`),
		oci(`, "runtimeArguments": [{"type": "named", "name": "-e", "value": "LD_PRELOAD=/x.so"}]`), oci(`, "runtimeArguments": [{"type": "named", "name": "--env-file", "value": "/etc/passwd"}]`),
		oci(`, "environmentVariables": [{"name": "DOCKER_HOST", "value": "tcp://evil.example"}]`),
		remote("file:///etc/passwd", ""), remote("http://example.com/mcp", ""), remote("https://u:p@example.com/mcp", ""), remote("http://169.254.169.254/latest", ""), remote("https://169.254.169.254/", ""),
		remote("https://[fe80::1]/", ""), remote("https://0xa9fea9fe/", ""), remote("https://2852039166/", ""), remote("https://0.0.0.0/", ""), remote("https://224.0.0.1/", ""), remote("https://exаmple.com/", ""),
		remote("{base}/mcp", ""), remote("https://example.com/#{x}", ""), remote("https://example.com/", `, "headers": [{"name": "Host", "value": "x"}]`), remote("https://example.com/", `, "headers": [{"name": "A B", "value": "x"}]`),
		`"remotes": [{"type": "websocket", "url": "https://example.com"}]`,
	} {
		if plan, err := planOf(t, rest, Given{}); !errors.Is(err, registry.ErrDenied) {
			t.Errorf("%s: %+v, %v", rest, plan, err)
		}
	}
}

func TestPlans(t *testing.T) {
	for _, tt := range []struct {
		name, rest string
		given      Given
		want       *Plan
	}{
		{"options have their values attached, so that none is the image", oci(`, "runtimeArguments": [{"type": "named", "name": "--name", "value": "evil/image"}, {"type": "named", "name": "--rm", "value": "true"}, {"type": "named", "name": "-v", "value": "/a:/b"}]`), nil,
			&Plan{Command: "podman", Args: []string{"run", "-i", "--rm", "--name=evil/image", "--rm=true", "-v=/a:/b", "docker.io/e/x:1.0"},
				Notes: []string{"its container gets more than its own files: -v=/a:/b"}}},
		{"an option is left out with its value", oci(`, "runtimeArguments": [{"type": "named", "name": "--mount", "value": "src={a}", "variables": {"a": {}}}, {"type": "named", "name": "--init"}]`), nil,
			&Plan{Command: "podman", Args: []string{"run", "-i", "--rm", "--init", "docker.io/e/x:1.0"}}},
		{"a digest instead of the tag", `"packages": [{"registryType": "oci", "identifier": "e/x:1@sha256:` + strings.Repeat("a", 64) + `", "runtimeHint": "docker"}]`, nil,
			&Plan{Command: "podman", Args: []string{"run", "-i", "--rm", "e/x@sha256:" + strings.Repeat("a", 64)}}},
		{"another registry is shown and passed", npm(`, "registryBaseUrl": "https://npm.example.com"`), nil,
			&Plan{Command: "npx", Args: []string{"-y", "--registry=https://npm.example.com", "@e/x@1.0.0"}, Notes: []string{"its package comes from another registry: https://npm.example.com"}}},
		{"published text is literal", npm(`, "packageArguments": [{"type": "positional", "value": "$HOME"}, {"type": "named", "name": "--a", "value": "env:HOME"}, {"type": "named", "name": "--b", "default": "cmd:id"}],
			"environmentVariables": [{"name": "A", "value": "env:HOME"}, {"name": "B", "default": "cmd:id"}, {"name": "C", "value": "${X}"}, {"name": "D", "value": "x {y} {z}", "variables": {"y": {"default": "$Y"}}}]`), nil,
			&Plan{Command: "npx", Args: []string{"-y", "@e/x@1.0.0", "$$HOME", "--a", "env:HOME", "--b", "cmd:id"},
				Env: []Pair{{"A", "${}env:HOME"}, {"B", "${}cmd:id"}, {"C", "$${X}"}, {"D", "x $$Y {z}"}}}},
		{"the person's references", npm(`, "packageArguments": [{"type": "positional", "valueHint": "dir", "isRepeated": true}, {"type": "named", "name": "--on", "format": "boolean"}, {"type": "named", "name": "--off", "format": "boolean"}],
			"environmentVariables": [{"name": "A", "isSecret": true}, {"name": "B", "value": "t {A}", "variables": {"A": {}}}, {"name": "C"}, {"name": "D"}]`),
			Given{"dir": {"/a", "env:DIR"}, "A": {"env:TOKEN"}, "C": {"cmd:op read x"}, "D": {"price $5"}, "--on": {"true"}, "--off": {"false"}},
			&Plan{Command: "npx", Args: []string{"-y", "@e/x@1.0.0", "/a", "${DIR}", "--on"}, Env: []Pair{{"A", "env:TOKEN"}, {"B", "t ${TOKEN}"}, {"C", "cmd:op read x"}, {"D", "price $$5"}}}},
		{"a switch is given, an argument that nobody set is not", npm(`, "packageArguments": [{"type": "named", "name": "--stdio"}, {"type": "named", "name": "--key", "description": "Key"}]`), nil,
			&Plan{Command: "npx", Args: []string{"-y", "@e/x@1.0.0", "--stdio"}}},
		{"variables of a container are not on the command line", oci(`, "runtimeArguments": [{"type": "named", "name": "-e", "value": "A=x{y}", "variables": {"y": {"isSecret": true}}}, {"type": "positional", "value": "--env=C=c"}], "environmentVariables": [{"name": "B", "value": "b"}]`), Given{"y": {"s"}},
			&Plan{Command: "podman", Args: []string{"run", "-i", "--rm", "-e", "A", "-e", "C", "-e", "B", "docker.io/e/x:1.0"}, Env: []Pair{{"A", "file:A"}, {"C", "c"}, {"B", "b"}}, Secrets: []Secret{{"A", "xs"}}}},
		{"an address on this machine", remote("http://127.0.0.1:8080/{a}?b={b}", ""), Given{"a": {"$x&"}, "b": {"$y&"}}, &Plan{URL: "http://127.0.0.1:8080/$$x&?b=%24y%26", Type: "http"}},
		{"the newer transport", `"remotes": [{"type": "sse", "url": "https://e.example/sse"}, {"type": "streamable-http", "url": "https://e.example/mcp"}]`, nil, &Plan{URL: "https://e.example/mcp", Type: "http"}},
		{"a part of a host", remote("https://{a}.example.com/", ""), Given{"a": {"eu-1"}}, &Plan{URL: "https://eu-1.example.com/", Type: "http"}},
	} {
		got, err := planOf(t, tt.rest, tt.given)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestValues has values that do not fit.
func TestValues(t *testing.T) {
	for _, tt := range []struct {
		rest  string
		given Given
	}{
		{remote("https://example.com/{a}/mcp", ""), Given{"a": {".."}}}, {remote("https://example.com/{a}/mcp", ""), Given{"a": {"x/y"}}}, {remote("https://example.com/{a}/mcp", ""), Given{"a": {"%2e%2e"}}},
		{remote("https://example.com/{a}/mcp", ""), Given{"a": {"x?y"}}}, {remote("https://example.com/{a}/mcp", ""), Given{"a": {`x\\y`}}}, {remote("https://example.com/{a}/mcp", ""), Given{"a": {""}}},
		{remote("https://{a}.example.com/", ""), Given{"a": {"evil.example/"}}}, {remote("https://{a}.example.com/", ""), Given{"a": {"x@evil"}}}, {remote("https://{a}.example.com/", ""), Given{"a": {"env:HOST"}}},
		{remote("https://example.com/{a}", ""), Given{"a": {"file:x"}}}, {npm(`, "packageArguments": [{"type": "named", "name": "--key", "isSecret": true}]`), Given{"--key": {"literal"}}},
		{npm(`, "environmentVariables": [{"name": "A", "value": "t {x}", "variables": {"x": {}}}]`), Given{"x": {"cmd:id"}}}, {npm(`, "environmentVariables": [{"name": "A"}]`), Given{"A": {"x\ny"}}},
		{npm(`, "environmentVariables": [{"name": "A"}]`), Given{"A": {"x", "y"}}}, {npm(""), Given{"A": {"x"}}},
	} {
		plan, err := planOf(t, tt.rest, tt.given)
		if _, ok := errors.AsType[*ValueError](err); !ok {
			t.Errorf("%s %v: %+v, %v", tt.rest, tt.given, plan, err)
		}
	}
}

func TestNotation(t *testing.T) {
	for value, want := range map[string]string{"x": "x", "env:A": "env:A", "$A": "$A", "${A}": "${A}", "$A/x": "$$A/x", "file:///x": "file:///x", "cmd:id": "cmd:id", " cmd:id": " cmd:id"} {
		if got := Notation(value); got != want || Denote(got) != value {
			t.Errorf("%q: %q, %q", value, got, Denote(got))
		}
	}
	if got := Literal("file:x"); got != "${}file:x" || Denote(got) != "file:x" {
		t.Errorf("%q, %q", got, Denote(got))
	}
}

// FuzzPlan checks that nothing of a description is expanded, and that a command begins with
// a program and has the exact package.
func FuzzPlan(f *testing.F) {
	for _, rest := range []string{npm(`, "packageArguments": [{"type": "named", "name": "$A", "value": "${B} {c}", "variables": {"c": {"default": "cmd:x"}}}], "environmentVariables": [{"name": "A", "default": "env:B"}]`),
		oci(`, "runtimeArguments": [{"type": "named", "name": "-e", "value": "A=$B"}]`), remote("https://e.com/{a}?$b", `, "variables": {"a": {"default": "$x"}}, "headers": [{"name": "A", "value": "$B"}]`)} {
		f.Add([]byte(`{"name": "com.example/x", "version": "1.0.0", ` + rest + `}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			return
		}
		for _, way := range s.Ways() {
			_, _ = way.Inputs(), way.Origin()
			p, err := way.Plan(nil, options())
			if err != nil || len(p.Missing) > 0 {
				continue
			}
			for _, text := range slices.Concat([]string{p.Command, p.URL}, p.Args) {
				if names := expand.Names(text); len(names) > 0 {
					t.Errorf("%q reads %q", text, names)
				}
			}
			for _, pair := range slices.Concat(p.Env, p.Headers) {
				if kind, _ := secret.Reference(pair.Value); kind != "" || len(expand.Names(pair.Value)) > 0 {
					t.Errorf("%q is a reference", pair.Value)
				}
			}
			if p.Command == "npx" && !slices.Contains(p.Args, way.Package.Identifier+"@"+way.Package.Version) {
				t.Errorf("%q does not run %s", p.Args, way.Origin())
			}
			if _, err := json.Marshal(p); err != nil {
				t.Error(err)
			}
		}
	})
}
