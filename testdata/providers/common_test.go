package providers_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// unfit lists the nasty tools that are not registered, because what they take is not an object, so that no
// format has them. A schema that leads outside or to itself is open instead.
func unfit() []string { return []string{"root_is_list", "root_is_text"} }

// declarable is how many tools are declared to a provider that takes all but
// the unfit ones and those named.
func declarable(left ...string) int {
	n := -len(unfit()) - len(left)
	for _, c := range shared.captures {
		n += len(c.Tools)
	}
	return n
}

// oddParams is the tool that Anthropic's models would refuse for the names of
// its params.
const oddParams = "odd_param_names"

// unsayable lists the tools that Gemini's type Schema cannot say: they need an
// object with properties of any name.
func unsayable() []string {
	return []string{"aggregate-db", "firecrawl_monitor_update", "free_required", "insert-many", "update-many"}
}

// discoverySettings gives every captured tool by a discovery command.
func discoverySettings(t *testing.T) (settings string, tools int) {
	t.Helper()
	type declaration struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	}
	var all []declaration
	for _, c := range shared.captures {
		for i, tool := range c.Tools {
			all = append(all, declaration{fmt.Sprintf("%s_%d", c.server, i), tool.InputSchema})
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "functions.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	settings = filepath.Join(dir, "settings.json")
	text := fmt.Sprintf(`{"toolDiscoveryCommand":["cat",%q],"toolCallCommand":["true"]}`, filepath.Join(dir, "functions.json"))
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return settings, declarable()
}
