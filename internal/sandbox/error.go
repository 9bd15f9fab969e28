package sandbox

import "fmt"

// Error reports that a program could not be confined and therefore did not run.
type Error struct {
	Step string // what failed, such as "mounting /proc"
	Err  error
}

// Error names the step and the reason in one line.
func (e *Error) Error() string { return fmt.Sprintf("setting up the sandbox: %s: %v", e.Step, e.Err) }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }
