// Package house_test checks what concerns the whole repository: which package may import
// which, what no package may do, the links between the pages, and the examples.
// docs/ARCHITECTURE.md explains the rules.
package house_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/toolreg/toolreg"

// root is the folder of the module, in which each test runs.
var root = filepath.Join("..", "..")

// rooms lists every package of the module with the packages of the module that it
// may import in addition to those of shared; "x/*" means the packages below x.
func rooms() map[string][]string {
	return map[string][]string{
		"cmd/toolreg":                  {"internal/cli", "internal/cli/commands"},
		"internal/agents":              {"internal/policy", "internal/policy/shell", "internal/registry", "internal/settings/document", "internal/settings/imports", "internal/settings/layers", "internal/settings/table"},
		"internal/args":                {"internal/registry"},
		"internal/atomicfile":          {},
		"internal/audit":               {"internal/state"},
		"internal/builtin":             {"internal/builtin/file", "internal/builtin/search", "internal/builtin/shell", "internal/builtin/textfile", "internal/builtin/todo", "internal/builtin/web", "internal/builtin/workspace", "internal/registry"},
		"internal/builtin/file":        {"internal/atomicfile", "internal/builtin/textfile", "internal/builtin/tool", "internal/builtin/workspace", "internal/registry"},
		"internal/builtin/glob":        {},
		"internal/builtin/search":      {"internal/builtin/glob", "internal/builtin/textfile", "internal/builtin/tool", "internal/builtin/workspace", "internal/registry"},
		"internal/builtin/shell":       {"internal/atomicfile", "internal/builtin/tool", "internal/builtin/workspace", "internal/confine/guards", "internal/git", "internal/process", "internal/registry", "internal/sandbox"},
		"internal/builtin/textfile":    {"internal/registry"},
		"internal/builtin/todo":        {"internal/builtin/tool", "internal/builtin/workspace", "internal/registry", "internal/state"},
		"internal/builtin/tool":        {"internal/registry"},
		"internal/builtin/tooltest":    {"internal/registry"},
		"internal/builtin/web":         {"internal/builtin/textfile", "internal/builtin/tool", "internal/process", "internal/registry", "internal/state", "internal/webaddr"},
		"internal/builtin/workspace":   {"internal/atomicfile", "internal/builtin/glob", "internal/builtin/tool", "internal/git", "internal/registry"},
		"internal/bundle":              {"internal/registry", "internal/serverjson", "internal/webaddr"},
		"internal/cache":               {"internal/process", "internal/registry", "internal/state", "internal/trust"},
		"internal/caller":              {},
		"internal/cli":                 {"internal/agents", "internal/args", "internal/atomicfile", "internal/audit", "internal/builtin", "internal/builtin/shell", "internal/cache", "internal/cli/complete", "internal/engine", "internal/engine/programs", "internal/engine/record", "internal/engine/sources", "internal/exec", "internal/lock", "internal/mcpclient", "internal/mcpclient/ask", "internal/policy", "internal/process", "internal/provider", "internal/recording", "internal/registry", "internal/script", "internal/secret", "internal/settings", "internal/settings/document", "internal/settings/table", "internal/settings/values", "internal/state", "internal/telemetry", "internal/trust", "internal/ui", "internal/ui/asking"},
		"internal/cli/approvalscmd":    {"internal/cli", "internal/cli/complete", "internal/engine", "internal/engine/sources", "internal/exec", "internal/policy", "internal/settings", "internal/settings/values", "internal/ui"},
		"internal/cli/auditcmd":        {"internal/audit", "internal/cli", "internal/cli/complete", "internal/settings", "internal/ui", "internal/ui/page"},
		"internal/cli/cachecmd":        {"internal/cli", "internal/engine", "internal/engine/owner", "internal/ui"},
		"internal/cli/callcmd":         {"internal/args", "internal/cli", "internal/cli/complete", "internal/engine", "internal/exec", "internal/form", "internal/policy", "internal/provider", "internal/registry", "internal/ui", "internal/ui/asking", "internal/ui/markdown", "internal/ui/picture"},
		"internal/cli/commands":        {"internal/cli", "internal/cli/*"},
		"internal/cli/complete":        {"internal/args", "internal/builtin", "internal/engine", "internal/provider", "internal/registry", "internal/settings", "internal/settings/table"},
		"internal/cli/completioncmd":   {"internal/cli", "internal/cli/complete", "internal/ui"},
		"internal/cli/discovercmd":     {"internal/cli", "internal/cli/complete", "internal/engine", "internal/registry", "internal/ui"},
		"internal/cli/doctorcmd":       {"internal/audit", "internal/builtin/shell", "internal/cli", "internal/cli/settingsfile", "internal/confine", "internal/engine", "internal/engine/programs", "internal/engine/record", "internal/engine/sources", "internal/hooks", "internal/mcpclient", "internal/process", "internal/registry", "internal/settings", "internal/settings/document", "internal/settings/values", "internal/state", "internal/toolscan", "internal/ui"},
		"internal/cli/initcmd":         {"internal/agents", "internal/cli", "internal/cli/complete", "internal/cli/serverscmd", "internal/cli/settingsfile", "internal/confine", "internal/registry", "internal/settings", "internal/settings/edit", "internal/settings/imports", "internal/settings/table", "internal/ui"},
		"internal/cli/listcmd":         {"internal/args", "internal/atomicfile", "internal/audit", "internal/cli", "internal/cli/complete", "internal/engine", "internal/lock", "internal/policy", "internal/provider", "internal/provider/deferred", "internal/registry", "internal/settings", "internal/settings/imports", "internal/trust", "internal/ui", "internal/ui/page"},
		"internal/cli/lockcmd":         {"internal/cli", "internal/cli/complete", "internal/engine", "internal/lock", "internal/process", "internal/registry", "internal/settings", "internal/ui"},
		"internal/cli/pickcmd":         {"internal/cli", "internal/cli/callcmd", "internal/engine", "internal/registry", "internal/ui/picker"},
		"internal/cli/pluginscmd":      {"internal/builtin", "internal/cli", "internal/cli/complete", "internal/cli/settingsfile", "internal/discover", "internal/engine", "internal/engine/sources", "internal/process", "internal/registry", "internal/settings", "internal/settings/document", "internal/trust", "internal/ui"},
		"internal/cli/policycmd":       {"internal/agents", "internal/builtin", "internal/cli", "internal/cli/complete", "internal/policy", "internal/settings", "internal/settings/document", "internal/trust"},
		"internal/cli/rpccmd":          {"internal/cli", "internal/cli/callcmd", "internal/cli/listcmd", "internal/cli/schemacmd", "internal/cli/searchcmd", "internal/cli/serverscmd", "internal/cli/whycmd", "internal/engine", "internal/exec", "internal/mcpclient", "internal/policy", "internal/process", "internal/provider", "internal/registry", "internal/rpc", "internal/ui"},
		"internal/cli/runcmd":          {"internal/args", "internal/cli", "internal/cli/callcmd", "internal/cli/complete", "internal/engine", "internal/exec", "internal/registry"},
		"internal/cli/schemacmd":       {"internal/cli", "internal/cli/complete", "internal/engine", "internal/jsonx", "internal/provider", "internal/provider/deferred", "internal/provider/lint", "internal/provider/local", "internal/registry", "internal/text", "internal/ui"},
		"internal/cli/searchcmd":       {"internal/cli", "internal/cli/complete", "internal/cli/schemacmd", "internal/engine", "internal/provider", "internal/registry", "internal/ui"},
		"internal/cli/servecmd":        {"internal/builtin", "internal/cli", "internal/cli/auditcmd", "internal/cli/complete", "internal/cli/listcmd", "internal/console", "internal/engine", "internal/engine/sources", "internal/lock", "internal/mcpclient", "internal/openapi", "internal/process", "internal/registry", "internal/serve", "internal/serve/auth", "internal/serve/offer", "internal/serve/question", "internal/serve/transport", "internal/settings", "internal/state", "internal/store", "internal/telemetry", "internal/ui/page"},
		"internal/cli/serverscmd":      {"internal/agents", "internal/args", "internal/atomicfile", "internal/cli", "internal/cli/complete", "internal/cli/settingsfile", "internal/engine", "internal/engine/sources", "internal/exec", "internal/form", "internal/install", "internal/jsonx", "internal/lock", "internal/mcpclient", "internal/mcpclient/wire", "internal/mcpregistry", "internal/oauth", "internal/openapi", "internal/registry", "internal/secret", "internal/serverjson", "internal/settings", "internal/settings/document", "internal/settings/edit", "internal/settings/imports", "internal/settings/table", "internal/text", "internal/toolscan", "internal/ui", "internal/ui/asking"},
		"internal/cli/settingscmd":     {"internal/cli", "internal/cli/complete", "internal/cli/settingsfile", "internal/settings", "internal/settings/edit", "internal/settings/merge", "internal/settings/table", "internal/ui"},
		"internal/cli/settingsfile":    {"internal/cli", "internal/cli/complete", "internal/registry", "internal/settings", "internal/settings/document", "internal/settings/edit", "internal/settings/layers", "internal/trust", "internal/ui"},
		"internal/cli/taskscmd":        {"internal/cli", "internal/cli/callcmd", "internal/cli/complete", "internal/engine", "internal/exec", "internal/mcpclient", "internal/registry", "internal/ui"},
		"internal/cli/trustcmd":        {"internal/cli", "internal/registry", "internal/settings", "internal/trust", "internal/ui"},
		"internal/cli/whycmd":          {"internal/args", "internal/cli", "internal/cli/approvalscmd", "internal/cli/complete", "internal/engine", "internal/exec", "internal/policy", "internal/registry", "internal/ui", "internal/ui/asking"},
		"internal/confine":             {"internal/confine/guards", "internal/git", "internal/policy", "internal/process", "internal/registry", "internal/sandbox", "internal/settings", "internal/settings/table", "internal/trust"},
		"internal/confine/guards":      {"internal/atomicfile", "internal/builtin/workspace", "internal/git", "internal/sandbox", "internal/state"},
		"internal/console":             {"internal/audit", "internal/exec", "internal/form", "internal/mcpclient/ask", "internal/ui", "internal/ui/asking"},
		"internal/discover":            {"internal/process", "internal/registry", "internal/settings", "internal/settings/document"},
		"internal/engine":              {"internal/audit", "internal/builtin", "internal/builtin/workspace", "internal/cache", "internal/confine", "internal/discover", "internal/engine/listing", "internal/engine/owner", "internal/engine/programs", "internal/engine/quota", "internal/engine/record", "internal/engine/rules", "internal/engine/sources", "internal/exec", "internal/hooks", "internal/lock", "internal/mcpclient", "internal/mcpclient/ask", "internal/middleware", "internal/openapi", "internal/overrides", "internal/policy", "internal/process", "internal/provider", "internal/provider/deferred", "internal/provider/restore", "internal/recording", "internal/registry", "internal/script", "internal/settings", "internal/settings/document", "internal/settings/merge", "internal/settings/table", "internal/settings/values", "internal/state", "internal/store", "internal/toolscan", "internal/toolsearch", "internal/trust"},
		"internal/engine/listing":      {"internal/cache", "internal/discover", "internal/mcpclient", "internal/openapi", "internal/process", "internal/registry", "internal/settings", "internal/settings/values", "internal/state"},
		"internal/engine/owner":        {"internal/lock", "internal/registry", "internal/settings", "internal/state", "internal/trust"},
		"internal/engine/programs":     {"internal/builtin/shell", "internal/confine", "internal/hooks", "internal/lock", "internal/process", "internal/registry", "internal/settings", "internal/settings/values", "internal/state"},
		"internal/engine/quota":        {"internal/exec", "internal/registry", "internal/settings", "internal/store"},
		"internal/engine/record":       {"internal/audit", "internal/exec", "internal/hooks", "internal/mcpclient", "internal/mcpclient/ask", "internal/policy", "internal/recording", "internal/registry", "internal/settings", "internal/state"},
		"internal/engine/rules":        {"internal/builtin", "internal/policy", "internal/registry", "internal/settings", "internal/settings/document"},
		"internal/engine/sources":      {"internal/builtin", "internal/confine", "internal/discover", "internal/engine/listing", "internal/engine/programs", "internal/mcpclient", "internal/mcpclient/ask", "internal/mcpclient/keep", "internal/mcpclient/wire", "internal/oauth", "internal/openapi", "internal/process", "internal/registry", "internal/settings", "internal/settings/document", "internal/settings/values", "internal/state", "internal/store", "internal/trust"},
		"internal/exec":                {"internal/policy", "internal/registry"},
		"internal/expand":              {},
		"internal/form":                {},
		"internal/git":                 {},
		"internal/hooks":               {"internal/process", "internal/registry"},
		"internal/jq":                  {"internal/process"},
		"internal/install":             {"internal/agents", "internal/args", "internal/bundle", "internal/engine/sources", "internal/expand", "internal/jsonx", "internal/mcpregistry", "internal/process", "internal/registry", "internal/secret", "internal/serverjson", "internal/settings", "internal/settings/edit", "internal/settings/imports", "internal/settings/table", "internal/settings/values", "internal/state", "internal/trust"},
		"internal/jsonx":               {},
		"internal/lazy":                {},
		"internal/lock":                {"internal/atomicfile", "internal/registry"},
		"internal/mcpclient":           {"internal/mcpclient/ask", "internal/mcpclient/content", "internal/mcpclient/keep", "internal/mcpclient/wire", "internal/process", "internal/registry", "internal/settings", "internal/settings/values"},
		"internal/mcpclient/ask":       {"internal/form", "internal/webaddr"},
		"internal/mcpclient/content":   {"internal/registry"},
		"internal/mcpclient/keep":      {"internal/mcpclient/ask", "internal/mcpclient/wire", "internal/process", "internal/registry", "internal/state", "internal/trust"},
		"internal/mcpclient/wire":      {"internal/mcpclient/ask", "internal/process", "internal/registry", "internal/settings", "internal/webaddr"},
		"internal/mcpregistry":         {"internal/registry", "internal/serverjson", "internal/webaddr"},
		"internal/mcptest":             {},
		"internal/memory":              {},
		"internal/middleware":          {"internal/registry", "internal/state"},
		"internal/oauth":               {"internal/registry", "internal/settings", "internal/settings/table", "internal/state", "internal/webaddr"},
		"internal/oauth/accesstoken":   {"internal/webaddr"},
		"internal/openapi":             {"internal/openapi/spec", "internal/registry", "internal/settings", "internal/settings/document", "internal/trust", "internal/webaddr"},
		"internal/openapi/spec":        {"internal/registry", "internal/settings/document"},
		"internal/overrides":           {"internal/registry", "internal/settings", "internal/settings/document"},
		"internal/policy":              {"internal/git", "internal/policy/shell", "internal/registry", "internal/state"},
		"internal/policy/shell":        {},
		"internal/process":             {"internal/sandbox"},
		"internal/provider":            {"internal/jsonx", "internal/provider/gemini", "internal/provider/local", "internal/provider/rewrite", "internal/provider/typescript", "internal/registry", "internal/schema"},
		"internal/provider/deferred":   {"internal/provider", "internal/registry"},
		"internal/provider/gemini":     {"internal/provider/rewrite"},
		"internal/provider/lint":       {"internal/provider", "internal/provider/gemini", "internal/registry"},
		"internal/provider/local":      {"internal/jsonx", "internal/schema"},
		"internal/provider/restore":    {"internal/jsonx", "internal/provider/gemini", "internal/registry", "internal/schema"},
		"internal/provider/rewrite":    {},
		"internal/provider/typescript": {},
		"internal/recording":           {"internal/registry"},
		"internal/registry":            {},
		"internal/rpc":                 {"internal/engine", "internal/exec", "internal/mcpclient", "internal/mcpclient/ask", "internal/mcpclient/content", "internal/provider/typescript", "internal/registry", "internal/ui/asking"},
		"internal/script":              {"internal/process", "internal/registry"},
		"internal/sandbox":             {"internal/sandbox/launcher", "internal/webaddr"},
		"internal/sandbox/launcher":    {},
		"internal/schema":              {},
		"internal/secret":              {},
		"internal/serve":               {"internal/engine", "internal/exec", "internal/mcpclient", "internal/mcpclient/wire", "internal/openapi", "internal/registry", "internal/serve/auth", "internal/serve/cluster", "internal/serve/current", "internal/serve/offer", "internal/serve/question", "internal/serve/replica", "internal/serve/task", "internal/serve/transport", "internal/store"},
		"internal/serve/auth":          {"internal/oauth/accesstoken", "internal/settings"},
		"internal/serve/cluster":       {"internal/store"},
		"internal/serve/current":       {"internal/engine", "internal/mcpclient", "internal/openapi", "internal/registry", "internal/serve/offer", "internal/serve/question"},
		"internal/serve/offer":         {"internal/engine", "internal/engine/owner", "internal/engine/sources", "internal/exec", "internal/mcpclient", "internal/mcpclient/wire", "internal/provider", "internal/registry"},
		"internal/serve/question":      {"internal/engine", "internal/exec", "internal/mcpclient", "internal/mcpclient/ask", "internal/mcpclient/wire", "internal/registry", "internal/serve/auth", "internal/serve/transport", "internal/state", "internal/store", "internal/ui/asking"},
		"internal/serve/replica":       {"internal/serve/auth", "internal/serve/cluster", "internal/serve/question", "internal/serve/task", "internal/serve/transport", "internal/store"},
		"internal/serve/task":          {"internal/mcpclient/wire", "internal/serve/auth", "internal/serve/question", "internal/serve/transport", "internal/store"},
		"internal/serve/transport":     {"internal/mcpclient/wire", "internal/serve/auth", "internal/webaddr"},
		"internal/serverjson":          {"internal/registry", "internal/webaddr"},
		"internal/settings":            {"internal/process", "internal/registry", "internal/settings/consent", "internal/settings/decode", "internal/settings/document", "internal/settings/imports", "internal/settings/layers", "internal/settings/merge", "internal/settings/table", "internal/trust"},
		"internal/settings/consent":    {"internal/process", "internal/settings/document", "internal/settings/layers", "internal/settings/table", "internal/trust"},
		"internal/settings/decode":     {"internal/settings/layers", "internal/settings/merge", "internal/settings/table"},
		"internal/settings/document":   {"internal/trust"},
		"internal/settings/edit":       {"internal/atomicfile", "internal/registry", "internal/settings/document", "internal/settings/layers", "internal/settings/table", "internal/trust"},
		"internal/settings/imports":    {"internal/registry", "internal/settings/document", "internal/settings/layers", "internal/settings/table", "internal/trust"},
		"internal/settings/layers":     {"internal/registry", "internal/settings/document", "internal/settings/table"},
		"internal/settings/merge":      {"internal/registry", "internal/settings/document", "internal/settings/layers", "internal/settings/table"},
		"internal/settings/table":      {"internal/process", "internal/settings/document", "internal/webaddr"},
		"internal/settings/values":     {"internal/process", "internal/settings", "internal/settings/table", "internal/trust"},
		"internal/stack":               {},
		"internal/store":               {},
		"internal/store/storetest":     {},
		"internal/state":               {"internal/atomicfile"},
		"internal/telemetry":           {"internal/secret"},
		"internal/text":                {},
		"internal/timing":              {},
		"internal/toolscan":            {},
		"internal/toolsearch":          {"internal/process", "internal/registry"},
		"internal/tracing":             {},
		"internal/trust":               {"internal/git", "internal/state"},
		"internal/ui":                  {"internal/process", "internal/registry", "internal/webaddr"},
		"internal/ui/asking":           {"internal/exec", "internal/form", "internal/mcpclient/ask", "internal/policy", "internal/registry", "internal/ui"},
		"internal/ui/markdown":         {"internal/ui"},
		"internal/ui/browsertest":      {},
		"internal/ui/page":             {"internal/ui"},
		"internal/ui/picker":           {"internal/ui"},
		"internal/ui/picture":          {},
		"internal/ui/ttytest":          {"internal/ui"},
		"internal/uri":                 {},
		"internal/webaddr":             {},
		"tools/house":                  {},
		"tools/mutants":                {},
		"tools/site":                   {},
		"tools/reference":              {"internal/builtin", "internal/cli", "internal/cli/commands", "internal/registry", "internal/settings/table"},
	}
}

