package toolsearch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/text"
	"github.com/toolreg/toolreg/internal/timing"
)

// Candidates is how many of the best hits a [Command] receives, or the limit of
// the query if that is greater.
const Candidates = 50

// maxOrder is the maximum output of a Command, in bytes.
const maxOrder = 1 << 20

// Command is a user's program that reorders hits, for example with an embedding model.
type Command struct {
	Argv    []string
	Dir     string
	Env     []string
	Timeout time.Duration    // 0 means none
	Confine process.Confiner // nil means it is not confined
}

// Candidate is a hit as the program receives it.
type Candidate struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Server      string          `json:"server,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	Score       float64         `json:"score"`
}

// request is the program's stdin.
type request struct {
	Query string      `json:"query"`
	Limit int         `json:"limit"`
	Tools []Candidate `json:"tools"`
}

// Order runs the program and returns the indexes of the candidates in its
// order. unknown are names that are not candidates. The error says what is
// wrong with the program or its output.
func (c Command) Order(ctx context.Context, query string, limit int,
	candidates []Candidate) (order []int, unknown []string, err error) {
	input, err := json.Marshal(request{query, limit, candidates})
	if err != nil {
		return nil, nil, err
	}
	late := fmt.Errorf("no answer within %s (search.timeout)", c.Timeout)
	ctx, cancel := timing.Limit(ctx, c.Timeout, late)
	defer cancel()
	out, err := c.Confine.Run(ctx,
		process.Spec{Argv: c.Argv, Dir: c.Dir, Env: c.Env, Stdin: input, MaxOutput: maxOrder})
	switch {
	case context.Cause(ctx) != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil || out.Err() != nil:
		return nil, nil, cmp.Or(err, out.Err())
	}
	var names []string
	if json.Unmarshal(text.WithoutMark(out.Stdout), &names) != nil || names == nil {
		return nil, nil, errors.New("expected a JSON list of names on its stdout, got " +
			text.Quote(text.Valid(text.Head(out.Stdout, 100))))
	}
	order, unknown = indexes(names, candidates)
	return order, unknown, nil
}

// indexes finds the candidates with the names, without duplicates.
func indexes(names []string, candidates []Candidate) (order []int, unknown []string) {
	at := make(map[string]int, len(candidates))
	for i, c := range candidates {
		at[c.Name] = i
	}
	taken := make([]bool, len(candidates))
	for _, name := range names {
		i, ok := at[name]
		switch {
		case !ok:
			unknown = append(unknown, name)
		case !taken[i]:
			taken[i] = true
			order = append(order, i)
		}
	}
	return order, unknown
}
