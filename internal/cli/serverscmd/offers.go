package serverscmd

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/toolreg/toolreg/internal/args"
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/cli/complete"
	"github.com/toolreg/toolreg/internal/engine"
	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// offersDocument is the JSON of servers --prompts and --resources. Lists that
// were not requested are omitted.
type offersDocument struct {
	Prompts     *[]mcpclient.Prompt           `json:"prompts,omitempty"`
	Resources   *[]mcpclient.Resource         `json:"resources,omitempty"`
	Templates   *[]mcpclient.ResourceTemplate `json:"resourceTemplates,omitempty"`
	Diagnostics []registry.Diagnostic         `json:"diagnostics"`
}

// offer is what one server offers besides tools.
type offer struct {
	prompts   []mcpclient.Prompt
	resources []mcpclient.Resource
	templates []mcpclient.ResourceTemplate
	diags     []registry.Diagnostic
	err       error
}

// runOffers lists the prompts or resources of all servers, or of the named
// ones.
func runOffers(ctx context.Context, e *cli.Env, o *listOptions, names []string) error {
	if o.prompts && o.resources && !e.IO.JSON {
		return cli.Usage("--prompts and --resources can be used together only with --json",
			"add --json, or use one of them")
	}
	if e.Config.Globals.Cached {
		return cli.Usage("--prompts and --resources need the server, and --cached contacts none",
			"remove --cached (TOOLREG_CACHED)")
	}
	s, err := e.Engine.Session(ctx, cli.SessionOptions{})
	if err != nil {
		return err
	}
	servers, err := serversNamed(e.IO, s, names...)
	if err != nil {
		return err
	}
	defer closeServers(servers)
	all := offers(ctx, e.IO, o, servers)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var diags []registry.Diagnostic
	var failed []error
	for _, of := range all {
		diags = append(diags, of.diags...)
		if of.err != nil {
			failed = append(failed, of.err)
			diags = append(diags, registry.Diagnostic{Severity: registry.SeverityError,
				Code: "source_failed", Message: of.err.Error()})
		}
	}
	named := len(names) > 0 || o.Strict
	for i := range diags {
		if len(names) == 0 && diags[i].Code == "not_offered" { // with all servers, some may have none
			diags[i].Severity = registry.SeverityInfo
		}
	}
	if len(failed) == 1 && len(all) == 1 && named {
		return failed[0] // printed once, by the caller
	}
	e.IO.Diagnose(diags)
	if err := printOffers(e.IO, o, all, cli.OrEmpty(diags)); err != nil {
		return err
	}
	if len(failed) > 0 && named {
		return &cli.ExitError{Code: cli.ExitSourceFailed}
	}
	return nil
}

// serversNamed returns the servers with the names, or all servers without
// names. Naming only a disabled server is an error.
func serversNamed(ios *cli.IO, s *engine.Session, names ...string) ([]*mcpclient.Source, error) {
	on, off, err := s.Servers.Named(names...)
	switch {
	case err != nil:
		return nil, err
	case len(on) == 0 && len(names) == 0:
		ios.Notef("no MCP servers in the settings")
	case len(on)+len(off) == 0:
		return nil, &cli.UsageError{Err: errors.New(strconv.Quote(names[0]) + " is an API, which has only tools")}
	case len(on) == 0:
		return nil, cli.Usage("server "+strconv.Quote(off[0].Name)+" is not started: "+off[0].Reason(),
			off[0].Hint())
	}
	return on, nil
}

func serverNamed(ios *cli.IO, s *engine.Session, name string) (*mcpclient.Source, error) {
	servers, err := serversNamed(ios, s, name)
	if err != nil {
		return nil, err
	}
	for _, server := range servers {
		if server.Info().Name == name { // even if it also matches others as a glob
			return server, nil
		}
	}
	if len(servers) > 1 {
		return nil, &cli.UsageError{Err: errors.New(strconv.Quote(name) + " names " +
			strconv.Itoa(len(servers)) + " servers, but the flag needs exactly one")}
	}
	return servers[0], nil
}

// closeServers closes servers that no loader closes.
func closeServers(servers []*mcpclient.Source) {
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Go(func() { _ = s.Close() }) // errors of closing a server are ignored
	}
	wg.Wait()
}

