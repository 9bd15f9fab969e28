package policy

import (
	"fmt"
	"slices"
)

// hides returns a function that reports whether the call must not show a path, or
// nil if it may show everything. key is the same for calls from which the same is hidden. A search, for instance, names a folder and reads
// the files in it. If the rule that decided on the call asks, it hides nothing,
// because the person has agreed when the call runs.
func (d *decision) hides(decided *Rule) (hides func(string) bool, key string) {
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
