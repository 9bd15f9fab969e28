package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Defaults of [Spec].
const (
	DefaultMaxOutput = 10 << 20
	DefaultGrace     = 500 * time.Millisecond
	DefaultLinger    = 500 * time.Millisecond
)

// MarkVariable names the variable that every child gets besides Spec.Env. By its
// value Linux tells what left the group of the child: a program started by
// setsid, a daemon, which is ended with the child all the same.
const MarkVariable = "TOOLREG_CHILD"

// Spec says how to start a child.
type Spec struct {
	Argv []string // program and arguments, required; see [Spec.Program]
	Dir  string   // working directory; "" = ours

	// Folder is Dir once it was opened: the child begins there whatever became of
	// the path since, where the system has a name for open folders (Linux). The
	// caller closes it. nil: Dir is opened by its path.
	Folder *os.File
	Env    []string // the whole environment of the child; nil = empty, never ours

	// Stdin is what Run writes to the child before closing its stdin; nil means
	// /dev/null. A child that does not read it is no error.
	Stdin []byte

	// MaxOutput limits stdout and stderr each, in bytes; the child's group is
	// killed when it goes over. 0 = 10 MiB; negative = no limit.
	MaxOutput int64

	// Keep is how much of stdout and of stderr the outcome holds, in bytes: the
	// first and the last half of it. What lies between goes to Output alone. 0 = all.
	Keep int64

	// Grace is the time between SIGTERM and SIGKILL when ctx ends; 0 = 500 ms.
	Grace time.Duration

	// Linger is how long Run waits for pipes that a grandchild still holds
	// after the child itself has gone; 0 = 500 ms. Then the group is killed.
	Linger time.Duration

	// Output receives stdout and stderr as they come (stream 1 or 2), one call
	// at a time. The slice is valid during the call only. May be nil.
	Output func(stream int, p []byte)
}

func (s Spec) maxOutput() int64 {
	if s.MaxOutput == 0 {
		return DefaultMaxOutput
	}
	return s.MaxOutput
}

// Outcome is how a child ended.
type Outcome struct {
	Stdout, Stderr []byte
	ExitCode       int    // -1 when Signal is set or the child never ran
	Signal         string // such as "SIGTERM", "SIG34" where it has no name; "" if none
	Truncated      bool   // more came than Spec.Keep
	StdoutHead     int    // where in Stdout the cut is; len(Stdout) if there is none
	StderrHead     int    // likewise for Stderr
	StdoutBytes    int64  // all that was written, kept or not
	StderrBytes    int64
	PID            int
}

// ErrOutputLimit tells that a child was killed because it printed more than
// Spec.MaxOutput. The outcome holds what it had printed until then: the first
// MaxOutput bytes of each stream.
var ErrOutputLimit = errors.New("output limit reached")

// StartError tells that a program could not be started at all. Program is
// Argv[0] as it was given. Err wraps [fs.ErrNotExist] or [fs.ErrPermission]
// where that is the reason.
type StartError struct {
	Program string
	Err     error
}

// Error says which program and why, in one line.
func (e *StartError) Error() string {
	if e.Program == "" {
		return fmt.Sprintf("starting a program: %v", e.Err)
	}
	return fmt.Sprintf("starting %q: %v", e.Program, e.Err)
}

// Unwrap returns the reason.
func (e *StartError) Unwrap() error { return e.Err }

// reason is an error text of our own over a cause that errors.Is can find.
type reason struct {
	text  string
	cause error
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.cause }

func notFound(format string, args ...any) error {
	return &reason{text: fmt.Sprintf(format, args...), cause: fs.ErrNotExist}
}
