package settings

import (
	"time"

	"github.com/toolreg/toolreg/internal/registry"
)

// CallLimit is an entry of serve.limits: how many calls each of some clients may make.
type CallLimit struct {
	Client string        `setting:"client"` // glob; "" means all
	Group  string        `setting:"group"`  // glob; "" means all
	Tool   string        `setting:"tool"`   // glob; "" means all
	Calls  int           `setting:"calls"`
	Per    time.Duration `setting:"per"` // positive
	// Rank tells limits for the same client, group and tool apart: it is the number of
	// different shorter times among them. A changed time does not change it.
	Rank   int
	Origin Origin
}

// rankLimits sets the ranks of limits.
func rankLimits(limits []CallLimit) {
	for i := range limits {
		l, shorter := &limits[i], map[time.Duration]bool{}
		l.Tool = registry.NameIn(l.Tool)
		for _, other := range limits {
			if other.Client == l.Client && other.Group == l.Group && other.Tool == l.Tool && other.Per < l.Per {
				shorter[other.Per] = true
			}
		}
		l.Rank = len(shorter)
	}
}
