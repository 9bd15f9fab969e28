package policy

import (
	"context"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/registry"
)

const (
	originDefault  = "default"
	originApproval = "approval"
)

// decision is the state of a decision on one call.
type decision struct {
	ctx     context.Context
	policy  *Policy
	tool    *registry.Tool
	subject registry.Subject
	asking  registry.Asking // the question that the tool itself asks
	changes []Change
	loaded  bool
	found   []Approval
	away    error           // why the approvals, which are shared, cannot be read
	unread  bool            // the command line could not be parsed
	unsure  bool            // banned programs cannot be ruled out
	person  bool            // only a person may answer
	changed func() []string // see [Confinement.Changed]
	moved   bool            // a command runs what it finds in a folder that "always" does not name
	whole   bool            // the decision is about the tool, not about a call
	who     *caller.Caller  // see [decision.caller]
	called  bool            // who is set
	// anyClient says that the caller is not known, so that rules about clients may match.
	anyClient bool
	call      registry.Call

	contested string // see [registry.Tool.Contested]; "" if the call names the tool's server

	computed
}

// computed holds values that are computed at most once per decision.
type computed struct {
	about            []*Rule  // see [decision.rules]
	spellings, names []string // names of the tool: in lower case for strict rules, exact for rules that loosen
	paths            []pathname
	places           *places            // see [decision.where]
	absolute         map[*Rule][]string // see [decision.globs]
	shared           bool               // several goroutines may read it
	shapes           []shape            // of the params, for expressions; see [decision.inShapes]
	shapesErr        error
	evaluations      map[*jq.Expression]evaluated
}

// category returns the category of the tool as far as it can be trusted: an
// untrusted server's claims about its own tools are ignored, and a tool with the name of a
// built-in tool counts at least as that.
func (d *decision) category() registry.Category {
	own := d.tool.Category
	if d.tool.IsMCP() && !d.tool.Trusted || !own.Valid() {
		own = registry.CategoryOther
	}
	if n := d.bears(); n != nil {
		return registry.Strictest(own, n.Category)
	}
	return own
}

// isEdit reports whether the call is an edit by a built-in tool that stays inside
// the workspace.
func (d *decision) isEdit() bool {
	if d.tool.Source != registry.SourceBuiltin || d.category() != registry.CategoryWrite {
		return false
	}
	for _, p := range d.subject.Paths {
		if !inside(p) {
			return false
		}
	}
	return len(d.subject.Paths) > 0 || d.whole && d.tool.Subject != nil
}

// writesNoFile reports whether the call only changes data of toolreg itself, such
// as the todo list.
func (d *decision) writesNoFile() bool {
	return d.tool.Source == registry.SourceBuiltin && d.category() == registry.CategoryWrite && d.tool.Subject == nil
}

// inside reports whether a workspace-relative path stays inside the workspace
// lexically. The tools themselves check symbolic links.
func inside(p string) bool {
	p = path.Clean(strings.ReplaceAll(p, `\`, "/"))
	return !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../") && !strings.Contains(p, ":")
}

// guardedPath returns the first path that requires confirmation, or "" if none
// does.
func (d *decision) guardedPath() string { return d.changedPath(d.policy.Guarded) }

// newHiddenPath is guardedPath for new files and folders whose names begin with a dot.
func (d *decision) newHiddenPath() string { return d.changedPath(d.policy.NewHidden) }

// changedPath returns the first path that the call may change and that is meant, or "".
func (d *decision) changedPath(meant func(string) bool) string {
	if meant == nil || d.category() == registry.CategoryRead {
		return ""
	}
	for _, p := range d.subject.Paths {
		if meant(p) {
			return p
		}
	}
	return ""
}

// hostsOf returns the host of each URL, with the port if it is not the default and
// with the scheme if it is not https, because consent to an encrypted connection
// does not extend to an unencrypted one. It returns nil if a URL cannot be parsed.
func hostsOf(urls []string) []string {
	var out []string
	for _, raw := range urls {
		u, err := url.Parse(raw)
		if err != nil || u.Hostname() == "" {
			return nil
		}
		host := strings.ToLower(u.Hostname())
		if port := u.Port(); port != "" && !(u.Scheme == "https" && port == "443") && !(u.Scheme == "http" && port == "80") {
			host += ":" + port
		}
		if u.Scheme != "https" {
			host = u.Scheme + "://" + host
		}
		if !slices.Contains(out, host) {
			out = append(out, host)
		}
	}
	return out
}
