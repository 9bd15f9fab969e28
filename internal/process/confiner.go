package process

import "context"

// Confiner confines the programs of one kind that run outside of calls, such as
// hooks: it sets Spec.Confine, or leaves it if they are not confined. If err is nil,
// after must be called when the program has exited. A nil Confiner confines nothing.
type Confiner func(ctx context.Context, spec *Spec) (after func(), err error)

// Apply calls the Confiner.
func (c Confiner) Apply(ctx context.Context, spec *Spec) (after func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	return c(ctx, spec)
}

// Run is [Run] of a program as it is confined.
func (c Confiner) Run(ctx context.Context, spec Spec) (Outcome, error) {
	after, err := c.Apply(ctx, &spec)
	if err != nil {
		return Outcome{ExitCode: -1}, err
	}
	defer after()
	return Run(ctx, spec)
}
