package policy

// hides returns what tells the paths that the call may not show, nil where it may
// show all: a search names a folder and opens what is in it. The rule that decided
// on the call itself hides nothing by asking, since the person has agreed then.
func (d *decision) hides(decided *Rule) func(string) bool {
	var rules []*Rule // those about this tool, up to one that matches every path
	strict := false
	for i := range d.policy.Rules {
		r := &d.policy.Rules[i]
		if r.Command != "" || !d.ruleNames(r) {
			continue
		}
		rules = append(rules, r)
		if r.Path == "" {
			break
		}
		strict = strict || r.Decision != Allow
	}
	if !strict {
		return nil
	}
	return func(path string) bool {
		for _, r := range rules {
			if r.Path == "" || !d.pathMatch(r.Path, path, r.Decision != Allow) {
				continue
			}
			return r.Decision == Deny || r.Decision == Ask && r != decided && d.policy.Mode != ModeYolo
		}
		return false
	}
}
