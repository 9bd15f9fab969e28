package agents

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/text"
)

// server has the fields of a server in the JSON files of all programs.
type server struct {
	login login // read separately

	// Of a server over stdio.
	Command     json.RawMessage `json:"command"` // a string, or in some programs a list or an object
	Args        []string        `json:"args"`
	Env         pairs           `json:"env"`
	Environment pairs           `json:"environment"`
	EnvFile     string          `json:"envFile"`
	Cwd         string          `json:"cwd"`
	Sandboxed   bool            `json:"sandboxEnabled"`

	// Of a remote server.
	URL           string `json:"url"`
	HTTPURL       string `json:"httpUrl"`
	ServerURL     string `json:"serverUrl"`
	BaseURL       string `json:"baseUrl"`
	Headers       pairs  `json:"headers"`
	HeadersHelper string `json:"headersHelper"`
	AuthProvider  string `json:"authProviderType"`
	BearerToken   string `json:"bearerToken"`
	BearerEnv     string `json:"bearerTokenEnv"`

	Type          string          `json:"type"`
	Transport     any             `json:"transport"`
	Timeout       any             `json:"timeout"`
	Trust         bool            `json:"trust"`
	Description   string          `json:"description"`
	IncludeTools  *[]string       `json:"includeTools"`
	Tools         json.RawMessage `json:"tools"`
	ExcludeTools  []string        `json:"excludeTools"`
	DisabledTools []string        `json:"disabledTools"`
	AllowedTools  *[]string       `json:"allowedTools"`
	BlockedTools  []string        `json:"blockedTools"`
	OAuth         json.RawMessage `json:"oauth"`
	Disabled      bool            `json:"disabled"`
	Enabled       *bool           `json:"enabled"`
	Lifecycle     json.RawMessage `json:"lifecycle"`
}

// entry converts the fields that have the same meaning in every program. problem says why that is
// not possible.
func (s *server) entry() (e entry, problem string) {
	e = entry{Args: s.Args, Env: s.Env, Cwd: s.Cwd, URL: s.URL, HTTPURL: s.HTTPURL, Headers: s.Headers,
		Description: s.Description, IncludeTools: cmp.Or(s.IncludeTools, s.AllowedTools),
		ExcludeTools: slices.Concat(s.ExcludeTools, s.DisabledTools, s.BlockedTools),
		Disabled:     s.Disabled || s.Enabled != nil && !*s.Enabled}
	var tools []string // a star means all
	if json.Unmarshal(s.Tools, &tools) == nil && tools != nil && !slices.Contains(tools, "*") {
		e.IncludeTools = cmp.Or(e.IncludeTools, &tools)
	}
	e.URL = cmp.Or(e.URL, s.ServerURL)
	if len(s.Command) > 0 && json.Unmarshal(s.Command, &e.Command) != nil {
		return e, "its command is not a string"
	}
	if l := s.login; e.Command == "" && !l.isEmpty() {
		e.OAuth = &l
	}
	transport, _ := s.Transport.(string)
	switch strings.ToLower(cmp.Or(s.Type, transport)) {
	case "stdio", "local":
		e.Type = "stdio"
	case "http", "streamable-http", "streamablehttp", "streamable_http":
		e.Type = "http"
	case "sse":
		e.Type = "sse"
	case "":
	default:
		return e, "its type must be stdio, http or sse"
	}
	switch {
	case s.EnvFile != "":
		return e, "envFile is not supported; put its variables into env"
	case s.Sandboxed:
		return e, "sandboxEnabled is not supported; add the server to mcpServers, and confine it by sandbox.servers"
	case s.HeadersHelper != "":
		return e, "headersHelper is not supported; use cmd:COMMAND as a value in headers"
	case s.AuthProvider != "" && s.AuthProvider != "dynamic_discovery":
		return e, "authProviderType is not supported; use cmd:COMMAND as a value in headers"
	}
	return e, ""
}

// jsonServers reads the servers at a path in a JSON file. convert converts each to an
// entry, or returns a problem.
func jsonServers(d dialect, convert func(s *server) (entry, string), keys ...string) reader {
	return serversIn(d, convert, func(doc *document.Document) []jsonx.Member { return doc.Members(keys...) })
}

// serversIn reads the servers among the members that find returns.
func serversIn(d dialect, convert func(s *server) (entry, string),
	find func(doc *document.Document) []jsonx.Member) reader {
	return func(docs *document.Foreign, path string, data []byte) ([]imports.Server, []document.Problem) {
		doc, problems := docs.Parse(path, data)
		if doc == nil {
			return nil, problems
		}
		return servers(find(doc), d, convert), nil
	}
}

func servers(members []jsonx.Member, d dialect, convert func(s *server) (entry, string)) []imports.Server {
	out := make([]imports.Server, 0, len(members))
	for _, m := range members {
		if on := switched(m.Value); on != nil {
			out = append(out, imports.Server{Name: m.Name, Pos: m.Pos, Enabled: on})
			continue
		}
		var s server
		var e entry
		problem := "its entry does not have the expected form"
		raw := m.Value.JSON()
		s.login.read(raw, false)
		err := json.Unmarshal(raw, &s)
		if at, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			field := at.Field[strings.LastIndexByte(at.Field, '.')+1:] // "" for the entry itself
			problem += strings.TrimSuffix(": unexpected "+at.Value+" in "+field, " in ")
		}
		if err == nil {
			e, problem = convert(&s)
		}
		out = append(out, imported(m, e, d, problem))
	}
	return out
}

// switched returns whether an entry switches a server on; nil if it does anything else.
func switched(entry *jsonx.Value) *bool {
	if !entry.Is(jsonx.Object) {
		return nil
	}
	var on *bool
	for _, m := range entry.Members {
		isBool := m.Value.Is(jsonx.True) || m.Value.Is(jsonx.False)
		switch {
		case m.Name == "type" && m.Value.Is(jsonx.String):
		case m.Name == "enabled" && isBool, m.Name == "disabled" && isBool:
			is := m.Value.Is(jsonx.True) == (m.Name == "enabled")
			on = &is
		default:
			return nil
		}
	}
	return on
}

// switchedBy lets each of a program's files, and others, switch off servers of all of them.
func switchedBy(files []imports.File,
	says func(doc *document.Document, name string) (off bool, tools []string),
	others ...imports.File) []imports.File {
	var with []string
	for _, f := range slices.Concat(files, others) {
		if f.Path != "" {
			with = text.AppendNew(with, f.Path)
		}
	}
	for i := range files {
		files[i].With = with
		files[i].Switch = func(servers []imports.Server, with *document.Document) {
			for i := range servers {
				off, tools := says(with, servers[i].Name)
				disable(&servers[i], off, tools)
			}
		}
	}
	return files
}

// disable switches a server, or some of its tools, off.
func disable(s *imports.Server, off bool, tools []string) {
	var e entry
	if s.Problem != "" || !off && tools == nil || json.Unmarshal(s.JSON, &e) != nil {
		return
	}
	e.Disabled = e.Disabled || off
	e.ExcludeTools = append(e.ExcludeTools, tools...)
	if data, err := json.Marshal(e); err == nil {
		s.JSON = data
	}
}
