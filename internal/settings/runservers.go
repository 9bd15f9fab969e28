package settings

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/text"
)

// serversOfRun adds the servers given by --mcp, or by its variable, to the settings. Each
// replaces a server of the same name. Command lines run in dir.
func serversOfRun(m *merge.Merged, given *scalars, specs []string, dir string) (problems []document.Problem) {
	origin := Origin{Scope: ScopeFlag, Name: "--mcp"}
	if given.listOf("mcp") == nil {
		origin = Origin{Scope: ScopeEnv, Name: globalVariable("mcp")}
	}
	object := &jsonx.Value{Kind: jsonx.Object}
	for i, spec := range specs {
		name, entry, err := parseServer(spec, dir)
		if err == nil && object.Get(name) != nil {
			err = fmt.Errorf("another server is named %q; begin it with NAME= to name it", name)
		}
		if err != nil {
			if len(specs) > 1 {
				err = fmt.Errorf("server %d: %w", i+1, err)
			}
			problems = append(problems, document.Problem{File: origin.Name, Message: document.Visible(err.Error())})
			continue
		}
		object.Members = append(object.Members, jsonx.Member{Name: name, Value: entry})
	}
	if len(object.Members) > 0 {
		m.Add(layers.Setting{Row: m.Index.Row(table.ServersKey), Key: table.ServersKey, Value: object, Origin: origin})
	}
	return problems
}

// parseServer parses a URL, or a command line that runs in dir, optionally
// preceded by NAME=. Errors do not repeat the text, since it may contain a
// secret.
func parseServer(spec, dir string) (name string, entry *jsonx.Value, err error) {
	rest := strings.TrimSpace(spec)
	before, after, found := strings.Cut(rest, "=")
	if found && !strings.ContainsAny(before, " \t\"'/\\") {
		if before == "" {
			return "", nil, errors.New(`give a name before "="`)
		}
		if err := table.CheckServerName(before); err != nil {
			return "", nil, err
		}
		name, rest = before, strings.TrimSpace(after)
	}
	switch {
	case rest == "" && name != "":
		return "", nil, fmt.Errorf("give a URL or a command line after %s=", name)
	case rest == "":
		return "", nil, errors.New("give a URL or a command line")
	}
	entry = &jsonx.Value{Kind: jsonx.Object}
	own := ""
	if scheme, _, ok := strings.Cut(rest, "://"); ok && strings.Trim(scheme, table.ServerNameChars+"+") == "" {
		if err := table.CheckURL(rest); err != nil {
			return "", nil, err
		}
		entry.Members = []jsonx.Member{{Name: "url", Value: jsonx.NewString(rest)}}
		if u, err := url.Parse(rest); err == nil {
			own = u.Hostname()
		}
	} else {
		words, err := process.Split(rest)
		if err != nil {
			return "", nil, err
		}
		own = strings.TrimSuffix(path.Base(strings.ReplaceAll(words[0], `\`, "/")), ".exe")
		entry.Members = []jsonx.Member{
			{Name: "command", Value: jsonx.NewString(words[0])},
			{Name: "args", Value: jsonx.NewStrings(words[1:])},
			{Name: "cwd", Value: jsonx.NewString(dir)},
		}
	}
	if name == "" {
		name = text.Plain(own, "_.-")
	}
	if table.CheckServerName(name) != nil {
		return "", nil, errors.New("begin it with NAME= to name the server")
	}
	return name, entry, nil
}