// shared lists the packages that every other package may import.
func shared() []string {
	return []string{"internal/caller", "internal/expand", "internal/jq", "internal/jsonx", "internal/lazy", "internal/memory", "internal/schema", "internal/secret", "internal/stack", "internal/text", "internal/timing", "internal/tracing", "internal/uri"}
}

// forTests lists the packages that only tests import.
func forTests() []string {
	return []string{"internal/mcptest", "internal/builtin/tooltest", "internal/store/storetest", "internal/ui/ttytest"}
}

// soleImporters lists, for libraries that only a few packages should depend on,
// the packages that may import them.
func soleImporters() map[string][]string {
	return map[string][]string{
		"github.com/spf13/cobra":                   {"internal/cli", "internal/cli/*", "tools/reference"},
		"github.com/itchyny/gojq":                  {"internal/cli", "internal/discover", "internal/jq"},
		"github.com/spf13/viper":                   {"internal/settings"},
		"github.com/tailscale/hujson":              {"internal/settings/document", "internal/settings/edit"},
		"go.yaml.in/yaml/v3":                       {"internal/settings/document", "internal/settings/edit"},
		"github.com/santhosh-tekuri/jsonschema/v5": {"internal/registry"},
		"github.com/modelcontextprotocol/go-sdk":   {"internal/mcpclient", "internal/mcpclient/ask", "internal/mcpclient/keep", "internal/mcpclient/wire", "internal/mcptest", "internal/oauth", "internal/serve", "internal/serve/current", "internal/serve/offer", "internal/serve/question", "internal/serve/replica", "internal/serve/task", "internal/serve/transport"},
		"github.com/google/jsonschema-go":          {"internal/rpc"},
		"github.com/google/shlex":                  {"internal/process"},
		"code.dny.dev/ssrf":                        {"internal/webaddr"},
		"github.com/go-jose/go-jose/v4":            {"internal/oauth", "internal/oauth/accesstoken"},
		"github.com/gofrs/flock":                   {"internal/state"},
		"golang.org/x/mod":                         {"internal/registry"},
		"github.com/yuin/goldmark":                 {"internal/ui/markdown", "tools/reference", "tools/site"},
		"image":                                    {"internal/provider", "internal/ui/picture"},
		"mvdan.cc/sh/v3":                           {"internal/policy/shell", "internal/process"},
		"go.opentelemetry.io/otel":                 {"internal/telemetry", "internal/tracing"},
		"os/exec":                                  {"internal/mcptest", "internal/process", "internal/store/storetest", "internal/ui/browsertest", "tools/mutants"},
		"github.com/pelletier/go-toml/v2":          {"internal/agents"},
		"github.com/gomodule/redigo/redis":         {"internal/store", "internal/store/storetest"},
		"go.starlark.net":                          {"internal/agents", "internal/script"},
		// It calls methods by name, so the linker would keep every exported method, which
		// adds megabytes to the program.
		"text/template": nil,
		"html/template": {"tools/site"},
	}
}

