package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

type serversOptions struct{ strict, prompts, resources bool }

func newServersCommand(a *app) *cobra.Command {
	o := &serversOptions{}
	cmd := &cobra.Command{
		Use:   "servers [NAME…]",
		Short: "Show MCP servers and their state",
		Long: `Connect to the MCP servers of the settings, or to those named, and show what each
is and how it does.

With the setting cache.discovery a server that is kept is not connected: its state
is "cached", its age is shown, and --refresh connects.

In a pipe each server is one line: name, transport, state, protocol version,
tools, prompts, resources, milliseconds to connect, origin, error and the age of
what was kept, separated by tabs. With --prompts or --resources it shows what
the servers offer beside tools. Exit codes: 0, 2, 3 (no such server), 8 (with
--strict, when one failed; with --prompts and --resources, when one that is
named failed).`,
		RunE: func(cmd *cobra.Command, argv []string) error {
			if o.prompts || o.resources {
				return runOffers(cmd.Context(), a, o, argv)
			}
			return runServers(cmd.Context(), a, o, argv)
		},
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "fail with exit code 8 when any server failed")
	cmd.Flags().BoolVar(&o.prompts, "prompts", false, "show the prompts that servers offer")
	cmd.Flags().BoolVar(&o.resources, "resources", false, "show the resources that servers offer, and the templates of their URIs")
	cmd.AddCommand(serverEdits(a)...)
	cmd.AddCommand(newServersLoginCommand(a), newServersLogoutCommand(a))
	cmd.AddCommand(newServersReadCommand(a), newServersPromptCommand(a))
	return cmd
}

func runServers(ctx context.Context, a *app, o *serversOptions, names []string) error {
	a.counts = true
	if err := a.setup(ctx); err != nil {
		return err
	}
	if len(names) == 0 {
		names = []string{"*"}
	}
	from := []registry.Source{}
	if len(a.sources.servers)+len(a.sources.off) > 0 || names[0] != "*" {
		var err error
		if from, err = a.sources.named(names); err != nil {
			return err
		}
	}
	reg := a.load(ctx, from, true)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := a.printServers(a.serverInfos(from, names)); err != nil {
		return err
	}
	return (&selection{strict: o.strict}).strictFailure(reg)
}

func (a *app) serverInfos(from []registry.Source, names []string) []mcpclient.Info {
	out := []mcpclient.Info{}
	for _, s := range from {
		if server, ok := s.(*mcpclient.Source); ok {
			out = append(out, server.Info())
		}
	}
	for _, off := range a.sources.off {
		if _, ok := registry.MatchAny(patterns(names), off.Name); ok {
			out = append(out, off.info())
		}
	}
	return out
}

func patterns(names []string) []registry.Entry {
	out := make([]registry.Entry, len(names))
	for i, n := range names {
		out[i] = registry.Entry{Value: n}
	}
	return out
}

func (a *app) printServers(infos []mcpclient.Info) error {
	if a.globals.JSON {
		return a.printJSON(map[string][]mcpclient.Info{"servers": infos})
	}
	if len(infos) == 0 {
		a.note("toolreg: no MCP servers in the settings\n")
	}
	t := agedTable{table: table{header: []string{"NAME", "TRANSPORT", "STATE", "PROTOCOL", "TOOLS", "PROMPTS", "RESOURCES", "MS", "ORIGIN", "ERROR"},
		spare: []string{"MS", "RESOURCES", "PROMPTS", "PROTOCOL", "TRANSPORT", "ORIGIN"}}}
	for _, s := range infos {
		t.addAged(s.CachedAt, s.AgeMs, s.Name, s.Transport, string(s.State), s.ProtocolVersion, strconv.Itoa(s.Tools), strconv.Itoa(s.Prompts),
			strconv.Itoa(s.Resources), strconv.FormatInt(s.ConnectMs, 10), s.Origin, s.Error)
	}
	if a.outTTY && len(infos) == 0 {
		return nil
	}
	return t.print(a)
}
