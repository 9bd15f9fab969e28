package settings

import (
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/table"
)

// limitsKey is the setting serve.limits, a list to which all scopes add.
const limitsKey = "serve.limits"

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

// checkLimit reports numbers in an entry of serve.limits with which nothing could be counted.
func (r *reader) checkLimit(key string, n *jsonx.Value) {
	if given := n.Get("per"); given != nil {
		if per, err := table.ParseDuration(given); err == nil && per <= 0 {
			r.fail(given.Pos, "such as 1m or 24h", "%s.per: must be a time of more than 0", key)
		}
	}
	if given := n.Get("calls"); given != nil {
		if calls, err := table.ParseInt(given); err == nil && calls < 1 {
			r.fail(given.Pos, "a rule denies all calls (policy.rules)", "%s.calls: must be 1 or more", key)
		}
	}
}