func TestImports(t *testing.T) {
	t.Chdir(root)
	allowed, restricted := rooms(), soleImporters()
	found := map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for pkg, imports := range listPackages(t, system) {
			found[pkg] = true
			may, ok := allowed[pkg]
			if !ok {
				t.Errorf("package %q is not in rooms; add it there", pkg)
			}
			for _, imported := range imports {
				if own, ok := ownPackage(imported); ok && !mayImport(may, own) {
					t.Errorf("%s: %s must not import %s", system, pkg, own)
				}
				for library, importers := range restricted {
					if within(imported, library) && !matches(importers, pkg) {
						t.Errorf("%s: %s imports %s, which only %q may", system, pkg, imported, importers)
					}
				}
			}
		}
	}
	for pkg := range allowed {
		if !found[pkg] {
			t.Errorf("rooms has %q, which does not exist", pkg)
		}
	}
}

// listPackages maps each package of the module to its imports on one system, without
// those of its tests.
func listPackages(t *testing.T, system string) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running go list: %v", err)
	}
	packages := map[string][]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("reading the output of go list: %v", err)
		}
		own, _ := ownPackage(p.ImportPath)
		packages[own] = p.Imports
	}
}

// ownPackage returns the path of a package within this module.
func ownPackage(path string) (string, bool) {
	return strings.CutPrefix(path, module+"/")
}

