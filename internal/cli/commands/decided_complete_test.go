package commands_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/commands"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// TestMatrixIsComplete checks that the matrix has a column for every kind of source, for every
// setting with which a project could change a decision, and for every command that makes calls.
func TestMatrixIsComplete(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, c := range changes() {
		for _, name := range slices.Concat(c.sources, c.settings, c.commands) {
			covered[name] = true
		}
	}
	known := map[string]bool{}
	check := func(what, name, elsewhere string) {
		known[name] = true
		if covered[name] == (elsewhere != "") {
			t.Errorf("%s %s: it needs a column of TestDecided that names it, or else an entry in the list of those that decide nothing", what, name)
		}
	}
	for _, source := range sourcesOfRegistry(t) {
		elsewhere := map[string]string{"builtin": "the rows are about built-in tools", "host": "it acts for the person; its tools are decided about as those of plugins"}
		check("source", source, elsewhere[source])
	}
	for _, row := range table.NewIndex().Rows {
		if row.Foreign || row.Looser != nil { // ignored, or tested to be no looser in package settings
			continue
		}
		check("setting", row.Name, prefixed(decideNothing(), row.Name))
	}
	for _, group := range commands.Program("").Commands {
		for _, c := range group.Commands {
			if c.Name != "" { // else it is about the other commands
				check("command", c.Name, callNothing()[c.Name])
			}
		}
	}
	for name := range covered {
		if !known[name] {
			t.Errorf("a column of TestDecided names %q, which does not exist", name)
		}
	}
}

// sourcesOfRegistry returns the kinds of sources that package registry declares.
func sourcesOfRegistry(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../registry/definition.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == 1 && len(spec.Values) == 1 {
			name := spec.Names[0].Name
			if value, ok := spec.Values[0].(*ast.BasicLit); ok && (strings.HasPrefix(name, "Source") || strings.HasSuffix(name, "Prefix")) {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, text)
			}
		}
		return true
	})
	if len(out) < 6 {
		t.Fatalf("package registry declares the sources %q; there were more", out)
	}
	return out
}

// prefixed returns the value of a name, or of the longest part of it before a dot.
func prefixed(list map[string]string, name string) string {
	for {
		if value := list[name]; value != "" {
			return value
		}
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return ""
		}
		name = name[:i]
	}
}

// decideNothing returns the settings, or groups of them, that a project may have and that
// change no decision on a call, with the reason.
func decideNothing() map[string]string {
	return map[string]string{
		"toolDiscoveryTimeout": "a time limit",
		"mcpServerCommand":     "one more server, as in mcpServers",
		"registries":           "where servers are searched for",
		"plugins.disabled":     "takes tools away",
		"plugins.settings":     "reaches only the plugin",
		"cache":                "when sources are listed again",
		"search":               "what models find",
		"scripts":              "limits of scripts, whose calls are decided on one by one",
		"shell.timeout":        "a time limit",
		"shell.maxTimeout":     "a time limit",
		"fetch.processor":      "runs after a page was fetched",
		"fetch.headers":        "what is sent to a host that was decided on",
		"fetch.proxy":          "the way to a host that was decided on",
		"fetch.timeout":        "a time limit",
		"fetch.maxBytes":       "a limit of size",
		"audit":                "what is logged",
		"display":              "how results are shown",
		"servers.keep":         "how long servers run",
		"check.silence":        "which findings are shown",
		"sampling":             "answers servers, after a question to the person",
		"serve":                "of those who serve; a project's rules for clients come after the person's",
		"limits":               "limits of size",
		"sandbox":              "a project can only tighten it",
		"context":              "what plugins are told",
		"names.servers":        "takes plain names away",
	}
}

// callNothing returns the commands that make no calls for models, with the reason.
func callNothing() map[string]string {
	const shows, changes, own = "shows", "changes settings or records", "started by the program itself"
	return map[string]string{
		"list": shows, "search": shows, "schema": shows, "why": shows, "discover": shows, "audit": shows, "stats": shows, "version": shows,
		"servers": changes, "plugins": changes, "lock": changes, "cache": changes, "trust": changes, "policy": changes, "approvals": changes, "init": changes, "settings": changes,
		"tasks":         "goes on with a call that was decided on",
		cli.KeepCommand: own, cli.KeepServerCommand: own, cli.EvaluateCommand: own, cli.ScriptCommand: own,
	}
}
