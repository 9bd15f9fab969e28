package page

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/ui"
)

// markup is HTML in the making. It does not use html/template, which calls
// methods by name and thereby prevents the linker from removing unused methods of
// the program.
type markup struct{ b strings.Builder }

// put writes markup with texts inserted, whose invisible characters and HTML are
// escaped. In attributes the verbs must be in double quotes.
func (m *markup) put(markup string, texts ...any) {
	for i, t := range texts {
		if s, ok := t.(string); ok {
			texts[i] = html.EscapeString(ui.Visible(s))
		}
	}
	fmt.Fprintf(&m.b, markup, texts...)
}

// writePage writes a page, whose content security policy allows its own style and script. Pages of a server may talk to
// it, the others to nobody.
func writePage(w io.Writer, title, style, script string, served bool, body func(*markup)) error {
	directives, referrer := "form-action 'none'", "no-referrer"
	if served {
		directives, referrer = "connect-src 'self'; form-action 'self'", "same-origin"
	}
	m := &markup{}
	m.put("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	fmt.Fprintf(&m.b,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src %s; script-src %s; base-uri 'none'; %s\">\n",
		hash(style), hash(script), directives)
	m.put("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"%s\">\n",
		referrer)
	m.put("<title>%s</title>\n", title)
	m.b.WriteString("<style>" + style + "</style>\n</head>\n<body>\n")
	body(m)
	m.b.WriteString("<script>" + script + "</script>\n</body>\n</html>\n")
	_, err := io.WriteString(w, m.b.String())
	return err
}

// hash returns the hash of a text for a content security policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// number writes one of the numbers at the top of a page.
func (m *markup) number(n int, what string) {
	m.put("<li><b>%s</b> %s</li>\n", grouped(n), what)
}

func (m *markup) footer(version string, at time.Time) {
	m.put("<footer>Made by toolreg %s on <time datetime=\"%s\">%s</time>.</footer>\n", version,
		at.UTC().Format(time.RFC3339), at.Format("2 January 2006, 15:04 MST"))
}

// document writes the page of a registry.
type document struct {
	*markup
	page *Page
}

func (d *document) write() {
	p := d.page
	d.put("<a class=\"skip\" href=\"#tools\">Skip to the tools</a>\n")
	d.header()
	d.filters()
	d.put("<main>\n<section id=\"tools\" aria-label=\"Tools\">\n")
	for i := range p.Tools {
		d.tool(&p.Tools[i])
	}
	d.put("</section>\n<p id=\"nothing\" hidden>No tool matches. <button type=\"button\" id=\"clear\">Clear the filters</button></p>\n")
	d.sources()
	d.costs()
	d.lock()
	d.hidden()
	d.notices()
	d.put("</main>\n")
	d.footer(p.Version, p.Made)
}

func (d *document) header() {
	p := d.page
	d.put("<header>\n<h1>%s</h1>\n<ul class=\"numbers\">\n", p.Title)
	d.number(len(p.Tools), text.Plural(len(p.Tools), "tool"))
	sources := len(counts(p.Tools, func(t *Tool) string { return t.Source }))
	d.number(sources, text.Plural(sources, "source"))
	asked := counts(p.Tools, func(t *Tool) string { return t.Decision })["ask"]
	d.number(asked, "ask before they run")
	if c := cost(p.Costs, p.Format); c != nil {
		d.number(c.Tokens, "tokens per request as "+c.Format)
	}
	if p.Lock != nil {
		d.put("<li><a href=\"#lock\"><b>%s</b> %s from %s</a></li>\n",
			grouped(len(p.Lock.Changes)), text.Plural(len(p.Lock.Changes), "difference"), p.Lock.File)
	}
	if len(p.Notices) > 0 {
		d.put("<li><a href=\"#notices\"><b>%s</b> %s</a></li>\n",
			grouped(len(p.Notices)), text.Plural(len(p.Notices), "diagnostic"))
	}
	d.put("</ul>\n</header>\n")
}

// filters writes the filters. They are hidden until the script shows them, because
// they do not work without it.
func (d *document) filters() {
	p := d.page
	d.put("<div role=\"search\" id=\"filters\" hidden>\n<label class=\"wide\">Search <input type=\"search\" id=\"query\" placeholder=\"name, description or param\" autocomplete=\"off\" spellcheck=\"false\" aria-keyshortcuts=\"/\"></label>\n")
	d.choice("source", "Source", "All sources", counts(p.Tools, func(t *Tool) string { return t.Source }))
	d.choice("category", "Category", "All categories", counts(p.Tools, func(t *Tool) string { return t.Category }))
	d.choice("decision", "Policy", "All decisions", counts(p.Tools, func(t *Tool) string { return t.Decision }))
	d.put("<label>Sort <select id=\"sort\"><option value=\"\">By name</option><option value=\"cost\">By cost</option></select></label>\n")
	d.put("<label>Cost as <select id=\"format\">")
	for _, c := range p.Costs {
		selected := ""
		if c.Format == p.Format {
			selected = " selected"
		}
		d.put("<option%s>%s</option>", selected, c.Format)
	}
	d.put("</select></label>\n<p role=\"status\" id=\"count\"></p>\n</div>\n")
}

// choice writes a list from which to choose one of several values, each with
// its count.
func (d *document) choice(id, label, all string, values map[string]int) {
	d.put("<label>%s <select id=\"%s\"><option value=\"\">%s</option>", label, id, all)
	for _, v := range slices.Sorted(maps.Keys(values)) {
		d.put("<option value=\"%s\">%s (%d)</option>", v, v, values[v])
	}
	d.put("</select></label>\n")
}

