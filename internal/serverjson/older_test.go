package serverjson

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEarlierSchemas plans descriptions as earlier schemas, registries and hands write them.
func TestEarlierSchemas(t *testing.T) {
	const head = `{"name":"com.example/x","version":"1.0.0",`
	stdio := `"transport":{"type":"stdio"}`
	for name, c := range map[string]struct {
		text  string
		given Given
		want  *Plan
	}{
		"underscores": {`{"name":"com.example/x","version":"1.0.0","packages":[{"registry_type":"npm","registry_base_url":"https://registry.npmjs.org","identifier":"@e/x","version":"1.0.0","package_arguments":[{"type":"positional","value_hint":"dir","is_required":true}],"environment_variables":[{"name":"MY_KEY","is_secret":true}]}]}`,
			Given{"dir": {"/a"}, "MY_KEY": {"k"}}, &Plan{Command: "npx", Args: []string{"-y", "@e/x@1.0.0", "/a"}, Env: []Pair{{"MY_KEY", "file:MY_KEY"}}, Secrets: []Secret{{"MY_KEY", "k"}}}},
		"names of variables are no fields": {head + `"packages":[{"registry_type":"npm","identifier":"x","version":"1.0.0","package_arguments":[{"type":"named","name":"--a","value":"{my_a}","variables":{"my_a":{"is_required":true}}}]}]}`,
			Given{"my_a": {"1"}}, &Plan{Command: "npx", Args: []string{"-y", "x@1.0.0", "--a", "1"}}},
		"the first schema": {`{"name":"com.example/x","version_detail":{"version":"1.0.0"},"packages":[{"registry_name":"pypi","name":"x","version":"1.0.0","runtime_hint":"uvx"}]}`,
			nil, &Plan{Command: "uvx", Args: []string{"x==1.0.0"}}},
		"an image of the first schema": {`{"name":"com.example/x","version_detail":{"version":"1.0.0"},"packages":[{"registry_name":"docker","name":"e/x","version":"1.0"}]}`,
			nil, &Plan{Command: "podman", Args: []string{"run", "-i", "--rm", "e/x:1.0"}}},
		"arguments that are strings": {head + `"packages":[{"registryType":"npm","identifier":"x","version":"1.0.0",` + stdio + `,"runtimeArguments":["-y"],"packageArguments":["--stdio","$HOME"]}]}`,
			nil, &Plan{Command: "npx", Args: []string{"-y", "x@1.0.0", "--stdio", "$$HOME"}}},
		"numbers and booleans": {head + `"packages":[{"registryType":"npm","identifier":"x","version":"1.0.0","environmentVariables":[{"name":"PORT","default":3000},{"name":"D","value":true},{"name":"L","default":1,"choices":[1,2]}]}]}`,
			nil, &Plan{Command: "npx", Args: []string{"-y", "x@1.0.0"}, Env: []Pair{{"PORT", "3000"}, {"D", "true"}, {"L", "1"}}}},
		"python for a PyPI package": {head + `"packages":[{"registryType":"pypi","identifier":"x","version":"1.0.0","runtimeHint":"python"}]}`,
			nil, &Plan{Command: "uvx", Args: []string{"x==1.0.0"}, Notes: []string{"its publisher names python to run it; uvx gets the package and runs it"}}},
		"node for an npm package": {head + `"packages":[{"registryType":"npm","identifier":"x","version":"1.0.0","runtimeHint":"node"}]}`,
			nil, &Plan{Command: "npx", Args: []string{"-y", "x@1.0.0"}, Notes: []string{"its publisher names node to run it; npx gets the package and runs it"}}},
		"an answer of a registry": {`{"server":` + head + `"packages":[{"registryType":"npm","identifier":"x","version":"1.0.0"}]},"_meta":{}}`,
			nil, &Plan{Command: "npx", Args: []string{"-y", "x@1.0.0"}}},
		"the registry of an image": {head + `"packages":[{"registryType":"oci","registryBaseUrl":"https://ghcr.io","identifier":"e/x","version":"1.0"}]}`,
			nil, &Plan{Command: "podman", Args: []string{"run", "-i", "--rm", "ghcr.io/e/x:1.0"}}},
		"the usual registry of images": {head + `"packages":[{"registryType":"oci","registryBaseUrl":"https://docker.io","identifier":"e/x","version":"1.0"}]}`,
			nil, &Plan{Command: "podman", Args: []string{"run", "-i", "--rm", "e/x:1.0"}}},
		"an image with its registry": {head + `"packages":[{"registryType":"oci","registryBaseUrl":"https://ghcr.io","identifier":"r.example/e/x:1.0"}]}`,
			nil, &Plan{Command: "podman", Args: []string{"run", "-i", "--rm", "r.example/e/x:1.0"}}},
		"the type of a remote": {head + `"remotes":[{"transport_type":"sse","url":"https://x.example/sse","headers":[{"name":"X-A","value":1}]}]}`,
			nil, &Plan{URL: "https://x.example/sse", Type: "sse", Headers: []Pair{{"X-A", "1"}}}},
		"another word for a transport": {"\ufeff" + head + `"remotes":[{"transportType":"streamableHttp","url":"https://x.example/mcp"}]}`,
			nil, &Plan{URL: "https://x.example/mcp", Type: "http"}},
	} {
		s, err := Parse([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := s.Ways()[0].Plan(c.given, options())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, base := range []string{"http://", "x y", "https://u:p@ghcr.io", "https://-v"} {
		if plan, err := planOf(t, `"packages": [{"registryType": "oci", "registryBaseUrl": "`+base+`", "identifier": "e/x", "version": "1.0"}]`, nil); err == nil {
			t.Errorf("%s: %+v", base, plan)
		}
	}
}
