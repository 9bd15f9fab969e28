package settings

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
)

// newSettings converts merged, checked settings to plain structs.
func newSettings(m *merge.Merged, g Globals, root string) *Settings {
	s := &Settings{
		ProjectRoot:    root,
		Rules:          rules(m),
		ShellBanned:    m.Banned(),
		OwnToolOptions: ownToolOptions(m),
		Hooks:          hooks(m),
		Globals:        g,
		Permissions:    map[string]bool{},
		DeniedBy:       map[string]Origin{},
		merged:         m,
	}
	decode(m, reflect.ValueOf(s).Elem())
	s.Fetch.Headers = originHeaders(m)
	rankLimits(s.CallLimits)
	if e, ok := m.Last(approvalMode); ok {
		s.ApprovalOrigin = e.Origin
	}
	if _, ok := m.Last("registries"); !ok {
		s.Registries = []Registry{{URL: officialRegistry}}
	}
	s.permissions(m)
	s.policyDefaults(m)
	s.servers(m)
	s.apis(m)
	if s.Globals.Channel == "" {
		s.Globals.Channel = channel(m)
	}
	return s
}

// tag is the key of the struct tag that names the setting that a field of
// [Settings] holds, or the member of an entry.
const tag = "setting"

// tagName is the tag of a field that holds the name of an entry, where the table has an
// object of names.
const tagName = "*"

// decode sets the fields of a struct, and of structs in it, to the settings that
// their tags name.
func decode(m *merge.Merged, v reflect.Value) {
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Tag.Get(tag), v.Field(i)
		switch {
		case name != "":
			setField(m, field, m.Index.Row(name))
		case field.Kind() == reflect.Struct:
			decode(m, field)
		}
	}
}

// setField sets a field to what the scopes in effect say about a setting, merged by its rule, or
// to the default of the table.
func setField(m *merge.Merged, field reflect.Value, row *table.Row) {
	switch to := field.Addr().Interface().(type) {
	case *Command:
		*to = command(m, row.Name)
		return
	case *List:
		*to = m.List(row.Name)
		return
	case *[]Pair:
		*to = pairs(m, row.Name)
		return
	}
	switch all := m.Of(row); {
	case row.Merge == table.ByName:
		for _, n := range m.Named(row.Name) {
			add(field, row, n.Name, n.Value, n.Origin)
		}
	case row.Merge == table.Unite:
		for _, e := range all {
			set(field, row, e.Value, e.Origin)
		}
	case len(all) > 0:
		set(field, row, all[len(all)-1].Value, all[len(all)-1].Origin)
	default:
		set(field, row, row.DefaultValue(), Origin{})
	}
}

// decodeEntry sets the fields of a struct to the members of an object that their tags name and
// the row has, or to the defaults of the table. Its field Origin is set to in, the place of the object.
func decodeEntry(v reflect.Value, row *table.Row, name string, n *jsonx.Value, in Origin) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch of := field.Tag.Get(tag); {
		case of == tagName:
			v.Field(i).SetString(name)
		case of != "":
			value, known := n.Get(of), row.Field(of)
			if value == nil || value.Kind == jsonx.Null || known.Doc == "" { // an API has not all fields of a server
				value = known.DefaultValue()
			}
			set(v.Field(i), known, value, in)
		case field.Name == "Origin":
			v.Field(i).Set(reflect.ValueOf(in))
		}
	}
}

// set sets a field, of one of the types used for settings, to a checked value; null is the zero
// value. To a slice of structs it adds one for each object of the value. in is the file of the
// value, or the place of the entry that it belongs to.
func set(v reflect.Value, row *table.Row, n *jsonx.Value, in Origin) {
	switch to := v.Addr().Interface().(type) {
	case *string:
		*to = n.Text()
	case *bool:
		*to = n.Is(jsonx.True)
	case *int:
		*to, _ = table.ParseInt(n)
	case *int64:
		*to, _ = table.ParseSize(n)
	case *time.Duration:
		*to, _ = table.ParseKeep(n) // also reads durations
	case *Command:
		*to = Command{Line: n.Text(), Origin: in}
		to.Argv, _ = table.ParseCommand(n) // already checked
	case *Entry:
		*to = Entry{Value: n.Text(), Origin: in}
	case *List:
		*to = layers.ToList(n, in)
	case *[]Pair:
		*to = toPairs(n, in)
	case *[]string:
		*to = n.Strings()
	case *map[string]bool:
		*to = toMap(n, func(v *jsonx.Value) bool { return v.Is(jsonx.True) })
	case *map[string][]string:
		*to = toMap(n, (*jsonx.Value).Strings)
	case *[]ExampleCall:
		*to = exampleCalls(n, in)
	case *[]ToolScope:
		*to = toolScopes(n, in)
	default:
		switch v.Kind() {
		case reflect.Pointer:
			if n.Kind != jsonx.Null && (v.Type().Elem().Kind() != reflect.Struct || n.Is(jsonx.Object)) {
				v.Set(reflect.New(v.Type().Elem()))
				set(v.Elem(), row, n, in)
			}
		case reflect.Struct:
			decodeEntry(v, row, "", n, in)
		case reflect.Slice:
			items := n.Items
			if n.Is(jsonx.Object) { // table.OneOrMore
				items = []*jsonx.Value{n}
			}
			for _, item := range items {
				in.Line, in.Col = item.Place()
				if row.Type == table.Addresses && item.Is(jsonx.String) {
					item = jsonx.NewObject(jsonx.NewMember("url", item))
				}
				add(v, row, "", item, in)
			}
		}
	}
}

