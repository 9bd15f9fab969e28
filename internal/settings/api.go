package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// API is one entry of openapi: an HTTP API with the document that describes it. Of the
// embedded Server it has the name, the headers, the limits, trust and description; URL is
// the setting baseUrl. Its strings are unexpanded.
type API struct {
	Server
	Spec      string `setting:"spec"`    // a file, relative to the project root, or an address
	Auth      []Auth `setting:"auth"`    // used together
	Include   List   `setting:"include"` // all if absent
	Exclude   List   `setting:"exclude"`
	MaxOutput *int64 `setting:"maxOutput"` // nil means limits.output
}

// Auth is one way to authenticate the requests to an API: the first of its fields that is
// set. Its strings are unexpanded and may be references.
type Auth struct {
	Bearer string  `setting:"bearer"`
	Basic  *Basic  `setting:"basic"`
	APIKey *APIKey `setting:"apiKey"`
	OAuth  *OAuth  `setting:"oauth"`
}

// Basic is a user name and a password.
type Basic struct {
	Username string `setting:"username"`
	Password string `setting:"password"`
}

// APIKey is a key that is sent with each request.
type APIKey struct {
	In    string `setting:"in"` // header, query, cookie
	Name  string `setting:"name"`
	Value string `setting:"value"`
}

// IsRemote reports whether the document is at an address.
func (a *API) IsRemote() bool { return strings.Contains(a.Spec, "://") }

// Entries returns the entries of all servers: those of mcpServers and of openapi.
func (s *Settings) Entries() []Server {
	out := slices.Clip(s.Servers)
	for i := range s.APIs {
		out = append(out, s.APIs[i].Server)
	}
	return out
}

// EntryNames returns the names of all servers and APIs.
func (s *Settings) EntryNames() []string {
	names := []string{}
	for _, entry := range s.Entries() {
		names = append(names, entry.Name)
	}
	return names
}

// Server returns the entry of mcpServers with a name; nil if there is none.
func (s *Settings) Server(name string) *Server {
	for i := range s.Servers {
		if s.Servers[i].Name == name {
			return &s.Servers[i]
		}
	}
	return nil
}

// API returns the entry of openapi with a name; nil if there is none.
func (s *Settings) API(name string) *API {
	for i := range s.APIs {
		if s.APIs[i].Name == name {
			return &s.APIs[i]
		}
	}
	return nil
}

// Entry returns the entry of a server or an API with a name; nil if there is none.
func (s *Settings) Entry(name string) *Server {
	if api := s.API(name); api != nil && s.Server(name) == nil {
		return &api.Server
	}
	return s.Server(name)
}

// apis decodes the entries of openapi.
func (s *Settings) apis(m *merge.Merged) {
	row := m.Index.Row(table.APIsKey)
	replaced := m.Replaced(table.APIsKey)
	for _, e := range m.Named(table.APIsKey) {
		a := API{Server: decodeServer(row, e.Name, e.Value, e.Origin)}
		a.URL = e.Value.Get("baseUrl").Text()
		decodeEntry(reflect.ValueOf(&a).Elem(), row, e.Name, e.Value, e.Origin)
		for i := range a.Auth {
			if a.Auth[i].OAuth != nil {
				a.OAuth = a.Auth[i].OAuth
			}
		}
		a.Err = m.Faults.Of(e.Value)
		if was, ok := replaced[e.Name]; ok {
			var own API
			decodeEntry(reflect.ValueOf(&own).Elem(), row, e.Name, was.Value, was.Origin)
			a.Replaces, a.Exclude = &was.Origin, union(own.Exclude, a.Exclude)
		}
		s.setTimeouts(&a.Server)
		s.APIs = append(s.APIs, a)
	}
	for i := range s.Servers {
		if api := s.API(s.Servers[i].Name); api != nil {
			oneName(&s.Servers[i], &api.Server)
		}
	}
}

// oneName makes the later of a server and an API with one name unusable, because
// NAME__tool would be a tool of either.
func oneName(server, api *Server) {
	first, second, kind := server, api, "an MCP server"
	if api.Origin.Scope < server.Origin.Scope {
		first, second, kind = api, server, "an API of the setting openapi"
	}
	if second.Err == nil {
		message := fmt.Sprintf("%q is already the name of %s (%s)", second.Name, kind, first.Origin)
		second.Err = document.NewError([]document.Problem{second.Origin.Problem(message, "rename one of them")})
	}
}
