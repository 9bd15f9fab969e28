// Package toolreg_test holds the rules of the house: which package may import
// what, and what no package does. docs/ARCHITECTURE.md gives the reasons.
package toolreg_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
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

// rooms lists every package with the packages of this module that it may
// import, beside those that all share; "x/*" stands for the packages below x.
func rooms() map[string][]string {
	return map[string][]string{
		"":                             {},
		"cmd/toolreg":                  {"internal/cli", "internal/cli/commands"},
		"internal/agents":              {"internal/policy", "internal/policy/shellline", "internal/registry", "internal/settings", "internal/settings/document"},
		"internal/args":                {"internal/registry"},
		"internal/atomicfile":          {},
		"internal/audit":               {"internal/state"},
		"internal/builtin":             {"internal/builtin/file", "internal/builtin/search", "internal/builtin/shell", "internal/builtin/todo", "internal/builtin/web", "internal/builtin/workspace", "internal/registry"},
		"internal/builtin/file":        {"internal/atomicfile", "internal/builtin/textfile", "internal/builtin/tool", "internal/builtin/workspace", "internal/registry"},
		"internal/builtin/glob":        {},
		"internal/builtin/search":      {"internal/builtin/glob", "internal/builtin/textfile", "internal/builtin/tool", "internal/builtin/workspace", "internal/registry"},
		"internal/builtin/shell":       {"internal/atomicfile", "internal/builtin/tool", "internal/builtin/workspace", "internal/process", "internal/registry", "internal/sandbox"},
		"internal/builtin/textfile":    {},
		"internal/builtin/todo":        {"internal/builtin/tool", "internal/builtin/workspace", "internal/registry", "internal/state"},
		"internal/builtin/tool":        {"internal/registry"},
		"internal/builtin/tooltest":    {"internal/registry"},
		"internal/builtin/web":         {"internal/builtin/textfile", "internal/builtin/tool", "internal/process", "internal/registry", "internal/state", "internal/webaddr"},
		"internal/builtin/workspace":   {"internal/atomicfile", "internal/builtin/glob", "internal/builtin/tool", "internal/registry"},
		"internal/cache":               {"internal/process", "internal/registry", "internal/state", "internal/trust"},
		"internal/caller":              {},
		"internal/cli":                 {"internal/agents", "internal/args", "internal/audit", "internal/builtin", "internal/cache", "internal/cli/commandline", "internal/cli/complete", "internal/cli/helppage", "internal/cli/pipe", "internal/columns", "internal/exec", "internal/mcpclient", "internal/mcpclient/ask", "internal/policy", "internal/process", "internal/provider", "internal/registry", "internal/screen", "internal/session", "internal/session/recorder", "internal/settings", "internal/settings/document", "internal/settings/table", "internal/state", "internal/terminal", "internal/trust"},
		"internal/cli/approvalscmd":    {"internal/cli", "internal/cli/complete", "internal/columns", "internal/policy", "internal/session/rules", "internal/settings"},
		"internal/cli/auditcmd":        {"internal/audit", "internal/cli", "internal/cli/complete", "internal/columns", "internal/registry"},
		"internal/cli/cachecmd":        {"internal/cli", "internal/columns", "internal/session"},
		"internal/cli/callcmd":         {"internal/args", "internal/cli", "internal/cli/commandline", "internal/cli/complete", "internal/cli/content", "internal/exec", "internal/form", "internal/markdown", "internal/picture", "internal/policy", "internal/provider", "internal/registry", "internal/screen", "internal/session", "internal/terminal"},
		"internal/cli/commandline":     {"internal/args", "internal/registry", "internal/terminal"},
		"internal/cli/commands":        {"internal/cli", "internal/cli/*"},
		"internal/cli/complete":        {"internal/args", "internal/builtin", "internal/provider", "internal/registry", "internal/session", "internal/settings", "internal/settings/table"},
		"internal/cli/completioncmd":   {"internal/cli", "internal/cli/complete", "internal/terminal"},
		"internal/cli/content":         {"internal/args", "internal/cli", "internal/cli/commandline", "internal/columns", "internal/registry", "internal/terminal"},
		"internal/cli/discovercmd":     {"internal/cli", "internal/cli/complete", "internal/columns", "internal/registry", "internal/session"},
		"internal/cli/doctorcmd":       {"internal/audit", "internal/builtin", "internal/cli", "internal/cli/commandline", "internal/cli/settingsfile", "internal/columns", "internal/confine", "internal/hooks", "internal/mcpclient", "internal/process", "internal/registry", "internal/session", "internal/session/recorder", "internal/settings", "internal/settings/values", "internal/state", "internal/terminal"},
		"internal/cli/helppage":        {"internal/terminal"},
		"internal/cli/initcmd":         {"internal/agents", "internal/cli", "internal/cli/complete", "internal/cli/settingsfile", "internal/settings", "internal/settings/edit", "internal/settings/folders", "internal/settings/table", "internal/terminal"},
		"internal/cli/listcmd":         {"internal/args", "internal/audit", "internal/cli", "internal/cli/commandline", "internal/cli/complete", "internal/cli/content", "internal/columns", "internal/lock", "internal/policy", "internal/provider", "internal/provider/deferred", "internal/registry", "internal/session", "internal/settings", "internal/terminal", "internal/webpage"},
		"internal/cli/lockcmd":         {"internal/cli", "internal/cli/complete", "internal/lock", "internal/process", "internal/registry", "internal/session", "internal/settings", "internal/terminal"},
		"internal/cli/pickcmd":         {"internal/cli", "internal/cli/callcmd", "internal/cli/content", "internal/picker", "internal/registry", "internal/session"},
		"internal/cli/pipe":            {},
		"internal/cli/pluginscmd":      {"internal/builtin", "internal/cli", "internal/cli/complete", "internal/columns", "internal/discover", "internal/registry", "internal/session", "internal/session/plugins", "internal/settings/document", "internal/settings/folders"},
		"internal/cli/policycmd":       {"internal/agents", "internal/cli", "internal/cli/complete", "internal/policy", "internal/settings", "internal/settings/document", "internal/trust"},
		"internal/cli/schemacmd":       {"internal/cli", "internal/cli/complete", "internal/provider", "internal/provider/deferred", "internal/provider/lint", "internal/registry", "internal/session", "internal/terminal"},
		"internal/cli/searchcmd":       {"internal/cli", "internal/cli/complete", "internal/cli/schemacmd", "internal/columns", "internal/provider", "internal/registry", "internal/session"},
		"internal/cli/servecmd":        {"internal/cli", "internal/cli/complete", "internal/lock", "internal/process", "internal/registry", "internal/serve", "internal/session", "internal/settings", "internal/state"},
		"internal/cli/serverscmd":      {"internal/agents", "internal/args", "internal/cli", "internal/cli/complete", "internal/cli/content", "internal/cli/settingsfile", "internal/columns", "internal/exec", "internal/mcpclient", "internal/mcpclient/transport", "internal/oauth", "internal/registry", "internal/session", "internal/settings", "internal/settings/document", "internal/settings/edit", "internal/settings/folders", "internal/terminal"},
		"internal/cli/settingscmd":     {"internal/cli", "internal/cli/complete", "internal/cli/settingsfile", "internal/columns", "internal/settings", "internal/settings/edit", "internal/settings/table"},
		"internal/cli/settingsfile":    {"internal/cli", "internal/cli/complete", "internal/registry", "internal/settings", "internal/settings/edit", "internal/settings/folders", "internal/terminal", "internal/trust"},
		"internal/cli/trustcmd":        {"internal/cli", "internal/registry", "internal/settings", "internal/terminal", "internal/trust"},
		"internal/cli/whycmd":          {"internal/args", "internal/cli", "internal/cli/approvalscmd", "internal/cli/complete", "internal/cli/content", "internal/exec", "internal/policy", "internal/registry", "internal/session", "internal/terminal"},
		"internal/columns":             {"internal/terminal"},
		"internal/confine":             {"internal/builtin/workspace", "internal/policy", "internal/process", "internal/registry", "internal/sandbox", "internal/settings", "internal/settings/document", "internal/settings/table"},
		"internal/discover":            {"internal/process", "internal/registry", "internal/settings", "internal/settings/document"},
		"internal/exec":                {"internal/policy", "internal/registry"},
		"internal/expand":              {},
		"internal/form":                {},
		"internal/hooks":               {"internal/process", "internal/registry"},
		"internal/jq":                  {},
		"internal/jsonx":               {},
		"internal/lock":                {"internal/atomicfile", "internal/registry"},
		"internal/markdown":            {"internal/terminal"},
		"internal/mcpclient":           {"internal/mcpclient/ask", "internal/mcpclient/content", "internal/mcpclient/transport", "internal/process", "internal/registry", "internal/settings", "internal/settings/values"},
		"internal/mcpclient/ask":       {"internal/form", "internal/webaddr"},
		"internal/mcpclient/content":   {"internal/registry"},
		"internal/mcpclient/transport": {"internal/mcpclient/ask", "internal/process", "internal/registry", "internal/settings", "internal/webaddr"},
		"internal/mcptest":             {},
		"internal/memory":              {},
		"internal/middleware":          {"internal/registry", "internal/state"},
		"internal/oauth":               {"internal/registry", "internal/settings", "internal/state", "internal/webaddr"},
		"internal/overrides":           {"internal/registry", "internal/settings", "internal/settings/document"},
		"internal/paths":               {},
		"internal/picker":              {"internal/terminal"},
		"internal/picture":             {},
		"internal/policy":              {"internal/policy/shellline", "internal/registry", "internal/state"},
		"internal/policy/shellline":    {"internal/registry"},
		"internal/process":             {"internal/sandbox"},
		"internal/provider":            {"internal/provider/gemini", "internal/provider/rewrite", "internal/provider/typescript", "internal/registry"},
		"internal/provider/deferred":   {"internal/provider", "internal/registry"},
		"internal/provider/gemini":     {"internal/provider/rewrite"},
		"internal/provider/lint":       {"internal/provider", "internal/provider/gemini", "internal/registry"},
		"internal/provider/rewrite":    {},
		"internal/provider/typescript": {},
		"internal/registry":            {"internal/sandbox"},
		"internal/sandbox":             {"internal/sandbox/launcher", "internal/webaddr"},
		"internal/sandbox/launcher":    {},
		"internal/schema":              {},
		"internal/screen":              {"internal/mcpclient", "internal/registry", "internal/terminal"},
		"internal/secret":              {},
		"internal/serve":               {"internal/exec", "internal/mcpclient", "internal/mcpclient/ask", "internal/mcpclient/transport", "internal/provider", "internal/registry", "internal/session", "internal/state", "internal/terminal"},
		"internal/session":             {"internal/builtin", "internal/cache", "internal/confine", "internal/discover", "internal/exec", "internal/hooks", "internal/lock", "internal/mcpclient", "internal/mcpclient/ask", "internal/mcpclient/transport", "internal/oauth", "internal/overrides", "internal/policy", "internal/process", "internal/provider", "internal/provider/deferred", "internal/registry", "internal/session/listings", "internal/session/plugins", "internal/session/recorder", "internal/session/rules", "internal/session/sampling", "internal/session/tooloptions", "internal/session/unmatched", "internal/settings", "internal/settings/document", "internal/settings/folders", "internal/settings/values", "internal/state", "internal/toolsearch"},
		"internal/session/listings":    {"internal/cache", "internal/discover", "internal/mcpclient", "internal/process", "internal/registry", "internal/settings", "internal/settings/values", "internal/state"},
		"internal/session/plugins":     {"internal/builtin", "internal/discover", "internal/registry", "internal/session/listings", "internal/settings", "internal/settings/document", "internal/settings/folders", "internal/settings/values", "internal/trust"},
		"internal/session/recorder":    {"internal/audit", "internal/exec", "internal/hooks", "internal/mcpclient/ask", "internal/registry", "internal/session/tooloptions", "internal/settings", "internal/state"},
		"internal/session/rules":       {"internal/builtin", "internal/policy", "internal/registry", "internal/settings", "internal/settings/document", "internal/state", "internal/trust"},
		"internal/session/sampling":    {"internal/exec", "internal/mcpclient/ask", "internal/policy", "internal/process", "internal/registry", "internal/settings", "internal/settings/values"},
		"internal/session/tooloptions": {"internal/middleware", "internal/overrides", "internal/provider", "internal/registry", "internal/settings", "internal/state"},
		"internal/session/unmatched":   {"internal/hooks", "internal/registry", "internal/session/plugins", "internal/settings"},
		"internal/settings":            {"internal/process", "internal/registry", "internal/settings/consent", "internal/settings/document", "internal/settings/folders", "internal/settings/table", "internal/trust"},
		"internal/settings/consent":    {"internal/process", "internal/settings/document", "internal/settings/table", "internal/trust"},
		"internal/settings/document":   {"internal/trust"},
		"internal/settings/edit":       {"internal/atomicfile", "internal/settings", "internal/settings/document", "internal/trust"},
		"internal/settings/folders":    {"internal/settings/document", "internal/trust"},
		"internal/settings/table":      {"internal/process", "internal/settings/document"},
		"internal/settings/values":     {"internal/process", "internal/settings", "internal/settings/table", "internal/trust"},
		"internal/sorted":              {},
		"internal/stack":               {},
		"internal/state":               {"internal/atomicfile"},
		"internal/terminal":            {"internal/exec", "internal/form", "internal/policy", "internal/process", "internal/registry", "internal/webaddr"},
		"internal/text":                {},
		"internal/toolsearch":          {"internal/process", "internal/registry"},
		"internal/trust":               {"internal/state"},
		"internal/webaddr":             {},
		"internal/webpage":             {"internal/terminal"},
		"tools/measure":                {},
		"tools/reference":              {"internal/builtin", "internal/cli", "internal/cli/commands", "internal/cli/helppage", "internal/registry", "internal/settings/table"},
	}
}