func mayImport(may []string, own string) bool {
	return matches(may, own) || slices.Contains(shared(), own)
}

// matches reports whether a list contains a package; "x/*" means the packages below x.
func matches(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(one string) bool {
		parent, all := strings.CutSuffix(one, "/*")
		return one == pkg || all && strings.HasPrefix(pkg, parent+"/")
	})
}

func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

// TestHabits checks that the process exits in one place, that root contexts are created
// only in main, that no init function runs before it, and that exported names have
// comments.
func TestHabits(t *testing.T) {
	t.Chdir(root)
	var exits []string
	for path, file := range parseSources(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		mayRoot := path == mainFile || slices.Contains(forTests(), dir) // these run as processes of their own
		ast.Inspect(file.tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				switch selected(n) {
				case "os.Exit":
					exits = append(exits, path)
				case "context.Background", "context.TODO":
					if !mayRoot {
						t.Errorf("%s: a root context outside main; take ctx as a parameter", file.at(n))
					}
				}
			case *ast.FuncDecl:
				// The launcher must take over before other packages are initialized.
				if n.Name.Name == "init" && n.Recv == nil && dir != "internal/sandbox/launcher" {
					t.Errorf("%s: func init runs at every start; call a function where it is needed", file.at(n))
				}
			}
			return true
		})
		for _, name := range undocumented(file.tree) {
			t.Errorf("%s: %s is exported and has no comment", file.at(name), name.Name)
		}
	}
	if !slices.Equal(exits, []string{mainFile}) {
		t.Errorf("os.Exit belongs in %s, once; found in %q", mainFile, exits)
	}
}

