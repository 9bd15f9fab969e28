package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// requests are what a person might ask, and the operations that do it.
type requests []struct {
	query  string
	wanted []string
}

func readRequests(path string) (requests, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out requests
	for line := range strings.Lines(string(data)) {
		if query, operations, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && query[0] != '#' {
			out = append(out, struct {
				query  string
				wanted []string
			}{query, strings.Fields(operations)})
		}
	}
	return out, nil
}

func (r requests) operations() []string {
	var out []string
	for _, request := range r {
		out = append(out, request.wanted...)
	}
	return out
}

// searchAll searches for each request and returns how many find their operation among the
// first five tools. Names have "_" for characters that a tool's name cannot have.
func searchAll(ctx context.Context, p program, settings string, all requests, r *row) error {
	found := 0
	for _, request := range all {
		out, _, err := p.run(ctx, nil, "search", request.query, "--limit", "5",
			"--settings", settings, "--source", "openapi:*", "--json")
		if err != nil {
			return err
		}
		var hits struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal(out, &hits); err != nil {
			return err
		}
		var names []string
		for _, hit := range hits.Tools {
			names = append(names, hit.Name)
		}
		if slices.ContainsFunc(request.wanted,
			func(id string) bool { return slices.Contains(names, strings.ReplaceAll(id, "/", "_")) }) {
			found++
			continue
		}
		r.notes = append(r.notes, fmt.Sprintf("search: %q finds %s, not %s",
			request.query, strings.Join(names, ", "), strings.Join(request.wanted, ", ")))
	}
	r.notes = append(r.notes,
		fmt.Sprintf("search: %d of %d requests find their operation among the first five", found, len(all)))
	out, _, err := p.run(ctx, nil, "list", "--cost", "--defer", "auto", "--settings", settings, "--json")
	if err != nil {
		return err
	}
	var cost struct{ Total, Deferred struct{ Tools, Tokens int } }
	if err := json.Unmarshal(out, &cost); err != nil {
		return err
	}
	r.notes = append(r.notes, fmt.Sprintf("cost: %d tools of %d tokens; deferred automatically: %d tools of %d tokens",
		cost.Total.Tools, cost.Total.Tokens, cost.Deferred.Tools, cost.Deferred.Tokens))
	return nil
}
