package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/registry"
)

// hides returns a function that reports whether the call must not show a path, or nil if it may
// show everything. For two calls with the same key, the functions hide the same. This is for calls
// such as searches, which name a folder and read the files in it. If decided asks, it hides nothing,
// because the person will have agreed when the call runs. Only built-in tools can leave files out;
// what others show is unknown here.
func (f *facts) hides(decided *Rule) (hides func(string) bool, key string) {
	if f.tool.Source != registry.SourceBuiltin {
		return nil, ""
	}
	byRules, key := f.hidesByRules(decided)
	if f.policy.leadsToCredentials() == nil {
		return byRules, key
	}
	guards, guardsKey := f.hidesCredentials()
	return func(path string) bool { return byRules != nil && byRules(path) || guards(path) }, key + guardsKey
}

// hidesCredentials is hides for credentials. It does not hide those that the call names: a rule or
// a person has allowed them by the time it runs.
func (f *facts) hidesCredentials() (hides func(string) bool, key string) {
	rules := f.pathRules()
	for _, r := range rules {
		key += fmt.Sprintf("%v %q %d\n", r.Decision, r.Path, r.Layer)
	}
	var named []string
	for _, p := range f.subject.Paths {
		if f.credential(p) != "" {
			named = append(named, f.where().name(p).absolute)
		}
	}
	return func(path string) bool {
		if f.credential(path) == "" {
			return false
		}
		at := f.where().name(path).absolute
		return !f.opens(rules, path) && !slices.ContainsFunc(named,
			func(folder string) bool { return at == folder || strings.HasPrefix(at, folder+"/") })
	}, fmt.Sprintf("credentials %q %q\n%s", f.policy.Workspace, named, key)
}

// pathRules returns the rules with a path that apply to the call, and rules that deny it whatever
// the path.
func (f *facts) pathRules() (out []*Rule) {
	for _, r := range f.rules {
		if (r.Path != "" || r.Decision == Deny) && f.isAboutPaths(r) {
			out = append(out, r)
		}
	}
	return out
}

// opens reports whether the first of the rules whose path matches allows it.
func (f *facts) opens(rules []*Rule, path string) bool {
	p := f.where().name(path)
	for i, r := range rules {
		if r.Path != "" && f.where().match(r, p) {
			return prevailing(rules[i:],
				func(r *Rule) bool { return r.Path == "" || f.where().match(r, p) }).Decision == Allow
		}
	}
	return false
}

// credential returns why a path may lead to credentials; "" if it does not.
func (f *facts) credential(path string) string {
	leads := f.policy.leadsToCredentials()
	if leads == nil {
		return ""
	}
	p := f.where().name(path)
	if why := leads(filepath.FromSlash(p.absolute)); why != "" || p.real == p.absolute {
		return why
	}
	return leads(filepath.FromSlash(p.real))
}

// hidesByRules is hides for rules about paths that deny or ask.
func (f *facts) hidesByRules(decided *Rule) (hides func(string) bool, key string) {
	if !slices.ContainsFunc(f.rules, func(r *Rule) bool { return r.Path != "" && r.Decision != Allow }) {
		return nil, ""
	}
	var rules []*Rule // for this tool, up to one that matches every path, and what prevails over them
	strict, ended := false, false
	loosens := 0 // layer of the profile's rules
	for _, r := range f.rules {
		if ended && (r.Decision != Deny || r.Layer >= loosens) || !f.isAboutPaths(r) {
			continue
		}
		if r.Profile != "" {
			loosens = max(loosens, r.Layer)
		}
		key += fmt.Sprintf("%v %q %d %t\n", r.Decision, r.Path, r.Layer, r == decided)
		strict = strict || r.Path != "" && !r.isNarrow()
		rules, ended = append(rules, r), ended || r.Path == ""
	}
	if !strict {
		return nil, ""
	}
	return func(path string) bool {
		p := f.where().name(path)
		r := decidingRule(rules, func(r *Rule) bool { return r.Path == "" || f.where().match(r, p) })
		return r != nil && r.Path != "" &&
			(r.Decision == Deny || r.Decision == Ask && r != decided && f.policy.Mode != ModeYolo)
	}, fmt.Sprint(f.policy.Root, f.policy.Workspace, f.policy.Mode, key)
}

// isAboutPaths reports whether the call meets all conditions of a rule except its path.
func (f *facts) isAboutPaths(r *Rule) bool {
	return r.Command == "" && f.ruleNames(r) && f.ruleWhen(r)
}
