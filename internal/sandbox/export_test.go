package sandbox

// For tests of the package from outside, which start programs.
var (
	ParseHost = parseHost
	Resolve   = resolve
)

func (h host) Matches(name string, port int) bool { return h.matches(canonicalHost(name), port) }
