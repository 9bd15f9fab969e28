package settings

import (
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// limitsKey is the setting serve.limits, a list to which all scopes add.
const limitsKey = "serve.limits"

// CallLimit is an entry of serve.limits: how many calls each of some clients may make.
type CallLimit struct {
	Client string        `setting:"client"` // glob; "" = all
	Group  string        `setting:"group"`  // glob; "" = all
	Tool   string        `setting:"tool"`   // glob; "" = all
	Calls  int           `setting:"calls"`
	Per    time.Duration `setting:"per"` // positive
	Origin Origin
}

func (m *merged) callLimits() []CallLimit {
	return listOf(m, limitsKey, func(l *CallLimit) *Origin { return &l.Origin })
}

// checkLimit reports a time of an entry of serve.limits in which no calls could be counted.
func (r *reader) checkLimit(key string, n *jsonx.Value) {
	var per time.Duration
	if given := n.Get("per"); given != nil {
		if set(&per, given, Origin{}); per <= 0 {
			r.fail(given.Pos, "such as 1m or 24h", "%s.per: must be a time of more than 0", key)
		}
	}
}