// shared lists the packages of words and texts that every other may import.
func shared() []string {
	return []string{"internal/caller", "internal/expand", "internal/jq", "internal/jsonx", "internal/memory", "internal/paths", "internal/schema", "internal/secret", "internal/sorted", "internal/stack", "internal/text"}
}

// forTests lists the packages that only tests import.
func forTests() []string { return []string{"internal/mcptest", "internal/builtin/tooltest"} }

// soleImporters lists, for packages that are to stay behind one door, who may
// import them.
func soleImporters() map[string][]string {
	return map[string][]string{
		"github.com/spf13/cobra":                   {"internal/cli", "internal/cli/*", "tools/reference"},
		"github.com/itchyny/gojq":                  {"internal/cli", "internal/discover", "internal/jq"},
		"github.com/spf13/viper":                   {"internal/settings"},
		"github.com/tailscale/hujson":              {"internal/settings/document", "internal/settings/edit"},
		"go.yaml.in/yaml/v3":                       {"internal/settings/document", "internal/settings/edit"},
		"github.com/santhosh-tekuri/jsonschema/v5": {"internal/registry"},
		"github.com/modelcontextprotocol/go-sdk":   {"internal/mcpclient", "internal/mcpclient/ask", "internal/mcpclient/transport", "internal/oauth", "internal/mcptest", "internal/serve"},
		"github.com/google/shlex":                  {"internal/process"},
		"code.dny.dev/ssrf":                        {"internal/webaddr"},
		"github.com/gofrs/flock":                   {"internal/state"},
		"golang.org/x/mod":                         {"internal/registry"},
		"github.com/yuin/goldmark":                 {"internal/markdown", "tools/reference"},
		"image":                                    {"internal/picture"},
		"mvdan.cc/sh/v3":                           {"internal/policy/shellline", "internal/process"},
		"os/exec":                                  {"internal/process"},
		"github.com/pelletier/go-toml/v2":          {"internal/agents"},
		// It calls methods by name, for which the linker keeps every exported
		// method of the program: megabytes.
		"text/template": nil,
		"html/template": nil,
	}
}

