package discover

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/jq"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// maxRun is the maximum number of steps of one call, including those of nested
// composites.
const maxRun = 1000

// CompositeOptions are the options of composites.
type CompositeOptions struct {
	// Context is the JSON object that expressions access as .context.
	Context json.RawMessage
	// ProjectRoot is the folder that the paths of scripts are relative to.
	ProjectRoot string
	// Evaluator evaluates the expressions of projects' composites; see
	// [jq.Expression.Isolated].
	Evaluator []string
}

// Composites is the source of the tools in the setting composites. They are checked
// as far as possible without knowing the other tools.
type Composites struct {
	list []*composite
	opts CompositeOptions
}

// composite is a tool that calls other tools.
type composite struct {
	named      settings.Named
	definition registry.Definition
	steps      []step
	result     *jq.Expression // if nil, the results of the successful steps are joined
	file       string         // of the script that runs instead of steps; "" if there are steps
	script     []byte
	problems   []document.Problem
}

// err returns why the composite is quarantined, or nil if it is valid.
func (c *composite) err() error { return document.NewError(c.problems) }

type step struct {
	tool            string
	params          *jq.Expression // if nil, those of the composite
	when            *jq.Expression // if nil, the step always runs
	continueOnError bool
}

// identity identifies what runs: the entry, and the content of its script.
func (c *composite) identity() json.RawMessage {
	if c.file == "" {
		return c.named.JSON()
	}
	sum := sha256.Sum256(c.script)
	return append(append(json.RawMessage{}, c.named.JSON()...), hex.EncodeToString(sum[:])...)
}

// Len returns the number of composites.
func (c *Composites) Len() int { return len(c.list) }

// Name returns "composite".
func (c *Composites) Name() string { return registry.SourceComposite }

// Resolve quarantines composites with a step whose tool does not exist, and reports
// whether there are any. lookup looks up a name in the registry of all sources. If
// excused is not nil, it is called with the error of lookup for each such step, and
// returns true to accept the step.
func (c *Composites) Resolve(lookup func(name string) error,
	excused func(document.Problem, error) bool) (missing bool) {
	for _, one := range c.list {
		if one.err() != nil {
			continue
		}
		for i, s := range one.steps {
			err := lookup(s.tool)
			if err == nil {
				continue
			}
			p := one.problem(fmt.Sprintf("/steps/%d/tool", i), err.Error(), "")
			if excused == nil || !excused(p, err) {
				one.problems, missing = append(one.problems, p), true
			}
		}
	}
	return missing
}

// problem returns a mistake at a position in the composite's entry.
func (c *composite) problem(pointer, message, hint string) document.Problem {
	return c.named.Problem("composites", pointer, message, hint)
}

const noCycles = "a composite cannot call itself, directly or through others"

// findCycles quarantines composites that call themselves.
func (c *Composites) findCycles() {
	byName := map[string]*composite{}
	for _, one := range c.list {
		byName[one.named.Name] = one
		byName[registry.ValidName(one.named.Name)] = one
	}
	const open, done = 1, 2
	state := map[*composite]int{}
	var check func(one *composite)
	check = func(one *composite) {
		state[one] = open
		for i, s := range one.steps {
			next := byName[s.tool]
			switch {
			case next == nil || state[next] == done:
			case state[next] == open:
				one.problems = append(one.problems, one.problem(fmt.Sprintf("/steps/%d/tool", i),
					fmt.Sprintf("%q calls this composite again", s.tool), noCycles))
			default:
				check(next)
			}
		}
		state[one] = done
	}
	for _, one := range c.list {
		if state[one] == 0 {
			check(one)
		}
	}
}
