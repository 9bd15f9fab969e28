package confine

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/sandbox"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/table"
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

func existing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !exists(path) })
}

// describe returns one line about what a program of a kind may do in the
// sandbox.
func (c *Confiner) describe(k kind, online bool) string {
	p := c.profile(k, sandbox.Place{}, online)
	writes := append([]string{"the workspace"}, existing(c.paths(k.write))...)
	text := "it can write to " + strings.Join(writes, ", ")
	if read := existing(c.paths(k.read)); len(read) > 0 {
		text += "; it can also read " + strings.Join(read, ", ")
	}
	return text + "; network: " + networkWords(p.Network)
}

func networkWords(n sandbox.Network) string {
	switch n.Mode {
	case sandbox.NetworkNone:
		return "none"
	case sandbox.NetworkAll:
		return "all"
	case sandbox.NetworkHosts:
		return strings.Join(n.Hosts, ", ")
	}
	return "a private loopback"
}

// Findings returns, for doctor, how far the system supports the sandbox, and which settings and
// rules require a sandbox that is not possible.
func (c *Confiner) Findings() (parts []sandbox.Part, missing string, wanted []string) {
	parts = c.support().Parts
	if missing = c.missing(); missing == "" {
		return parts, "", nil
	}
	names := table.SandboxKinds()
	for _, s := range c.opts.Settings.Servers {
		if s.Command != "" && !s.Disabled {
			names = append(names, Server(s.Name))
		}
	}
	for _, name := range names {
		k := c.kind(name)
		key := table.SandboxMode
		if k.own {
			key = table.Sandbox + name + ".mode"
		}
		if setting := fmt.Sprintf("%s: %s (%s)", key, k.mode, k.origin); k.mode != table.SandboxOff &&
			!slices.Contains(wanted, setting) {
			wanted = append(wanted, setting)
		}
	}
	for _, r := range c.opts.Settings.Rules {
		if r.Decision == policy.Sandbox.String() {
			wanted = append(wanted, fmt.Sprintf("a rule has the decision sandbox (%s)", r.Origin))
		}
	}
	return parts, missing, wanted
}