// add adds a struct to a slice.
func add(slice reflect.Value, row *table.Row, name string, n *jsonx.Value, in Origin) {
	v := reflect.New(slice.Type().Elem()).Elem()
	decodeEntry(v, row, name, n, in)
	slice.Set(reflect.Append(slice, v))
}

func toMap[T any](n *jsonx.Value, value func(*jsonx.Value) T) map[string]T {
	if !n.Is(jsonx.Object) {
		return nil
	}
	out := make(map[string]T, len(n.Members))
	for _, m := range n.Members {
		out[m.Name] = value(m.Value)
	}
	return out
}

func command(m *merge.Merged, name string) Command {
	e, ok := m.Last(name)
	if !ok {
		return Command{}
	}
	c := Command{Line: e.Value.Text(), Origin: e.Origin, Err: m.Faults.Of(e.Value)}
	if c.Err == nil {
		c.Argv, _ = table.ParseCommand(e.Value) // already checked
	}
	return c
}

func pairs(m *merge.Merged, name string) []Pair {
	var out []Pair
	for _, e := range m.Named(name) {
		out = append(out, Pair{Name: e.Name, Value: e.Value.Text(), Origin: e.Origin})
	}
	return out
}

func channel(m *merge.Merged) string {
	for _, e := range m.Named("context") {
		if e.Name == "channel" && e.Value.Kind == jsonx.String {
			return e.Value.Text()
		}
	}
	return ""
}

func (s *Settings) permissions(m *merge.Merged) {
	for _, name := range []string{"filesystem", "network", "shell", "database"} {
		e, ok := m.Last("permissions." + name)
		if !ok {
			continue
		}
		s.Permissions[name] = e.Value.Is(jsonx.True)
		if !e.Value.Is(jsonx.True) {
			s.DeniedBy[name] = e.Origin
		}
	}
}

func (s *Settings) policyDefaults(m *merge.Merged) {
	s.PolicyDefaults = map[string]Rule{}
	for _, category := range []string{"read", "write", "command", "network", "other"} {
		name := "policy.defaults." + category
		r := Rule{Category: category, Decision: m.Value(name).Text()}
		if e, ok := m.Last(name); ok {
			r.Origin = e.Origin
		}
		s.PolicyDefaults[category] = r
	}
}

func (s *Settings) servers(m *merge.Merged) {
	row := m.Index.Row(table.ServersKey)
	replaced := m.Replaced(table.ServersKey)
	for _, e := range m.Named(table.ServersKey) {
		server := decodeServer(row, e.Name, e.Value, e.Origin)
		server.Err = m.Faults.Of(e.Value)
		if was, ok := replaced[e.Name]; ok {
			server.Replaces = &was.Origin
			server.ExcludeTools = union(decodeServer(row, e.Name, was.Value, was.Origin).ExcludeTools, server.ExcludeTools)
		}
		s.Servers = append(s.Servers, server)
	}
	if c := command(m, "mcpServerCommand"); (c.IsSet() || c.Err != nil) && s.Server("mcp") == nil {
		server := decodeServer(row, "mcp", &jsonx.Value{Kind: jsonx.Object}, c.Origin)
		if server.Err = c.Err; c.IsSet() {
			server.Command, server.Args = c.Argv[0], c.Argv[1:]
		}
		s.Servers = append(s.Servers, server)
	}
	allowed, excluded := m.List("mcp.allowed"), m.List("mcp.excluded")
	for i := range s.Servers {
		server := &s.Servers[i]
		server.Excluded = excludedBy(server.Name, allowed, excluded)
		s.setTimeouts(server)
	}
}

// union returns the entries of both lists.
func union(a, b List) List {
	out := List{Set: a.Set || b.Set, Entries: slices.Clip(a.Entries)}
	for _, e := range b.Entries {
		if !slices.ContainsFunc(a.Entries, func(have Entry) bool { return have.Value == e.Value }) {
			out.Entries = append(out.Entries, e)
		}
	}
	return out
}

// setTimeouts applies the flags.
func (s *Settings) setTimeouts(server *Server) {
	if s.Globals.TimeoutSet {
		server.Timeout = s.Globals.Timeout
	}
	if s.Globals.ConnectSet {
		server.ConnectTimeout = s.Globals.ConnectTimeout
	}
}

// excludedBy returns the setting that excludes a server. Case is ignored where
// it would let a server through. An empty list of allowed servers allows all, as
// in the Gemini CLI.
func excludedBy(name string, allowed, excluded List) *Origin {
	matches := func(e Entry) bool { return text.MatchName(e.Value, name) }
	if i := slices.IndexFunc(excluded.Entries, func(e Entry) bool {
		return text.MatchName(strings.ToLower(e.Value), strings.ToLower(name))
	}); i >= 0 {
		return &excluded.Entries[i].Origin
	}
	if len(allowed.Entries) == 0 || slices.ContainsFunc(allowed.Entries, matches) {
		return nil
	}
	return &allowed.Entries[0].Origin
}

// toPairs preserves the order of the file; in names the file.
func toPairs(n *jsonx.Value, in Origin) []Pair {
	if !n.Is(jsonx.Object) {
		return nil
	}
	out := make([]Pair, 0, len(n.Members))
	for _, f := range n.Members {
		in.Line, in.Col = f.Place()
		out = append(out, Pair{Name: f.Name, Value: f.Value.Text(), Origin: in})
	}
	return out
}
