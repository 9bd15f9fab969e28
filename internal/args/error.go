package args

import (
	"fmt"

	"github.com/toolreg/toolreg/internal/text"
)

// Error reports an argument that cannot be used. It is an error in the params
// (exit code 4) or, if Usage is set, in the syntax of the argument (exit code
// 2).
type Error struct {
	Arg     string
	Message string
	Usage   bool
}

func (e *Error) Error() string { return fmt.Sprintf("argument %s: %s", text.Quote(e.Arg), e.Message) }
