package sandbox

// Support is what the system has for a sandbox.
type Support struct {
	Parts []Part
}

// Part is one thing that a sandbox in full needs.
type Part struct {
	Name   string // such as "user namespaces" or "Landlock"
	OK     bool
	Detail string // such as "ABI 7", or why it is missing: "operation not permitted"
}

// Full reports whether programs can be confined in full.
func (s Support) Full() bool { return len(s.Parts) > 0 && len(s.Missing()) == 0 }

// Missing names what a sandbox in full lacks, such as "user namespaces
// (operation not permitted)"; empty if nothing is missing.
func (s Support) Missing() []string {
	var out []string
	for _, p := range s.Parts {
		if p.OK {
			continue
		}
		if p.Detail == "" {
			out = append(out, p.Name)
		} else {
			out = append(out, p.Name+" ("+p.Detail+")")
		}
	}
	return out
}