var mainFile = filepath.Join("cmd", "toolreg", "main.go")

func selected(n *ast.SelectorExpr) string {
	if x, ok := n.X.(*ast.Ident); ok {
		return x.Name + "." + n.Sel.Name
	}
	return ""
}

// undocumented returns the exported names of a file without a comment of their own or of
// their group, except the methods of errors, which implement standard interfaces.
func undocumented(file *ast.File) []*ast.Ident {
	var names []*ast.Ident
	check := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		if name.IsExported() && !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c != nil }) {
			names = append(names, name)
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || receiver(d).IsExported() && !slices.Contains([]string{"Error", "Unwrap"}, d.Name.Name) {
				check(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					check(s.Name, d.Doc, s.Doc, s.Comment)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						check(name, d.Doc, s.Doc, s.Comment)
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type that a method belongs to.
func receiver(method *ast.FuncDecl) *ast.Ident {
	for typ := method.Recv.List[0].Type; ; {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t
		}
	}
}

// changing lists the package variables that may change, because they describe something
// that exists once per process.
func changing() []string {
	return []string{
		"internal/process.forking",        // the thread that starts all children
		"internal/process.goingOn",        // the sessions that outlive the run
		"internal/sandbox/launcher.empty", // system calls get its address, and do not write to it
	}
}

// TestPackageVariables checks that package variables keep their first value: no
// function assigns to them or takes their address, which includes calling methods
// that have pointer receivers.
func TestPackageVariables(t *testing.T) {
	t.Chdir(root)
	packages := map[string][]source{}
	for path, file := range parseSources(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		packages[dir] = append(packages[dir], file)
	}
	var known []string
	for dir, files := range packages {
		for name, at := range changedVariables(dir, files) {
			if slices.Contains(changing(), dir+"."+name) {
				known = append(known, dir+"."+name)
			} else {
				t.Errorf("%s: the package variable %s changes; keep it in a value that is passed on", at, name)
			}
		}
	}
	if slices.Sort(known); !slices.Equal(known, changing()) {
		t.Errorf("changing lists variables that do not change; only %q do", known)
	}
}

// changedVariables returns where the variables of a package change, by their names.
func changedVariables(dir string, files []source) map[string]string {
	var trees []*ast.File
	for _, file := range files {
		trees = append(trees, file.tree)
	}
	// Ignore errors: imports are not loaded, and the files are for several systems. The
	// package's own names are resolved nevertheless.
	info := types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	pkg, _ := (&types.Config{Error: func(error) {}}).Check(dir, files[0].set, trees, &info)
	found := map[string]string{}
	changes := func(e ast.Expr) {
		name := variable(e)
		if v, ok := info.Uses[name].(*types.Var); ok && v.Parent() == pkg.Scope() {
			found[v.Name()] = files[0].at(e)
		}
	}
	for _, tree := range trees {
		for _, spec := range valueSpecs(tree) {
			// Types of sync and sync/atomic are meant to change, unlike results of OnceValue.
			if typ, ok := spec.Type.(*ast.SelectorExpr); ok && slices.Contains([]string{"sync", "atomic"}, types.ExprString(typ.X)) {
				found[spec.Names[0].Name] = files[0].at(spec)
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					changes(left)
				}
			case *ast.RangeStmt:
				changes(n.Key)
				changes(n.Value)
			case *ast.IncDecStmt:
				changes(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					changes(n.X)
				}
			case *ast.SelectorExpr:
				if s := info.Selections[n]; s != nil && s.Kind() == types.MethodVal && !isPointer(s.Recv()) && isPointer(s.Obj().(*types.Func).Signature().Recv().Type()) {
					changes(n.X)
				}
			}
			return true
		})
	}
	return found
}

// variable returns the variable that an expression is or is a part of; nil if there is
// none, or if the expression refers to something outside of the variable.
func variable(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		default:
			return nil
		}
	}
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

func valueSpecs(tree *ast.File) []*ast.ValueSpec {
	var specs []*ast.ValueSpec
	for _, decl := range tree.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
			for _, spec := range d.Specs {
				specs = append(specs, spec.(*ast.ValueSpec))
			}
		}
	}
	return specs
}

// source is a parsed file.
type source struct {
	set  *token.FileSet
	tree *ast.File
}

func (s source) at(n ast.Node) string { return s.set.Position(n.Pos()).String() }

// parseSources returns every Go file except tests, by path.
func parseSources(t *testing.T) map[string]source {
	t.Helper()
	set, sources := token.NewFileSet(), map[string]source{}
	for _, root := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return filepath.SkipDir
			case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			tree, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			sources[path] = source{set, tree}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return sources
}
