package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// hides returns a function that reports whether the call must not show a path, or
// nil if it may show everything. key is the same for calls from which the same is hidden. A search, for instance, names a folder and reads
// the files in it. If the rule that decided on the call asks, it hides nothing,
// because the person has agreed when the call runs.
func (d *decision) hides(decided *Rule) (hides func(string) bool, key string) {
	byRules, key := d.hidesByRules(decided)
	if d.policy.Credentials == nil {
		return byRules, key
	}
	guards, guardsKey := d.hidesCredentials()
	return func(path string) bool { return byRules != nil && byRules(path) || guards(path) }, key + guardsKey
}

// hidesCredentials is hides for credentials. Those that the call names are shown: when it runs, a
// rule or a person has allowed them.
func (d *decision) hidesCredentials() (hides func(string) bool, key string) {
	rules := d.pathRules()
	for _, i := range rules {
		key += fmt.Sprintf("%v %q\n", d.rules()[i].Decision, d.rules()[i].Path)
	}
	var named []string
	for _, p := range d.subject.Paths {
		if d.credential(p) != "" {
			named = append(named, d.pathname(p).absolute)
		}
	}
	d.where()
	d.shared = true // by those who call the function
	return func(path string) bool {
		if d.credential(path) == "" {
			return false
		}
		at := d.pathname(path).absolute
		return !d.opens(rules, path) && !slices.ContainsFunc(named, func(folder string) bool { return at == folder || strings.HasPrefix(at, folder+"/") })
	}, fmt.Sprintf("credentials %q %q\n%s", d.policy.Workspace, named, key)
}

// pathRules returns the indices of the rules with a path that are about the call. Afterwards
// several goroutines may call opens.
func (d *decision) pathRules() []int {
	var out []int
	for i, r := range d.rules() {
		if r.Path == "" || !d.isAboutPaths(r) {
			continue
		}
		if !r.isNarrow() {
			d.globs(r)
		}
		out = append(out, i)
	}
	return out
}

// opens reports whether the first of the rules that names a path allows it.
func (d *decision) opens(rules []int, path string) bool {
	p := d.pathname(path)
	for _, i := range rules {
		if d.pathMatch(d.rules()[i], p) {
			return d.prevailing(i, func(r *Rule) bool { return d.isAboutPaths(r) && (r.Path == "" || d.pathMatch(r, p)) }).Decision == Allow
		}
	}
	return false
}

// credentials returns the first path of the call that may lead to credentials and that no rule
// with a path allows, and why.
func (d *decision) credentials() (path, why string) {
	if d.policy.Credentials == nil {
		return "", ""
	}
	for _, p := range d.subject.Paths {
		if why := d.credential(p); why != "" && !d.opens(d.pathRules(), p) {
			return p, why
		}
	}
	return "", ""
}

// credential returns why a path may lead to credentials; "" if it does not.
func (d *decision) credential(path string) string {
	if d.policy.Credentials == nil {
		return ""
	}
	p := d.pathname(path)
	if why := d.policy.Credentials(filepath.FromSlash(p.absolute)); why != "" || p.real == p.absolute {
		return why
	}
	return d.policy.Credentials(filepath.FromSlash(p.real))
}

// hidesByRules is hides for what rules on paths deny or ask about.
func (d *decision) hidesByRules(decided *Rule) (hides func(string) bool, key string) {
	if !d.anyRule(func(r *Rule) bool { return r.Path != "" && r.Decision != Allow }) {
		return nil, ""
	}
	var rules []int // indices of the rules for this tool, up to one that matches every path
	strict, ended := false, false
	loosens := 0 // layer of the profile's rules
	for i, r := range d.rules() {
		if ended && (r.Decision != Deny || r.Layer >= loosens) || !d.isAboutPaths(r) {
			continue
		}
		if r.Profile != "" {
			loosens = r.Layer
		}
		if r.Path != "" && !r.isNarrow() {
			d.globs(r)
		}
		key += fmt.Sprintf("%v %q %d %t\n", r.Decision, r.Path, r.Layer, r == decided)
		strict = strict || r.Path != "" && !r.isNarrow()
		if !ended {
			rules = append(rules, i)
			ended = r.Path == ""
		}
	}
	if !strict {
		return nil, ""
	}
	d.where()
	d.shared = true // by those who call the function
	return func(path string) bool {
		p := d.pathname(path)
		about := func(r *Rule) bool { return r.Path == "" || d.pathMatch(r, p) }
		for _, i := range rules {
			if !about(d.rules()[i]) {
				continue
			}
			r := d.prevailing(i, func(r *Rule) bool { return d.isAboutPaths(r) && about(r) })
			if r.Path == "" {
				return false
			}
			return r.Decision == Deny || r.Decision == Ask && r != decided && d.policy.Mode != ModeYolo
		}
		return false
	}, fmt.Sprint(d.policy.Root, d.policy.Workspace, d.policy.Mode, key)
}

// isAboutPaths reports whether the call meets all conditions of a rule but that on its path.
func (d *decision) isAboutPaths(r *Rule) bool {
	return r.Command == "" && d.ruleNames(r) && d.ruleWhen(r)
}

// anyRule reports whether the function returns true for any rule.
func (d *decision) anyRule(has func(*Rule) bool) bool {
	return slices.ContainsFunc(d.rules(), has)
}
