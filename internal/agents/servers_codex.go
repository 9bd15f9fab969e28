package agents

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/text"
)

// Limits on TOML files. They are necessary because the parser is recursive.
const (
	maxTOML  = 1 << 20 // bytes
	maxDepth = 64      // maximum nesting of brackets
)

// codexFiles returns Codex's files, which are TOML.
func codexFiles(w folders) []imports.File {
	return []imports.File{w.project(readCodexServers, ".codex", "config.toml"),
		w.user(readCodexServers, w.named("CODEX_HOME", ".codex"), "config.toml")}
}

// codexServer is a table mcp_servers.NAME.
type codexServer struct {
	Command           string            `toml:"command"`
	Args              []string          `toml:"args"`
	Env               map[string]string `toml:"env"`
	EnvVars           []any             `toml:"env_vars"`
	Cwd               string            `toml:"cwd"`
	URL               string            `toml:"url"`
	BearerTokenEnvVar string            `toml:"bearer_token_env_var"`
	HTTPHeaders       map[string]string `toml:"http_headers"`
	EnvHTTPHeaders    map[string]string `toml:"env_http_headers"`
	StartupTimeoutSec *float64          `toml:"startup_timeout_sec"`
	StartupTimeoutMs  *int64            `toml:"startup_timeout_ms"`
	ToolTimeoutSec    *float64          `toml:"tool_timeout_sec"`
	Enabled           *bool             `toml:"enabled"`
	EnabledTools      *[]string         `toml:"enabled_tools"`
	DisabledTools     []string          `toml:"disabled_tools"`
	Auth              string            `toml:"auth"`
	HeadersHelper     any               `toml:"http_headers_helper"`
	Scopes            []string          `toml:"scopes"`
	Resource          string            `toml:"oauth_resource"`
	OAuth             struct {
		ClientID    string `toml:"client_id"`
		CallbackURL string `toml:"callback_url"`
	} `toml:"oauth"`
}

func readCodexServers(_ *document.Foreign, path string, data []byte) ([]imports.Server, []document.Problem) {
	var file struct {
		Servers map[string]any `toml:"mcp_servers"`
	}
	if problems := unmarshalTOML(path, data, &file); problems != nil {
		return nil, problems
	}
	var out []imports.Server
	names := tables(text.WithoutMark(data))
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) { // servers of an inline table have no position of their own
		if !slices.ContainsFunc(names, func(m jsonx.Member) bool { return m.Name == name }) {
			names = append(names, jsonx.Member{Name: name, Pos: jsonx.NewPos(1, 1)})
		}
	}
	for _, name := range names {
		table, known := file.Servers[name.Name]
		if !known {
			continue
		}
		fields, _ := table.(map[string]any)
		if on, ok := fields["enabled"].(bool); ok && len(fields) == 1 {
			out = append(out, imports.Server{Name: name.Name, Pos: name.Pos, Enabled: &on})
			continue
		}
		e, why := codexEntry(table)
		out = append(out, imported(name, e, unchanged, why))
	}
	return out, nil
}

// checkNesting rejects files that could exhaust the stack of the parser.
func checkNesting(data []byte) error {
	if len(data) > maxTOML {
		return errors.New("is larger than 1 MiB")
	}
	depth := 0
	for line := range bytes.Lines(data) {
		if bytes.Count(line, []byte(".")) > 10_000 {
			return errors.New("a line has too many dots")
		}
		for _, c := range line {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			}
			if depth > maxDepth {
				return fmt.Errorf("more than %d brackets are open at once", maxDepth)
			}
		}
	}
	return nil
}

// tables returns the names below mcp_servers with the place where each first
// occurs, in file order.
func tables(data []byte) []jsonx.Member {
	var out []jsonx.Member
	seen := map[string]bool{}
	var p unstable.Parser
	p.Reset(data)
	inServers := false
	for p.NextExpression() {
		e := p.Expression()
		path, at := keyPath(e)
		if e.Kind == unstable.Table || e.Kind == unstable.ArrayTable {
			inServers = len(path) == 1 && path[0] == "mcp_servers"
		} else if inServers {
			path = append([]string{"mcp_servers"}, path...)
		}
		if len(path) < 2 || path[0] != "mcp_servers" || seen[path[1]] {
			continue
		}
		seen[path[1]] = true
		start := p.Shape(at).Start
		out = append(out, jsonx.Member{Name: path[1], Pos: jsonx.NewPos(start.Line, start.Column)})
	}
	return out
}