// sources writes what the tools of each source cost, most first.
func (d *document) sources() {
	p := d.page
	tokens := map[string]int{}
	most := 1
	for i := range p.Tools {
		if c := cost(p.Tools[i].Costs, p.Format); c != nil {
			tokens[p.Tools[i].Source] += c.Tokens
			most = max(most, tokens[p.Tools[i].Source])
		}
	}
	if len(tokens) == 0 {
		return
	}
	tools := counts(p.Tools, func(t *Tool) string { return t.Source })
	d.put("<section id=\"sources\">\n<h2>Cost by source</h2>\n<div class=\"scroll\"><table class=\"costs\">\n<thead><tr><th scope=\"col\">Source</th><th scope=\"col\">Tools</th><th scope=\"col\">Tokens</th><td></td></tr></thead>\n<tbody>\n")
	for _, name := range slices.SortedFunc(maps.Keys(tokens),
		func(a, b string) int { return cmp.Or(cmp.Compare(tokens[b], tokens[a]), cmp.Compare(a, b)) }) {
		d.put("<tr data-source=\"%s\"><th scope=\"row\">%s</th><td>%s</td><td class=\"tokens\">%s</td><td aria-hidden=\"true\"><progress max=\"%d\" value=\"%d\"></progress></td></tr>\n",
			name, name, grouped(tools[name]), grouped(tokens[name]), most, tokens[name])
	}
	d.put("</tbody>\n</table></div>\n</section>\n")
}

func (d *document) costs() {
	p := d.page
	if len(p.Costs) == 0 {
		return
	}
	d.put("<section id=\"costs\">\n<h2>Cost per request</h2>\n<p>Size of the declarations of all tools in every request. Token counts are estimates.</p>\n")
	d.costTable(p.Costs)
	d.put("</section>\n")
}

func (d *document) costTable(costs []Cost) {
	most := 1
	for _, c := range costs {
		most = max(most, c.Bytes)
	}
	d.put("<div class=\"scroll\"><table class=\"costs\">\n<thead><tr><th scope=\"col\">Format</th><th scope=\"col\">Bytes</th><th scope=\"col\">Tokens</th><td></td></tr></thead>\n<tbody>\n")
	for _, c := range costs {
		d.put("<tr data-format=\"%s\" data-tokens=\"%d\"><th scope=\"row\">%s</th><td>%s</td><td>%s</td><td aria-hidden=\"true\"><progress max=\"%d\" value=\"%d\"></progress></td></tr>\n",
			c.Format, c.Tokens, c.Format, grouped(c.Bytes), grouped(c.Tokens), most, c.Bytes)
	}
	d.put("</tbody>\n</table></div>\n")
}

func (d *document) lock() {
	l := d.page.Lock
	if l == nil {
		return
	}
	d.put("<section id=\"lock\">\n<h2>Differences from %s</h2>\n", l.File)
	if len(l.Changes) == 0 {
		d.put("<p>No tool differs from the lock file.</p>\n")
	}
	for _, c := range l.Changes {
		d.put("<details class=\"change\"><summary><span class=\"tag %s\">%s</span> <code>%s</code> <span class=\"source\">%s</span>",
			c.Kind, c.Kind, c.Name, c.Source)
		if len(c.Parts) > 0 {
			d.put(" <span>%s</span>", strings.Join(c.Parts, ", "))
		}
		d.put("</summary>\n")
		d.diff(c.Diff)
		d.put("</details>\n")
	}
	d.put("</section>\n")
}

// diff writes a unified diff with a class for each kind of line.
func (d *document) diff(diff string) {
	if diff == "" {
		d.put("<p>The whole definition.</p>\n")
		return
	}
	d.put("<pre class=\"diff\" tabindex=\"0\">")
	for line := range strings.Lines(diff) {
		switch line[0] {
		case '+':
			d.put("<ins>%s</ins>", line)
		case '-':
			d.put("<del>%s</del>", line)
		default:
			d.put("%s", line)
		}
	}
	d.put("</pre>\n")
}

func (d *document) hidden() {
	if len(d.page.Hidden) == 0 {
		return
	}
	d.put("<section id=\"hidden\">\n<h2>Not offered</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Tool</th><th scope=\"col\">Source</th><th scope=\"col\">Reason</th><th scope=\"col\">Set at</th></tr></thead>\n<tbody>\n")
	for _, h := range d.page.Hidden {
		d.put("<tr><th scope=\"row\"><code>%s</code></th><td>%s</td><td>%s</td><td>%s</td></tr>\n",
			h.Name, h.Source, h.Reason, h.Setting)
	}
	d.put("</tbody>\n</table></div>\n</section>\n")
}

func (d *document) notices() {
	if len(d.page.Notices) == 0 {
		return
	}
	d.put("<section id=\"notices\">\n<h2>Diagnostics</h2>\n<ul>\n")
	for _, n := range d.page.Notices {
		d.put("<li><span class=\"tag %s\">%s</span> <span class=\"text\">%s</span>", n.Severity, n.Severity, n.Message)
		if n.Hint != "" {
			d.put(" <span class=\"hint\">%s</span>", n.Hint)
		}
		d.put("</li>\n")
	}
	d.put("</ul>\n</section>\n")
}

func counts(tools []Tool, of func(*Tool) string) map[string]int {
	out := map[string]int{}
	for i := range tools {
		out[of(&tools[i])]++
	}
	return out
}

func cost(costs []Cost, format string) *Cost {
	if i := slices.IndexFunc(costs, func(c Cost) bool { return c.Format == format }); i >= 0 {
		return &costs[i]
	}
	return nil
}

func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

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

func decision(d string) string {
	return cmp.Or(map[string]string{"allow": "allowed", "ask": "asks", "deny": "denied"}[d], d)
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
