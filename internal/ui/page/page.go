// Package page writes a registry, or statistics of calls, as a self-contained HTML
// page: it needs no network, no other file and no foreign script, and is readable
// without its own script. All text on it is untrusted and escaped. A content security
// policy allows only the page's own style and script, by their hashes.
package page

import (
	_ "embed" // the style and the script
	"io"
	"time"
)

// Page is the content of the page. All texts are plain text.
type Page struct {
	Title   string
	Version string // version of toolreg
	Made    time.Time
	Tools   []Tool
	Format  string // format whose costs are shown initially
	Costs   []Cost // costs of all tools together, by format
	Lock    *Lock  // nil if there is no lock file
	Hidden  []Hidden
	Notices []Notice
}

// Tool is one tool of the page.
type Tool struct {
	Name, DisplayName, Description string
	Source, Category               string
	Facts                          []Fact
	Decision, Reason, Origin       string // policy's decision: allow, ask, sandbox or deny
	Params                         []Param
	Examples                       []Example
	Costs                          []Cost
	Change                         *Change // nil if unchanged since the lock file was written
	Schema                         string  // the input schema, indented
}

// Fact is another property of a tool.
type Fact struct{ Name, Value string }

// Param is one param of a tool.
type Param struct {
	Name, Type, Default, Allowed, Example, Description string
	Required                                           bool
}

// Example is a command line with a description of what it does.
type Example struct{ Description, Command string }

// Cost is the size of declarations in every request, in one format.
type Cost struct {
	Format        string
	Bytes, Tokens int
}

// Lock describes the differences between the tools and the lock file.
type Lock struct {
	File    string
	Changes []Change
}

// Change is one difference from the lock file.
type Change struct {
	Kind   string // added, removed or changed
	Source string
	Name   string
	Parts  []string
	Diff   string // unified diff
}

// Hidden is a tool that a setting excludes.
type Hidden struct{ Name, Source, Reason, Setting string }

// Notice is a diagnostic from loading the registry.
type Notice struct{ Severity, Message, Hint string }

//go:embed page.css
var style string

//go:embed page.js
var script string

// Write writes the page.
func Write(w io.Writer, p *Page) error {
	return writePage(w, p.Title+": tools", style, script, false, func(m *markup) { (&document{m, p}).write() })
}

// Link is a link to another page of the same server.
type Link struct{ Text, Path string }

//go:embed console.css
var consoleStyle string

//go:embed console.js
var consoleScript string

// WriteConsole writes the page of the console, which its script fills. base is the path of the
// console.
func WriteConsole(w io.Writer, title, version, base string, links []Link) error {
	return writePage(w, title+": console", style+consoleStyle, consoleScript, true, func(m *markup) {
		m.put("<header>\n<h1>%s</h1>\n<nav aria-label=\"Pages\">", title)
		for _, l := range links {
			m.put("<a href=\"%s\">%s</a> ", l.Path, l.Text)
		}
		m.put("<form method=\"post\" action=\"%s/sign-out\"><button>Sign out</button></form></nav>\n", base)
		m.put("<ul class=\"numbers\" id=\"numbers\"></ul>\n<p role=\"status\" id=\"status\">Connecting …</p>\n</header>\n<noscript><p>The console needs JavaScript.</p></noscript>\n<main id=\"console\" data-base=\"%s\" hidden>\n",
			base)
		m.put("<section aria-labelledby=\"questions-title\">\n<h2 id=\"questions-title\">Questions</h2>\n<div id=\"questions\"></div>\n<p id=\"no-questions\">No call waits for an answer.</p>\n</section>\n")
		m.put("<section aria-labelledby=\"calls-title\">\n<h2 id=\"calls-title\">Calls</h2>\n<div id=\"filters\"><label class=\"wide\">Search <input type=\"search\" id=\"query\" placeholder=\"tool, caller, client or outcome\" autocomplete=\"off\" spellcheck=\"false\" aria-keyshortcuts=\"/\"></label>\n<label>Show <select id=\"which\"><option value=\"\">All calls</option><option value=\"failed\">Failed and refused</option><option value=\"asked\">Asked about</option></select></label></div>\n")
		m.put("<div id=\"calls\" role=\"table\" aria-labelledby=\"calls-title\" tabindex=\"0\"><div role=\"row\" class=\"call head\">")
		for _, name := range []string{"Time", "Tool", "Caller", "Decision", "Outcome", "Duration", "Size"} {
			m.put("<span role=\"columnheader\">%s</span>", name)
		}
		m.put("</div><div id=\"rows\" role=\"rowgroup\"></div></div>\n<p class=\"hint\" id=\"shown\"></p>\n</section>\n")
		m.put("<section aria-labelledby=\"servers-title\">\n<h2 id=\"servers-title\">Servers</h2>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Server</th><th scope=\"col\">State</th><th scope=\"col\">Tools</th><td></td></tr></thead><tbody id=\"servers\"></tbody></table></div>\n</section>\n</main>\n<footer>toolreg %s. Times are in the time zone <span id=\"zone\"></span>.</footer>\n",
			version)
	})
}

// Login is a page of a login to a server.
type Login struct {
	Heading, Text string
	// Action is the path to which a form posts a field "token"; "" means there is no form. Hint says
	// which token is meant, and Wrong why it is asked for again.
	Action, Hint, Wrong string
	// Link is where to go on; "" means nowhere.
	Link string
}

// WriteLogin writes a page of a login.
func WriteLogin(w io.Writer, p Login) error { return writeForm(w, p.Heading, p, "Go on") }

// WriteSignIn writes the form that asks for a token. reason says why it is asked for again; it
// may be empty.
func WriteSignIn(w io.Writer, title, base, reason string) error {
	return writeForm(w, title+": console", Login{Heading: title, Action: base + "/sign-in", Wrong: reason,
		Hint: "A token of this server that may enter the console."}, "Sign in")
}

// writeForm writes a page with a text, if there is one, and a link or a form with a button.
func writeForm(w io.Writer, title string, p Login, button string) error {
	return writePage(w, title, style+consoleStyle, "", true, func(m *markup) {
		m.put("<main class=\"sign-in\">\n<h1>%s</h1>\n", p.Heading)
		if p.Text != "" {
			m.put("<p>%s</p>\n", p.Text)
		}
		switch {
		case p.Link != "":
			m.put("<p><a href=\"%s\">Go on</a></p>\n", p.Link)
		case p.Action != "":
			m.put("<form method=\"post\" action=\"%s\">\n", p.Action)
			if p.Wrong != "" {
				m.put("<p role=\"alert\" class=\"wrong\">%s</p>\n", p.Wrong)
			}
			m.put("<label>Token <input type=\"password\" name=\"token\" required autofocus autocomplete=\"current-password\"></label>\n<button>%s</button>\n<p class=\"hint\">%s</p>\n</form>\n",
				button, p.Hint)
		}
		m.put("</main>\n")
	})
}
