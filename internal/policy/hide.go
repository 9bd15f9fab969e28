package policy

// hides returns a function that reports whether the call must not show a path, or
// nil if it may show everything. A search, for instance, names a folder and reads
// the files in it. If the rule that decided on the call asks, it hides nothing,
// because the person has agreed when the call runs.
func (d *decision) hides(decided *Rule) func(string) bool {
	if !d.anyRule(func(r *Rule) bool { return r.Path != "" && r.Decision != Allow }) {
		return nil
	}
	rules := make([]int, 0, len(d.policy.Rules)) // indices of the rules for this tool, up to one that matches every path
	strict := false
	for i := range d.policy.Rules {
		r := &d.policy.Rules[i]
		if r.Command != "" || !d.ruleNames(r) || !d.ruleWhen(r) {
			continue
		}
		rules = append(rules, i)
		if r.Path == "" {
			break
		}
		strict = strict || !r.isNarrow()
	}
	if !strict {
		return nil
	}
	return func(path string) bool {
		p := d.pathname(path)
		for _, i := range rules {
			r := &d.policy.Rules[i]
			if r.Path == "" || !d.pathMatch(r, p) {
				continue
			}
			return r.Decision == Deny || r.Decision == Ask && r != decided && d.policy.Mode != ModeYolo
		}
		return false
	}
}

// anyRule reports whether the function returns true for any rule.
func (d *decision) anyRule(has func(*Rule) bool) bool {
	for i := range d.policy.Rules {
		if has(&d.policy.Rules[i]) {
			return true
		}
	}
	return false
}
