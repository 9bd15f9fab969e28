package args

import (
	"fmt"

	"github.com/toolreg/toolreg/internal/text"
)

// Error tells which argument cannot be used and why. It is a matter of params
// (exit code 4), unless Usage is set (exit code 2): then the argument has no
// form that could be params.
type Error struct {
	Arg     string
	Message string
	Usage   bool
}

func (e *Error) Error() string { return fmt.Sprintf("argument %s: %s", text.Quote(e.Arg), e.Message) }