func TestImports(t *testing.T) {
	allowed, doors := rooms(), soleImporters()
	found := map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for pkg, imports := range listPackages(t, system) {
			found[pkg] = true
			may, ok := allowed[pkg]
			if !ok {
				t.Errorf("package %q is not in the table of rooms; add it there and to docs/ARCHITECTURE.md", pkg)
			}
			for _, imported := range imports {
				if own, ok := ownPackage(imported); ok && !mayImport(may, own) {
					t.Errorf("%s: %s must not import %s", system, pkg, own)
				}
				for door, keepers := range doors {
					if within(imported, door) && !matches(keepers, pkg) {
						t.Errorf("%s: %s imports %s, which is for %q alone", system, pkg, imported, keepers)
					}
				}
			}
		}
	}
	for pkg := range allowed {
		if !found[pkg] {
			t.Errorf("the table of rooms names %q, which is not there", pkg)
		}
	}
}

// listPackages maps each package of the module to what it imports when built
// for one system, tests apart.
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
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func mayImport(may []string, own string) bool {
	return matches(may, own) || slices.Contains(shared(), own)
}

// matches reports whether a list of packages holds one; "x/*" is those below x.
func matches(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(one string) bool {
		parent, all := strings.CutSuffix(one, "/*")
		return one == pkg || all && strings.HasPrefix(pkg, parent+"/")
	})
}

