package policy

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// facts are what is known about a call, or about a tool as a whole, before the decision. They do
// not change; costly ones are computed when first needed. They are safe for concurrent use.
type facts struct {
	identity
	ctx       context.Context
	policy    *Policy
	call      *registry.Call   // nil if they are about the tool as a whole
	who       *caller.Caller   // nil is the person at the command line
	anyone    bool             // the caller is not known, so that rules about clients may match
	rules     []*Rule          // about the caller, in order
	means     Means            // to confine the program that the call starts
	subject   registry.Subject // what the call touches, with the files that its command line writes
	fallbacks []string         // files that it writes if a cd in it fails
	trees     []string         // what it moves or removes with all that is in it
	unplaced  bool             // it writes files in an unknown folder
	parts     []*matter        // of the command line
	unread    bool             // the command line could not be parsed
	unsure    bool             // a ban or a rule may apply to a part
	person    bool             // only a person may answer
	asking    registry.Asking  // the question that the tool itself asks

	stored      fact[stored]        // see [facts.approvals]
	places      fact[*places]       // see [facts.where]
	paths       fact[[]pathname]    // of subject
	shapes      fact[shapes]        // see [facts.inShapes]
	onPaths     factOf[*Rule, bool] // see [facts.rulePaths]
	evaluations factOf[*jq.Expression, evaluated]
	tracked     factOf[string, bool] // folders of the workspace; see [facts.isOfProject]
}

// matter is what a clause decides about: a call, or one part of its command line.
type matter struct {
	*facts
	part      *shell.Command  // nil is the whole call
	banned    *registry.Entry // the program that the part certainly runs; nil if there is none
	outside   *Limit          // one of Core that excludes the part; nil if none does
	rule      *Rule           // the rule that decides; nil if none matches
	doubt     string          // why a ban or another rule may apply to the part; "" if none may
	elsewhere string          // see [facts.elsewhere]

	remembered fact[recalled]
}

// recalled is what remembered answers say about a call or a part of its command line.
type recalled struct {
	approval  *Approval // allows it; nil if none does
	elsewhere bool      // an approval would apply if the part did not run in another folder
	changes   []Change  // changes that void an approval
}

// stored are the approvals that apply to the caller, or the error of reading shared ones.
type stored struct {
	list []Approval
	away error
}

// evaluated is the result of an expression for the params of the call: whether it is true in all of
// their shapes, and in any.
type evaluated struct {
	all, any bool
	err      error
}

// shapes are the params in the different shapes of the tool, or why these are unknown.
type shapes struct {
	list []*shape
	err  error
}

// shape has the params of the call in one shape; see [registry.Tool.Shapes].
type shape struct {
	params  json.RawMessage
	decoded any // nil until it is needed
}

func (s *shape) isTrue(ctx context.Context, when *jq.Expression) (ok bool, err error) {
	if s.decoded == nil {
		if s.decoded, err = jq.Decode(s.params); err != nil {
			return false, err
		}
	}
	if ok, err = when.IsTrue(ctx, s.decoded); err != nil {
		s.decoded = nil // an expression that was stopped may still be reading it
	}
	return ok, err
}

// factsOfTool returns the facts of a tool as a whole. If anyone is set, the caller is not known.
func (p *Policy) factsOfTool(ctx context.Context, t *registry.Tool, anyone bool) *facts {
	f := &facts{
		ctx:      ctx,
		policy:   p,
		who:      caller.From(ctx),
		anyone:   anyone,
		identity: identity{tool: t, category: categoryOf(t), bears: t.Bears(), canonical: p.Canonical},
	}
	if f.canonical == nil {
		f.canonical = func(string) string { return "" }
	}
	f.rules = p.rulesFor(f.who, anyone)
	if t.Program != "" && p.Means != nil {
		f.means = p.Means(t.Program)
	}
	return f
}

// categoryOf returns the category of a tool as far as it can be trusted. What an untrusted server
// says about its own tools is ignored, and a tool with the name of a built-in tool is treated at
// least as strictly as that one.
func categoryOf(t *registry.Tool) registry.Category {
	own := t.Category
	if t.IsMCP() && !t.Trusted || !own.Valid() {
		own = registry.CategoryOther
	}
	if n := t.Bears(); n != nil {
		return registry.Strictest(own, n.Category)
	}
	return own
}

// isEdit reports whether the call is an edit by a built-in tool that stays inside
// the workspace.
func (f *facts) isEdit() bool {
	if f.tool.Source != registry.SourceBuiltin || f.category != registry.CategoryWrite {
		return false
	}
	if f.call == nil {
		return f.tool.Subject != nil
	}
	return len(f.subject.Paths) > 0 && !slices.ContainsFunc(f.subject.Paths, func(p string) bool { return !isInside(p) })
}

// changes returns the first path that the call may change and for which meant is true; "" if there
// is none.
func (f *facts) changes(meant func(path string) bool) string {
	if meant != nil && f.category != registry.CategoryRead {
		if i := slices.IndexFunc(f.subject.Paths, meant); i >= 0 {
			return f.subject.Paths[i]
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
		host := strings.ToLower(strings.TrimSuffix(u.Host, ":"+u.Port())) // [::1]:80 is not [::1:80]
		if port := u.Port(); port != "" && !(u.Scheme == "https" && port == "443") &&
			!(u.Scheme == "http" && port == "80") {
			host += ":" + port
		}
		if u.Scheme != "https" {
			host = u.Scheme + "://" + host
		}
		out = text.AppendNew(out, host)
	}
	return out
}

// RaisedCategory returns the category that rules and defaults use for a tool with the name of a
// built-in one, or "" if that is the tool's own.
func RaisedCategory(t *registry.Tool) registry.Category {
	if c := categoryOf(t); t.Bears() != nil && c != t.Category {
		return c
	}
	return ""
}
