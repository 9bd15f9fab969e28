package page

import (
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// tool writes one tool: a summary line that opens to the details.
func (d *document) tool(t *Tool) {
	d.put("<details class=\"tool\" id=\"tool-%s\" data-source=\"%s\" data-category=\"%s\" data-decision=\"%s\">\n<summary>",
		t.Name, t.Source, t.Category, t.Decision)
	d.put("<span class=\"name\">%s</span> <span class=\"source\">%s</span> <span class=\"tags\">", t.Name, t.Source)
	if t.Change != nil {
		d.put("<span class=\"tag %s\">%s</span> ", t.Change.Kind, t.Change.Kind)
	}
	if t.Category != "" {
		d.put("<span class=\"tag category\">%s</span> ", t.Category)
	}
	d.put("<span class=\"tag %s\">%s</span></span>", t.Decision, decision(t.Decision))
	if c := cost(t.Costs, d.page.Format); c != nil {
		d.put(" <span class=\"cost\"><span class=\"tokens\">%s</span> tokens</span>", grouped(c.Tokens))
	}
	d.put(" <span class=\"line\">%s</span></summary>\n<div class=\"body\">\n",
		text.FirstLine(strings.TrimSpace(t.Description)))
	if t.Description != "" {
		d.put("<p class=\"text\">%s</p>\n", strings.TrimSpace(t.Description))
	}
	d.facts(t)
	d.params(t.Params)
	d.examples(t.Examples)
	if t.Change != nil {
		d.put("<h3>Difference from the lock file</h3>\n")
		d.diff(t.Change.Diff)
	}
	d.put("<details><summary>Cost by format</summary>\n")
	d.costTable(t.Costs)
	d.put("</details>\n")
	if t.Schema != "" {
		d.put("<details><summary>Input schema</summary>\n<pre tabindex=\"0\">%s</pre>\n</details>\n", t.Schema)
	}
	d.put("</div>\n</details>\n")
}

// decision returns the label of a policy decision.
func decision(d string) string {
	switch d {
	case "allow":
		return "allowed"
	case "ask":
		return "asks"
	case "deny":
		return "denied"
	}
	return d
}

func (d *document) facts(t *Tool) {
	d.put("<dl>\n")
	fact := func(name, value string) {
		if value != "" {
			d.put("<div><dt>%s</dt><dd>%s</dd></div>\n", name, value)
		}
	}
	policy := t.Reason
	if t.Origin != "" {
		policy += " (" + t.Origin + ")"
	}
	fact("Policy: "+decision(t.Decision), policy)
	if t.DisplayName != t.Name {
		fact("Display name", t.DisplayName)
	}
	for _, f := range t.Facts {
		fact(f.Name, f.Value)
	}
	d.put("</dl>\n")
}

func (d *document) params(params []Param) {
	if len(params) == 0 {
		d.put("<p>This tool takes no params.</p>\n")
		return
	}
	d.put("<h3>Params</h3>\n<div class=\"scroll\"><table class=\"params\">\n<thead><tr><th scope=\"col\">Param</th><th scope=\"col\">Type</th><th scope=\"col\">Description</th><th scope=\"col\">Example</th></tr></thead>\n<tbody>\n")
	for _, p := range params {
		d.put("<tr><th scope=\"row\"><code>%s</code>", p.Name)
		if p.Required {
			d.put(" <span class=\"required\">required</span>")
		}
		d.put("</th><td>%s</td><td><span class=\"text\">%s</span>", p.Type, p.Description)
		if p.Allowed != "" {
			d.put("<span class=\"detail\">Allowed: <code>%s</code></span>", p.Allowed)
		}
		if p.Default != "" {
			d.put("<span class=\"detail\">Default: <code>%s</code></span>", p.Default)
		}
		d.put("</td><td><code>%s</code></td></tr>\n", p.Example)
	}
	d.put("</tbody>\n</table></div>\n")
}

func (d *document) examples(examples []Example) {
	if len(examples) == 0 {
		return
	}
	d.put("<h3>Examples</h3>\n")
	for _, e := range examples {
		if e.Description != "" {
			d.put("<p>%s</p>\n", e.Description)
		}
		d.put("<pre tabindex=\"0\">%s</pre>\n", e.Command)
	}
}
