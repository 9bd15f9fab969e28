package sandbox

// Support describes how far the system supports the sandbox.
type Support struct {
	Parts []Part
}

// Part is one requirement of the sandbox.
type Part struct {
	Name   string // such as "user namespaces" or "Landlock"
	OK     bool
	Detail string // such as "ABI 7", or why it is missing: "operation not permitted"
}

// Full reports whether the system fully supports the sandbox.
func (s Support) Full() bool { return len(s.Parts) > 0 && len(s.Missing()) == 0 }

// Missing lists the requirements that the system does not meet, such as "user namespaces
// (operation not permitted)".
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
