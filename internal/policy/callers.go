package policy

import (
	"strconv"
	"sync"

	"github.com/toolreg/toolreg/internal/caller"
)

// maxCallers is how many callers [Callers] remembers.
const maxCallers = 1000

// Callers remembers which rules of one policy are about a caller, so that a call does not look at
// those about others. The zero value is ready to use. It is safe for concurrent use.
type Callers struct {
	mu    sync.Mutex
	rules map[string][]*Rule
}

// rulesFor returns the rules about a caller, see [Rule.unmetCaller].
func (p *Policy) rulesFor(who *caller.Caller, any bool) []*Rule {
	c := p.Callers
	if c == nil || any {
		return p.selectRules(who, any)
	}
	key := callerKey(who)
	c.mu.Lock()
	defer c.mu.Unlock()
	rules, known := c.rules[key]
	if !known {
		if rules = p.selectRules(who, false); c.rules == nil || len(c.rules) >= maxCallers {
			c.rules = map[string][]*Rule{}
		}
		c.rules[key] = rules
	}
	return rules
}

func (p *Policy) selectRules(who *caller.Caller, any bool) []*Rule {
	out := []*Rule{}
	for i := range p.Rules {
		if r := &p.Rules[i]; r.unmetCaller(who, any) == "" {
			out = append(out, r)
		}
	}
	return out
}

// callerKey is the same for callers that the same rules are about.
func callerKey(who *caller.Caller) string {
	if who == nil {
		return ""
	}
	var key []byte
	for _, part := range append([]string{who.Name, who.Profile}, who.Groups...) {
		key = append(strconv.AppendInt(key, int64(len(part)), 10), ':')
		key = append(key, part...)
	}
	return string(key)
}