func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

// TestHabits looks for what is done in one place only, or nowhere.
func TestHabits(t *testing.T) {
	var exits []string
	eachSource(t, func(path string, files *token.FileSet, file *ast.File) {
		at := func(n ast.Node) string { return files.Position(n.Pos()).String() }
		mayRoot := path == filepath.Join("cmd", "toolreg", "main.go") ||
			slices.Contains(forTests(), filepath.ToSlash(filepath.Dir(path))) // a process of its own
		if lines := files.Position(file.End()).Line; lines > 450 {
			t.Errorf("%s has %d lines, 450 are the limit", path, lines)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				switch selected(n) {
				case "os.Exit":
					exits = append(exits, at(n))
				case "context.Background", "context.TODO":
					if !mayRoot {
						t.Errorf("%s: a root context outside main; take ctx as a parameter", at(n))
					}
				}
			case *ast.FuncDecl:
				// The launcher must take over before other packages are initialized.
				if n.Name.Name == "init" && n.Recv == nil && path != filepath.Join("internal", "sandbox", "launcher", "launcher_linux.go") {
					t.Errorf("%s: func init runs at every start; call a function where it is needed", at(n))
				}
				if lines := files.Position(n.End()).Line - files.Position(n.Pos()).Line + 1; lines > 80 {
					t.Errorf("%s: %s has %d lines, 80 are the limit", at(n), n.Name.Name, lines)
				}
			case *ast.InterfaceType:
				if methods := n.Methods.NumFields(); methods > 3 {
					t.Errorf("%s: an interface of %d methods, 3 are the limit", at(n), methods)
				}
			}
			return true
		})
	})
	if len(exits) != 1 || !strings.HasPrefix(exits[0], filepath.Join("cmd", "toolreg", "main.go")+":") {
		t.Errorf("os.Exit belongs in cmd/toolreg/main.go, once; found at %v", exits)
	}
}

func selected(n *ast.SelectorExpr) string {
	if x, ok := n.X.(*ast.Ident); ok {
		return x.Name + "." + n.Sel.Name
	}
	return ""
}

// eachSource parses every Go file that is no test.
func eachSource(t *testing.T, visit func(path string, files *token.FileSet, file *ast.File)) {
	t.Helper()
	files := token.NewFileSet()
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
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			visit(path, files, file)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
