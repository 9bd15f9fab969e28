package sandbox

import (
	"net/netip"

	"github.com/toolreg/toolreg/internal/webaddr"
)

// For external tests of the package, which start programs.
var (
	ParseHost = parseHost
	Resolve   = resolve
)

func (h host) Matches(name string, port int) bool {
	return h.matches(webaddr.CanonicalHost(name), port)
}

func (h host) MayReach(addr netip.Addr) bool { return h.mayReach(addr) }
