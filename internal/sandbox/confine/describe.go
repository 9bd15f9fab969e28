package confine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/sandbox"
	"github.com/toolreg/toolreg/internal/settings/table"
)

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

// Findings describes for doctor the system's support for the sandbox, and the
// settings and rules that require one that is not possible.
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
		if setting := fmt.Sprintf("%s: %s (%s)", key, k.mode, k.origin); k.mode != modeOff &&
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