// offers queries all servers concurrently; the results are in their order.
func offers(ctx context.Context, ios *cli.IO, o *listOptions, servers []*mcpclient.Source) []offer {
	done := ios.Screen.Watch()
	defer done()
	out := make([]offer, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			of := &out[i]
			if o.prompts {
				of.prompts, of.diags, of.err = s.Prompts(ctx)
			}
			if o.resources && of.err == nil {
				var more []registry.Diagnostic
				of.resources, of.templates, more, of.err = s.Resources(ctx)
				of.diags = append(of.diags, more...)
			}
		})
	}
	wg.Wait()
	return out
}

// completeOffers completes the prompts or resources of the server in the first
// argument, from the discovery cache.
func completeOffers(e *cli.Env, kind string) cobra.CompletionFunc {
	return e.Complete().Session(func(ctx context.Context,
		s *engine.Session, argv []string, _ string) []cobra.Completion {
		return complete.List(s.Connections.CachedOffers(ctx, argv[0], kind),
			func(o mcpclient.Offer) (string, string) { return o.Name, o.Description })
	})
}

// completePromptArguments completes the arguments of the prompt in the first
// two arguments.
func completePromptArguments(e *cli.Env) cobra.CompletionFunc {
	return e.Complete().Session(func(ctx context.Context,
		s *engine.Session, argv []string, word string) []cobra.Completion {
		var params []args.Param
		for _, o := range s.Connections.CachedOffers(ctx, argv[0], mcpclient.OfferPrompts) {
			if o.Name != argv[1] {
				continue
			}
			for _, a := range o.Arguments {
				params = append(params,
					args.Param{Name: a.Name, Type: "string", Required: a.Required, Description: a.Description})
			}
		}
		return e.Complete().Arguments(params, argv[2:], word)
	})
}

func printOffers(ios *cli.IO, o *listOptions, all []offer, diags []registry.Diagnostic) error {
	prompts, resources, templates := []mcpclient.Prompt{}, []mcpclient.Resource{}, []mcpclient.ResourceTemplate{}
	for _, of := range all {
		prompts, resources, templates = append(prompts, of.prompts...), append(resources, of.resources...),
			append(templates, of.templates...)
	}
	d := offersDocument{Diagnostics: diags}
	table, noun := promptTable(prompts), "prompt"
	if o.prompts {
		d.Prompts = &prompts
	}
	if o.resources {
		d.Resources, d.Templates = &resources, &templates
		table, noun = resourceTable(resources, templates), "resource"
	}
	if len(templates) > 0 {
		ios.Summary("%s, %s", text.Count(len(resources), "resource"), text.Count(len(templates), "template"))
		noun = ""
	}
	return ios.PrintResult(d, table, noun)
}

func promptTable(prompts []mcpclient.Prompt) *ui.Table {
	t := &ui.Table{Header: []string{"SERVER", "PROMPT", "ARGUMENTS", "DESCRIPTION"}}
	for _, p := range prompts {
		var arguments []string
		for _, arg := range p.Arguments {
			if arg.Required {
				arguments = append(arguments, arg.Name)
			} else {
				arguments = append(arguments, "["+arg.Name+"]")
			}
		}
		t.Add(p.Server, p.Name, strings.Join(arguments, " "), describe(p.Title, p.Description))
	}
	return t
}

func resourceTable(resources []mcpclient.Resource, templates []mcpclient.ResourceTemplate) *ui.Table {
	t := &ui.Table{
		Header: []string{"SERVER", "KIND", "URI", "TYPE", "SIZE", "NAME", "DESCRIPTION"},
		Whole:  []string{"URI"}, Spare: []string{"SIZE", "TYPE", "DESCRIPTION", "NAME"},
	}
	for _, r := range resources {
		size := ""
		if r.Size > 0 {
			size = strconv.FormatInt(r.Size, 10)
		}
		t.Add(r.Server, "resource", r.URI, r.MIMEType, size, r.Name, describe(r.Title, r.Description))
	}
	for _, r := range templates {
		t.Add(r.Server, "template", r.URITemplate, r.MIMEType, "", r.Name, describe(r.Title, r.Description))
	}
	return t
}

// describe puts a title before the first sentence of a description.
func describe(title, description string) string {
	description = text.FirstSentence(description)
	if title == "" || description == "" {
		return title + description
	}
	return title + ": " + description
}

type listOptions struct {
	cli.Selection
	prompts, resources bool
}
