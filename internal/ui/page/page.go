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
	d := document{page: p}
	d.markup.page(p.Title+": tools", style, script, d.write)
	_, err := io.WriteString(w, d.b.String())
	return err
}
