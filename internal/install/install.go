// Package install turns a server that a registry, a server.json, a bundle or another program
// describes into an entry of the settings, and an entry of one version into that of another.
// It asks nobody and prints nothing: its callers choose among what it returns and write the
// entry. It sits above serverjson, mcpregistry and bundle, which only read descriptions, and
// below the commands.
package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/mcpregistry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/settings/values"
	"github.com/toolreg/toolreg/internal/state"
)

// Installer has what all installations of a run need.
type Installer struct {
	Settings *settings.Settings
	Folders  *state.Folders
	Environ  []string // "K=V"
	Dir      string   // in which relative paths are looked up; absolute
	Agent    string   // the User-Agent of requests
}

// Registries returns the registries of the settings, in their order. Without any, the error is
// an [*settings.InputError].
func (i *Installer) Registries(ctx context.Context) ([]*mcpregistry.Registry, error) {
	x := values.NewExpander(i.Settings.ProjectRoot, i.Environ)
	var out []*mcpregistry.Registry
	for _, r := range i.Settings.Registries {
		address, err := x.Expand(r.URL)
		if err == nil {
			err = table.CheckRegistry(address)
		}
		if err != nil {
			return nil, &settings.InputError{Err: fmt.Errorf("%s: registries: %w", r.Origin, err)}
		}
		pairs, err := x.Headers(ctx, r.Headers)
		if err != nil {
			return nil, &settings.InputError{Err: err}
		}
		one := &mcpregistry.Registry{URL: strings.TrimSuffix(address, "/"), Headers: http.Header{}, Agent: i.Agent}
		for _, p := range pairs {
			one.Headers.Set(p.Name, p.Value)
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, &settings.InputError{Err: errors.New("the setting registries is empty"),
			Hint: "remove it to use the official registry"}
	}
	return out, nil
}

// RegistryAt returns the registry at the address that the entry of a server names.
func RegistryAt(known []*mcpregistry.Registry, address string) (*mcpregistry.Registry, error) {
	for _, r := range known {
		if r.URL == strings.TrimSuffix(address, "/") {
			return r, nil
		}
	}
	return nil, &settings.InputError{
		Err:  errors.New("the setting registries does not have " + address + ", from which a server was added"),
		Hint: "add it to registries, or remove from in the entry of the server",
	}
}

// BundleFolder returns the folder with the unpacked bundle of a server; "" if it has none.
func (i *Installer) BundleFolder(name string) string {
	server := i.Settings.Server(name)
	if server == nil || server.From == nil || server.From.Bundle == "" {
		return ""
	}
	folder, err := i.Folders.Bundles()
	if err != nil {
		return ""
	}
	return filepath.Join(folder.Path, filepath.Base(server.From.Bundle))
}

// addedServers is the file in the state folder with the servers that were added: the address of
// the registry by the name of the server.
const addedServers = "added-servers.json"

// seenBefore says where a server of the same name was added from before, if it had another
// publisher or was in another registry.
func (i *Installer) seenBefore(d *Described) []string {
	dir, err := i.Folders.State()
	if err != nil {
		return nil
	}
	data, err := dir.Read(addedServers)
	var added map[string]string
	if err != nil || json.Unmarshal(data, &added) != nil {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(added)) {
		namespace, short, _ := strings.Cut(name, "/")
		switch {
		case name == d.Server.Name && added[name] != d.Source:
			out = append(out, fmt.Sprintf("you have added a server of this name before from %s", added[name]))
		case name != d.Server.Name && strings.EqualFold(short, d.Server.Short()):
			out = append(out,
				fmt.Sprintf("you have added %s before, which is of another publisher, %s", name, namespace))
		}
	}
	return out
}

// Remember stores that a server was added, for the warnings of later installations.
func (i *Installer) Remember(ctx context.Context, d *Described) error {
	dir, err := i.Folders.State()
	if err != nil {
		return nil // without a state folder nothing is remembered
	}
	return dir.Update(ctx, addedServers, func(old []byte) ([]byte, error) {
		added := map[string]string{}
		_ = json.Unmarshal(old, &added) // a damaged file is begun again
		added[d.Server.Name] = d.Source
		return json.Marshal(added)
	})
}
