package bundle

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/lazy"
	"github.com/toolreg/toolreg/internal/serverjson"
	"github.com/toolreg/toolreg/internal/text"
)

// Describe describes the bundle as a registry would. dir is the folder to which it is or will be
// unpacked, home the person's home folder.
func (m *Manifest) Describe(dir, home string) (*serverjson.Server, error) {
	p, err := m.pack(dir, home)
	if err != nil {
		return nil, err
	}
	s := &serverjson.Server{
		Name:        m.Name,
		Title:       m.DisplayName,
		Description: m.Description,
		Version:     m.Version,
		Packages:    []serverjson.Package{*p},
	}
	s.Repository.URL = m.Repository.URL
	return s, nil
}

// variable matches ${NAME}.
var variable = lazy.NewRegexp(`\$\{([^}]*)\}`)

// keyChars are the characters of the keys of user_config.
const keyChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// programs are the programs that a bundle may name without a path.
var programs = []string{"node", "python", "python3", "uv", "uvx", "npx", "deno", "bun"}

func (m *Manifest) pack(dir, home string) (*serverjson.Package, error) {
	c := m.config()
	if c == nil || c.Command == "" {
		return nil, refuse("its manifest does not say how to run it")
	}
	settings, err := m.settings(dir, home)
	if err != nil {
		return nil, err
	}
	t := translation{dir: dir, home: home, settings: settings}
	command, err := t.fixed(c.Command)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(programs, command) {
		inside, err := filepath.Rel(dir, filepath.FromSlash(command))
		if err != nil || !filepath.IsLocal(inside) || !filepath.IsAbs(filepath.FromSlash(command)) {
			return nil, refuse("it runs %s, which is neither in it nor one of %s",
				text.Quote(command), strings.Join(programs, ", "))
		}
		command = filepath.Join(dir, inside)
	}
	p := &serverjson.Package{
		Type:       serverjson.Bundle,
		Identifier: m.Name,
		Version:    m.Version,
		Command:    command,
		Folder:     dir,
	}
	for _, arg := range c.Args {
		value, err := t.value(arg)
		if err != nil {
			return nil, err
		}
		if value.Value == "" {
			continue
		}
		p.PackageArguments = append(p.PackageArguments,
			serverjson.Argument{Type: "positional", Value: value, IsRepeated: t.isList(arg)})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		value, err := t.value(c.Env[name])
		if err != nil {
			return nil, err
		}
		if value.Value == "" {
			continue
		}
		p.Variables = append(p.Variables, serverjson.KeyValue{Name: name, Value: value})
	}
	return p, nil
}

// config returns how to run the server on this platform; nil if the manifest does not say so.
func (m *Manifest) config() *config {
	if m.Server.Config == nil {
		if m.Server.Type == "uv" {
			return &config{Command: "uv", Args: []string{"run", "--directory", "${__dirname}", m.Server.EntryPoint}}
		}
		return nil
	}
	c := *m.Server.Config
	if over := c.Overrides[platform()]; over != nil {
		if over.Command != "" {
			c.Command = over.Command
		}
		if over.Args != nil {
			c.Args = over.Args
		}
		if over.Env != nil {
			c.Env = over.Env
		}
	}
	return &c
}

// settings returns the values that the person supplies.
func (m *Manifest) settings(dir, home string) (map[string]serverjson.Value, error) {
	out := map[string]serverjson.Value{}
	if len(m.UserConfig) == 0 || string(m.UserConfig) == "null" {
		return out, nil
	}
	all, err := jsonx.Parse(m.UserConfig, jsonx.Options{})
	if err != nil || !all.Is(jsonx.Object) {
		return nil, refuse("its user_config is not an object")
	}
	t := translation{dir: dir, home: home}
	for _, member := range all.Members {
		var s setting
		if err := json.Unmarshal(member.Value.JSON(), &s); err != nil ||
			member.Name == "" || strings.Trim(member.Name, keyChars) != "" {
			return nil, refuse("its user_config.%s cannot be used", text.Escape(member.Name))
		}
		v := serverjson.Value{
			Description: s.Description,
			Required:    s.Required,
			Secret:      s.Sensitive,
			Min:         s.Min,
			Max:         s.Max,
			Repeated:    s.Multiple,
		}
		if s.Title != "" && s.Title != s.Description {
			v.Description = strings.TrimSpace(s.Title + ". " + s.Description)
		}
		switch s.Type {
		case "number", "boolean":
			v.Format = s.Type
		case "directory", "file":
			v.Format = "filepath"
		}
		if preset, err := jsonx.Parse(s.Default, jsonx.Options{}); err == nil && preset.Kind != jsonx.Null {
			items := []*jsonx.Value{preset}
			if preset.Is(jsonx.Array) {
				items = preset.Items
			}
			for _, item := range items {
				word, err := t.fixed(item.Plain())
				if err != nil {
					return nil, err
				}
				v.Defaults = append(v.Defaults, word)
			}
			if len(v.Defaults) > 0 {
				v.Default = v.Defaults[0]
			}
		}
		out[member.Name] = v
	}
	return out, nil
}

// translation replaces the variables of manifests.
type translation struct {
	dir, home string
	settings  map[string]serverjson.Value
}

// fixed returns a text in which all variables are known.
func (t translation) fixed(s string) (string, error) {
	v, err := t.value(s)
	if err == nil && len(v.Variables) > 0 {
		err = refuse("%s depends on values that the user gives", text.Quote(s))
	}
	return v.Value, err
}

// value returns a text as a value in which {key} stands for user_config.key.
func (t translation) value(s string) (serverjson.Value, error) {
	v := serverjson.Value{Variables: map[string]serverjson.Value{}}
	var err error
	separator := string(filepath.Separator)
	constants := map[string]string{"__dirname": t.dir, "pathSeparator": separator, "/": separator, "HOME": t.home,
		"DESKTOP": filepath.Join(t.home, "Desktop"), "DOCUMENTS": filepath.Join(t.home, "Documents"),
		"DOWNLOADS": filepath.Join(t.home, "Downloads")}
	v.Value = variable.Get().ReplaceAllStringFunc(s, func(match string) string {
		name := variable.Get().FindStringSubmatch(match)[1]
		if key, ok := strings.CutPrefix(name, "user_config."); ok {
			if setting, ok := t.settings[key]; ok {
				v.Variables[key] = setting
				return "{" + key + "}"
			}
			err = refuse("it uses %s, which its user_config does not have", text.Quote(match))
			return ""
		}
		if value, ok := constants[name]; ok {
			return value
		}
		return match // literal
	})
	return v, err
}

// isList reports whether an argument is a value that may be given several times.
func (t translation) isList(arg string) bool {
	key, ok := strings.CutPrefix(arg, "${user_config.")
	return ok && t.settings[strings.TrimSuffix(key, "}")].Repeated
}