// keyPath returns the first two parts of an expression's key, and the position of
// the second.
func keyPath(e *unstable.Node) (path []string, at unstable.Range) {
	for keys := e.Key(); len(path) < 2 && keys.Next(); {
		path, at = append(path, string(keys.Node().Data)), keys.Node().Raw
	}
	return path, at
}

func codexEntry(table any) (entry, string) {
	var s codexServer
	data, err := toml.Marshal(table)
	if err == nil {
		err = toml.Unmarshal(data, &s)
	}
	if err != nil {
		problem := "its table does not have the expected form"
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			problem += ": unexpected value in " + strings.Join(at.Key(), ".")
		}
		return entry{}, problem
	}
	e := entry{Command: s.Command, Args: s.Args, Env: sortedPairs(s.Env),
		Cwd: s.Cwd, URL: s.URL, Headers: sortedPairs(s.HTTPHeaders),
		IncludeTools: s.EnabledTools, ExcludeTools: s.DisabledTools, Disabled: s.Enabled != nil && !*s.Enabled}
	if l := (login{ClientID: s.OAuth.ClientID, RedirectURI: s.OAuth.CallbackURL,
		Scopes: s.Scopes, Resource: s.Resource}); e.Command == "" && !l.isEmpty() {
		e.OAuth = &l
	}
	switch {
	case s.Command == "" && s.URL == "":
		return e, "it has no command and no url; parts of an entry in another file are not merged"
	case s.HeadersHelper != nil:
		return e, "http_headers_helper is not supported; use cmd:COMMAND as a value in headers"
	case s.Auth != "" && s.Auth != "oauth":
		return e, "auth is not supported, except oauth"
	}
	if err := e.expand(plain); err != nil { // the other fields are names of variables
		return e, err.Error()
	}
	e.Timeout, e.ConnectTimeout = seconds(s.ToolTimeoutSec), seconds(s.StartupTimeoutSec)
	if s.StartupTimeoutMs != nil {
		e.ConnectTimeout = *s.StartupTimeoutMs
	}
	return e, s.addVariables(&e)
}

// addVariables adds the values that the table takes from environment variables. It
// returns a problem if a name is invalid, or "".
func (s *codexServer) addVariables(e *entry) string {
	for _, v := range s.EnvVars {
		name, ok := v.(string)
		if table, isTable := v.(map[string]any); isTable {
			name, ok = table["name"].(string)
		}
		if !ok || !expand.IsName(name) {
			return "env_vars contains an invalid variable name"
		}
		e.Env = append(e.Env, pair{name, "${" + name + ":-}"})
	}
	if name := s.BearerTokenEnvVar; name != "" {
		if !expand.IsName(name) {
			return "bearer_token_env_var is not a valid variable name"
		}
		e.Headers = append(e.Headers, pair{"Authorization", "Bearer ${" + name + "}"})
	}
	for _, h := range sortedPairs(s.EnvHTTPHeaders) {
		if !expand.IsName(h.value) {
			return "env_http_headers contains an invalid variable name"
		}
		e.Headers = append(e.Headers, pair{h.name, "${" + h.value + "}"})
	}
	return ""
}

// unchanged is the dialect of strings that already have toolreg's syntax.
func unchanged(s string, _ bool) (string, error) { return s, nil }

// sortedPairs returns a table, which is unordered, sorted by name.
func sortedPairs(m map[string]string) pairs {
	var out pairs
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, pair{name, m[name]})
	}
	return out
}

func seconds(s *float64) any {
	if s == nil {
		return nil
	}
	return strconv.FormatFloat(*s, 'f', -1, 64) + "s"
}

// unmarshalTOML reads a TOML file of another program within the limits of this
// package.
func unmarshalTOML(path string, data []byte, v any) []document.Problem {
	data = text.WithoutMark(data)
	p := document.Problem{File: path, Message: "invalid TOML"}
	if err := checkNesting(data); err != nil {
		p.Message = err.Error()
	} else if err := toml.Unmarshal(data, v); err == nil {
		return nil
	} else if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		p.Line, p.Col = at.Position()
	}
	return []document.Problem{p}
}
