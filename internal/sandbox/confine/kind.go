package confine

import (
	"os"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/sandbox"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// The modes of the sandbox settings.
const (
	modeOff     = table.SandboxOff
	modeAuto    = table.SandboxAuto
	modeRequire = table.SandboxRequire
)

// kind contains the settings for one kind of program.
type kind struct {
	name        string
	mode        string
	origin      string // of the setting mode
	own         bool   // the mode is set for this kind
	read, write []string
	network     sandbox.Network
	networkSet  bool
}

// kind reads the settings for a kind.
func (c *Confiner) kind(name string) kind { return kindIn(c.opts.Settings, name) }

// kindIn reads certain settings for a kind.
func kindIn(set *settings.Settings, name string) kind {
	get := func(field string) settings.Named { return set.Setting(table.Sandbox + name + "." + field) }
	if server, ok := strings.CutPrefix(name, serverPrefix); ok {
		get = serverIn(set, server)
	}
	k := kind{name: name, read: get("read").Value.Strings(), write: get("write").Value.Strings()}
	mode := get("mode")
	if k.own = mode.Origin.Scope != settings.ScopeDefault; !k.own && name != References {
		mode = set.Setting(table.SandboxMode)
	}
	k.mode, k.origin = mode.Value.Text(), mode.Origin.String()
	network := get("network")
	k.networkSet = network.Origin.Scope != settings.ScopeDefault
	k.network = networkOf(network.Value)
	return k
}

// serverIn returns the fields of an entry of sandbox.servers.
func serverIn(set *settings.Settings, name string) func(field string) settings.Named {
	var entry settings.Named
	for _, n := range set.RawNamed("sandbox.servers") {
		if n.Name == name {
			entry = n
		}
	}
	return func(field string) settings.Named {
		if entry.Value == nil || entry.Value.Get(field) == nil {
			return settings.Named{Value: jsonx.NewNull()}
		}
		value, at := entry.Value.Get(field), entry.Origin
		at.Line, at.Col = value.Place()
		return settings.Named{Value: value, Origin: at}
	}
}

func networkOf(n *jsonx.Value) sandbox.Network {
	word, hosts, err := table.ParseNetwork(n)
	switch {
	case err != nil: // not set, for a server
		return sandbox.Network{}
	case word == table.NetworkNone:
		return sandbox.Network{Mode: sandbox.NetworkNone}
	case word == table.NetworkAll:
		return sandbox.Network{Mode: sandbox.NetworkAll}
	case word == table.NetworkLoopback:
		return sandbox.Network{}
	case len(hosts) == 0:
		return sandbox.Network{Mode: sandbox.NetworkNone}
	}
	return sandbox.Network{Mode: sandbox.NetworkHosts, Hosts: hosts}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// existing returns those of the paths that exist.
func existing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !exists(path) })
}
