package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/lazy"
	"github.com/toolreg/toolreg/internal/mcpregistry"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/edit"
)

var (
	semantic     = lazy.NewRegexp(`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	versionParts = lazy.NewRegexp(`[0-9]+|[A-Za-z]+`)
)

// CompareVersions compares versions by their parts. Numbers are compared as such, a part that is
// a word, as in 1.0.0-beta, is before its absence, and what follows + is ignored.
func CompareVersions(a, b string) int {
	if semantic.Get().MatchString(a) && semantic.Get().MatchString(b) {
		return registry.CompareVersions(a, b)
	}
	return slices.CompareFunc(versionParts.Get().FindAllString(a, -1),
		versionParts.Get().FindAllString(b, -1), func(a, b string) int {
			return strings.Compare(padded(a), padded(b))
		})
}

// padded returns a number padded with zeros so that it compares correctly as text.
func padded(part string) string {
	if strings.Trim(part, "0123456789") != "" {
		return part
	}
	return strings.Repeat("0", max(0, 20-len(part))) + part
}

// Upgrade replaces one version of a server of a registry by another.
type Upgrade struct {
	*Installation // of the new version

	server *settings.Server // the entry as it is
	old    *Installation    // nil if the registry no longer has that version
}

// ChangedError reports that a person changed the command of an entry, so that the words of the old
// version cannot be replaced by those of the new one.
type ChangedError struct {
	Server *settings.Server
	Now    *serverjson.Plan // of the new version
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the command of server %q (%s) was changed by hand, so it cannot be upgraded",
		e.Server.Name, e.Server.Origin)
}

// Upgrade begins to replace the version of a server by the one that is described. The values of
// the old one are kept.
func (i *Installer) Upgrade(ctx context.Context, server *settings.Server,
	r *mcpregistry.Registry, to *Described) (*Upgrade, error) {
	from, file := server.From, server.Origin.Name
	given := serverjson.Given{}
	for name, notations := range from.Values {
		for _, notation := range notations {
			value := serverjson.Denote(notation)
			// A secret of ours is literal text again, as it was when it was given.
			if path, ok := strings.CutPrefix(value, "file:"); ok &&
				filepath.Base(path) == secretName(file, server.Name, name) {
				data, err := os.ReadFile(path)
				if err != nil {
					return nil, fmt.Errorf("reading a secret of server %q: %w", server.Name, err)
				}
				value = strings.TrimSuffix(string(data), "\n")
			}
			given[name] = append(given[name], value)
		}
	}
	next, err := i.New(to, file, server.Name, maps.Clone(given))
	if err != nil {
		return nil, err
	}
	next.was, next.from.Bundle = server, ""
	u := &Upgrade{Installation: next, server: server}
	entry, err := r.Get(ctx, from.Name, from.Version)
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return u, nil
	case err != nil:
		return nil, err
	}
	old := &Installation{
		Described: &Described{Entry: entry, Source: r.URL, from: *from},
		File:      file, Name: server.Name, Given: given, installer: i, secrets: next.secrets,
	}
	if from.Bundle != "" {
		old.Way, _ = i.unpackedWay(from.Bundle) // without it the old command is not known
	} else if ways := old.waysOf(from.Runtime); len(ways) > 0 {
		old.Way = &ways[0]
	}
	if old.Way != nil && old.MakePlan() == nil && len(old.Plan.Missing) == 0 {
		u.old = old
	}
	return u, nil
}

// Runtime returns the runtime of the old version if the new one has it too, else "".
func (u *Upgrade) Runtime() string {
	if len(u.waysOf(u.server.From.Runtime)) == 0 {
		return ""
	}
	return u.server.From.Runtime
}

// Member is a change of one member of an entry.
type Member struct {
	Path  []string        // below the entry
	Value json.RawMessage // nil removes the member
}

// Members are changes of the entry Name.
type Members struct {
	Name string
	List []Member
}

// Apply makes the changes in the content of a settings file.
func (m Members) Apply(file string, data []byte) (_ []byte, err error) {
	for _, one := range m.List {
		path := append([]string{"mcpServers", m.Name}, one.Path...)
		if one.Value == nil {
			data, err = edit.Unset{Paths: [][]string{path}}.Apply(file, data)
		} else {
			data, err = edit.Set{Paths: [][]string{path}, Value: one.Value}.Apply(file, data)
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// Changes returns how the entry changes with the new version. Whatever differs from the entry that
// the old version would have now was changed by the person and is kept, unless set, the values from
// the command line, replaces it. If the command was changed by hand, the error is a
// [*ChangedError]. The plan then also has the person's own arguments.
func (u *Upgrade) Changes(set serverjson.Given) (Members, error) {
	out := Members{Name: u.server.Name}
	put := func(value any, path ...string) {
		if data, err := jsonx.Marshal(value); err == nil { // strings and lists of strings
			out.List = append(out.List, Member{path, data})
		}
	}
	unset := func(path ...string) { out.List = append(out.List, Member{Path: path}) }
	is, now := u.server, u.Plan
	was := u.before()
	args := now.Args
	if is.Command != was.Command || !slices.Equal(is.Args, was.Args) || is.URL != was.URL {
		if args = replaced(is.Args, was.Args, now.Args); args == nil || is.Command != now.Command {
			return out, &ChangedError{is, now}
		}
	}
	now.Args = args
	for _, field := range []struct{ name, was, now string }{
		{"type", is.Type, now.Type}, {"command", is.Command, now.Command}, {"url", is.URL, now.URL},
	} {
		switch {
		case field.now != "" && field.now != field.was:
			put(field.now, field.name)
		case field.now == "" && field.was != "":
			unset(field.name)
		}
	}
	switch {
	case len(args) > 0 && !slices.Equal(args, is.Args):
		put(args, "args")
	case len(args) == 0 && len(is.Args) > 0:
		unset("args")
	}
	for _, pairs := range []struct {
		name         string
		is, was, now []serverjson.Pair
	}{{"env", withoutOrigins(is.Env), was.Env, now.Env}, {"headers", withoutOrigins(is.Headers), was.Headers, now.Headers}} {
		for _, p := range pairs.now {
			is, isThere := valueOf(pairs.is, p.Name)
			had, wasThere := valueOf(pairs.was, p.Name)
			_, given := set[p.Name]
			if isOwn := (isThere != wasThere || is != had) && !given; !isOwn && (!isThere || is != p.Value) {
				put(p.Value, pairs.name, p.Name)
			}
		}
		for _, p := range pairs.was {
			_, stays := valueOf(pairs.now, p.Name)
			if is, isThere := valueOf(pairs.is, p.Name); !stays && isThere && is == p.Value {
				unset(pairs.name, p.Name)
			}
		}
	}
	from, err := u.fromEntry()
	if err != nil {
		return out, err
	}
	out.List = append(out.List, Member{[]string{"from"}, from})
	return out, nil
}

// before returns the plan of the old version. If the registry no longer has that version, it is the
// plan of the new one with the old version in its words. Variables and headers are then unknown, so
// those of the entry are kept.
func (u *Upgrade) before() *serverjson.Plan {
	if u.old != nil {
		return u.old.Plan
	}
	was := &serverjson.Plan{Command: u.Plan.Command}
	older := func(word string) string {
		return strings.ReplaceAll(word, u.Server.Version, u.server.From.Version)
	}
	for _, word := range u.Plan.Args {
		was.Args = append(was.Args, older(word))
	}
	was.URL = older(u.Plan.URL)
	return was
}

// replaced returns arguments in which the words that differ between two versions are those of the
// new one; nil if that cannot be determined.
func replaced(is, was, now []string) []string {
	if len(was) != len(now) || slices.Equal(was, now) {
		return nil
	}
	out := slices.Clone(is)
	for i := range was {
		if was[i] == now[i] {
			continue
		}
		at := slices.Index(out, was[i])
		if at < 0 {
			return nil
		}
		out[at] = now[i]
	}
	return out
}

// withoutOrigins returns pairs of the settings without their origins.
func withoutOrigins(pairs []settings.Pair) (out []serverjson.Pair) {
	for _, p := range pairs {
		out = append(out, serverjson.Pair{Name: p.Name, Value: p.Value})
	}
	return out
}

func valueOf(pairs []serverjson.Pair, name string) (value string, found bool) {
	for _, p := range pairs {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}
