//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// With a part of GitHub's API as the registry, a plain request finds the operation that
// does it among the first five tools, and declaring the tools costs a model at most the
// budget.
func TestSearchFindsOperations(t *testing.T) {
	t.Parallel()
	dir, command := inProject(t, "--settings", "s.yaml")
	document, err := filepath.Abs("../../testdata/openapi/github.json")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "s.yaml", "openapi: {github: {spec: '"+document+"'}}\n")
	requests, err := os.ReadFile("../../testdata/openapi/requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	host := startRPC(t, command("rpc"))
	searched := 0
	for line := range strings.Lines(string(requests)) {
		query, wanted, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok || strings.HasPrefix(query, "#") {
			continue
		}
		searched++
		var hits struct {
			Tools []struct{ Name, Source string }
		}
		answer := host.call("search", map[string]any{"query": query, "limit": 5})
		if err := json.Unmarshal(answer.Result, &hits); err != nil {
			t.Fatal(err, answer.Error)
		}
		var names []string
		for _, hit := range hits.Tools {
			names = append(names, hit.Name)
		}
		if !slices.ContainsFunc(strings.Fields(wanted), func(id string) bool { return slices.Contains(names, strings.ReplaceAll(id, "/", "_")) }) {
			t.Errorf("%q finds %q, not %s", query, names, wanted)
		}
	}
	if searched != 20 {
		t.Errorf("%d requests, want 20", searched)
	}

	out, err := command("list", "--cost", "--defer", "auto", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var cost struct {
		Total, Deferred struct{ Tools, Tokens int }
	}
	if err := json.Unmarshal(out, &cost); err != nil {
		t.Fatal(err)
	}
	if cost.Total.Tokens < 20_000 || cost.Deferred.Tokens == 0 || cost.Deferred.Tokens > 10_000 {
		t.Errorf("costs %+v, want more than 20,000 tokens in total and at most 10,000 deferred", cost)
	}
}
