package listcmd

import (
	"context"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/ui"
)

// showTool adds one tool to the page. callAs is the name to call it by.
func showTool(ctx context.Context, p *cli.Page, t *registry.Tool, callAs string) {
	p.Field("name", t.Name, ui.Bold)
	if t.DisplayName != t.Name {
		p.Field("display name", t.DisplayName, 0)
	}
	p.Field("title", t.MCP.Title, 0)
	p.Field("source", t.Source, 0)
	p.Field("server tool", t.ServerTool, 0)
	p.Field("declared in", t.Declared, 0)
	if o := cli.NewOverride(t); o != nil {
		p.Field("override", o.Origin, 0)
	}
	p.Field("category", string(t.Category), 0)
	p.Field("tags", strings.Join(t.Tags, ", "), 0)
	p.Field("version", t.Version, 0)
	p.Field("author", t.Author, 0)
	p.Field("icon", t.Icon, 0)
	if t.Optional {
		p.Field("optional", "yes", 0)
	}
	p.Field("aliases", strings.Join(t.Aliases, ", "), 0)
	p.Field("permissions", strings.Join(t.Permissions, ", "), 0)
	p.Field("annotations", string(t.Annotations), 0)
	p.Field("fingerprint", t.Fingerprint(), ui.Dim)
	if t.Description != "" {
		p.Title("description")
		p.Block(t.Description)
	}
	p.Params(ctx, t)
	p.JSON("output schema", t.OutputSchema)
	p.Examples(t, callAs)
}

// showUpstream shows the override of a tool and the tool without it.
func showUpstream(ctx context.Context, p *cli.Page, t *registry.Tool) {
	o := cli.NewOverride(t)
	if o == nil {
		return
	}
	p.JSON("override", o.Entry)
	p.Space()
	p.Title("without the override")
	p.Field("name", o.Upstream.Name, ui.Bold)
	p.Field("display name", o.Upstream.DisplayName, 0)
	p.Field("category", string(o.Upstream.Category), 0)
	p.Field("tags", strings.Join(o.Upstream.Tags, ", "), 0)
	if o.Upstream.Description != "" {
		p.Title("description")
		p.Block(o.Upstream.Description)
	}
	p.Params(ctx, &registry.Tool{Definition: *o.Upstream})
	p.JSON("output schema", o.Upstream.OutputSchema)
}
