package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/toolreg/toolreg/internal/mcpclient"
	"github.com/toolreg/toolreg/internal/registry"
)

// offersDocument is the JSON of servers --prompts and --resources. The lists
// that were not asked for are left out.
type offersDocument struct {
	Prompts     *[]mcpclient.Prompt           `json:"prompts,omitempty"`
	Resources   *[]mcpclient.Resource         `json:"resources,omitempty"`
	Templates   *[]mcpclient.ResourceTemplate `json:"resourceTemplates,omitempty"`
	Diagnostics []registry.Diagnostic         `json:"diagnostics"`
}

// offer is what one server offers beside tools.
type offer struct {
	prompts   []mcpclient.Prompt
	resources []mcpclient.Resource
	templates []mcpclient.ResourceTemplate
	diags     []registry.Diagnostic
	err       error
}

// runOffers lists the prompts or resources of the servers, or of those named.
func runOffers(ctx context.Context, a *app, o *serversOptions, names []string) error {
	if o.prompts && o.resources && !a.globals.JSON {
		return &usageError{err: errors.New("--prompts and --resources are two tables"), hint: "ask for one at a time, or for both with --json"}
	}
	if a.globals.Cached {
		return &usageError{err: errors.New("--cached asks no server, and prompts and resources are not kept"), hint: "leave --cached (TOOLREG_CACHED) out"}
	}
	if err := a.setup(ctx); err != nil {
		return err
	}
	servers, err := a.serversNamed(names)
	if err != nil {
		return err
	}
	defer closeServers(servers)
	all := a.offers(ctx, o, servers)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var diags []registry.Diagnostic
	var failed []error
	for _, of := range all {
		diags = append(diags, of.diags...)
		if of.err != nil {
			failed = append(failed, of.err)
			diags = append(diags, registry.Diagnostic{Severity: registry.SeverityError, Code: "source_failed", Message: of.err.Error()})
		}
	}
	named := len(names) > 0 || o.strict
	for i := range diags {
		if len(names) == 0 && diags[i].Code == "not_offered" { // of all servers, some have none
			diags[i].Severity = registry.SeverityInfo
		}
	}
	if len(failed) == 1 && len(all) == 1 && named {
		return failed[0] // said once, as the error
	}
	a.diagnose(diags)
	if err := a.printOffers(o, all, orEmpty(diags)); err != nil {
		return err
	}
	if len(failed) > 0 && named {
		return &reported{code: exitSourceFailed}
	}
	return nil
}

// serversNamed returns the servers of names, all without any. One that the
// settings keep out cannot be named alone.
func (a *app) serversNamed(names []string) ([]*mcpclient.Source, error) {
	if len(names) == 0 {
		if len(a.sources.servers) == 0 {
			a.note("toolreg: no MCP servers in the settings\n")
		}
		return a.sources.servers, nil
	}
	from, err := a.sources.named(names)
	if err != nil {
		return nil, err
	}
	var out []*mcpclient.Source
	for _, s := range from {
		if server, ok := s.(*mcpclient.Source); ok {
			out = append(out, server)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	for _, off := range a.sources.off {
		if _, ok := registry.MatchAny(patterns(names), off.Name); ok {
			return nil, &usageError{err: errors.New("server " + strconv.Quote(off.Name) + " is switched off: " + off.reason()), hint: "toolreg servers enable NAME"}
		}
	}
	return nil, a.sources.unknownServer(names[0])
}

// serverNamed returns the one server of a name.
func (a *app) serverNamed(name string) (*mcpclient.Source, error) {
	for _, s := range a.sources.servers {
		if s.Info().Name == name {
			return s, nil
		}
	}
	servers, err := a.serversNamed([]string{name})
	if err != nil {
		return nil, err
	}
	if len(servers) > 1 {
		return nil, &usageError{err: errors.New(strconv.Quote(name) + " names " + strconv.Itoa(len(servers)) + " servers, one is wanted")}
	}
	return servers[0], nil
}

// closeServers ends servers that no loader holds.
func closeServers(servers []*mcpclient.Source) {
	var wg sync.WaitGroup
	for _, s := range servers {
		wg.Go(func() { _ = s.Close() }) // what is wrong with a server that is closed concerns nobody
	}
	wg.Wait()
}

// offers asks all servers at once; the answers are in their order.
func (a *app) offers(ctx context.Context, o *serversOptions, servers []*mcpclient.Source) []offer {
	done := a.watch()
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

func (a *app) printOffers(o *serversOptions, all []offer, diags []registry.Diagnostic) error {
	prompts, resources, templates := []mcpclient.Prompt{}, []mcpclient.Resource{}, []mcpclient.ResourceTemplate{}
	for _, of := range all {
		prompts, resources, templates = append(prompts, of.prompts...), append(resources, of.resources...), append(templates, of.templates...)
	}
	if a.globals.JSON {
		d := offersDocument{Diagnostics: diags}
		if o.prompts {
			d.Prompts = &prompts
		}
		if o.resources {
			d.Resources, d.Templates = &resources, &templates
		}
		return a.printJSON(d)
	}
	if o.prompts {
		return a.printRows(promptTable(prompts))
	}
	return a.printRows(resourceTable(resources, templates))
}

// printRows prints a table, nothing where a terminal would see its header alone.
func (a *app) printRows(t *table) error {
	if a.outTTY && len(t.rows) == 0 {
		return nil
	}
	return t.print(a)
}

func promptTable(prompts []mcpclient.Prompt) *table {
	t := &table{header: []string{"SERVER", "PROMPT", "ARGUMENTS", "DESCRIPTION"}}
	for _, p := range prompts {
		var arguments []string
		for _, arg := range p.Arguments {
			if arg.Required {
				arguments = append(arguments, arg.Name)
			} else {
				arguments = append(arguments, "["+arg.Name+"]")
			}
		}
		t.add(p.Server, p.Name, strings.Join(arguments, " "), describe(p.Title, p.Description))
	}
	return t
}

func resourceTable(resources []mcpclient.Resource, templates []mcpclient.ResourceTemplate) *table {
	t := &table{header: []string{"SERVER", "KIND", "URI", "TYPE", "SIZE", "NAME", "DESCRIPTION"}}
	for _, r := range resources {
		size := ""
		if r.Size > 0 {
			size = strconv.FormatInt(r.Size, 10)
		}
		t.add(r.Server, "resource", r.URI, r.MIMEType, size, r.Name, describe(r.Title, r.Description))
	}
	for _, r := range templates {
		t.add(r.Server, "template", r.URITemplate, r.MIMEType, "", r.Name, describe(r.Title, r.Description))
	}
	return t
}

// describe puts a title before a description.
func describe(title, description string) string {
	if title == "" || description == "" {
		return title + description
	}
	return title + ": " + description
}
