package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/sandbox"
)

// Defaults of [Spec].
const (
	DefaultMaxOutput = 10 << 20
	DefaultGrace     = 500 * time.Millisecond
	DefaultLinger    = 500 * time.Millisecond
)

// MarkVariable is a variable that every child gets in addition to Spec.Env. On
// Linux its value identifies programs that left the child's group, such as
// daemons and programs started by setsid, so that they can be killed with the
// child.
const MarkVariable = "TOOLREG_CHILD"

// Spec describes how to start a child.
type Spec struct {
	Argv []string // program and arguments, required; see [Spec.Program]
	Dir  string   // working directory; "" means ours

	// Folder is Dir as an open folder: the child starts in it even if the path
	// now leads elsewhere, on systems with paths for open folders (Linux). The
	// caller closes it. If Folder is nil, Dir is opened by its path.
	Folder *os.File
	Env    []string // the whole environment of the child; nil means empty, never ours

	// Files are further open files of the child, from descriptor 3 on. They cannot be
	// combined with Confine.
	Files []*os.File

	// NotFrom is a folder in which PATH lookup ignores programs because other programs
	// can write to it, such as a virtual environment in the workspace; "" means none.
	NotFrom string

	// Stdin is written by Run to the child before its stdin is closed; nil
	// means /dev/null. It is not an error if the child does not read it.
	Stdin []byte

	// MaxOutput limits stdout and stderr each, in bytes; if it is exceeded, the
	// child's group is killed. Zero means 10 MiB, and a negative value no limit.
	MaxOutput int64

	// Keep limits how many bytes of stdout and of stderr the outcome contains:
	// half from the beginning and half from the end. Output also receives the
	// rest. 0 means all.
	Keep int64

	// Grace is the time between SIGTERM and SIGKILL when ctx ends. Zero means 500 ms.
	Grace time.Duration

	// Linger is how long Run waits after the child has exited for pipes that a
	// grandchild still has open; 0 means 500 ms. Then the group is killed.
	Linger time.Duration

	// Output receives stdout and stderr as they come (stream 1 or 2), one call
	// at a time. The slice is valid only during the call. May be nil.
	Output func(stream int, p []byte)

	// Guard kills the child's descendants if toolreg is killed, even in the
	// child's first moments. It costs one more process per child; without it, only
	// children older than 250 ms have that process.
	Guard bool

	// Confine restricts what the program can access; nil means no sandbox. If
	// the program cannot be fully confined, it does not run, and the error
	// wraps a *[sandbox.Error]. Open ignores Confine.
	Confine *sandbox.Profile
}

// Outcome is how a child exited.
type Outcome struct {
	Stdout, Stderr []byte
	ExitCode       int    // -1 when Signal is set or the child never ran
	Signal         string // such as "SIGTERM", or "SIG34" if it has no name; "" if none
	Truncated      bool   // there was more output than Spec.Keep
	StdoutHead     int    // offset of the cut in Stdout; len(Stdout) if it was not cut
	StderrHead     int    // the same for Stderr
	StdoutBytes    int64  // bytes written, including those not kept
	StderrBytes    int64
	PID            int

	// Refused lists the connections that the proxy of Spec.Confine refused, as
	// host:port, in the order of the first attempts.
	Refused []string
}

// Err says that the child failed, by the signal or the exit code with which it ended; nil if it succeeded.
func (o *Outcome) Err() error {
	switch {
	case o.Signal != "":
		return errors.New("ended by " + o.Signal)
	case o.ExitCode != 0:
		return fmt.Errorf("exit code %d", o.ExitCode)
	}
	return nil
}

// ErrOutputLimit reports that a child was killed because it printed more than
// Spec.MaxOutput. The outcome has the first MaxOutput bytes of each stream.
var ErrOutputLimit = errors.New("output limit reached")

// StartError reports that a program could not be started. Program is Argv[0] as
// given. Err wraps [fs.ErrNotExist] or [fs.ErrPermission] if that is the
// reason.
type StartError struct {
	Program string
	Err     error
}

// Error names the program and the reason in one line.
func (e *StartError) Error() string {
	if e.Program == "" {
		return fmt.Sprintf("starting a program: %v", e.Err)
	}
	return fmt.Sprintf("starting %q: %v", e.Program, e.Err)
}

func (e *StartError) Unwrap() error { return e.Err }

// reason is an error with our own text and a cause that errors.Is can find.
type reason struct {
	text  string
	cause error
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.cause }

func notFound(format string, args ...any) error {
	return &reason{text: fmt.Sprintf(format, args...), cause: fs.ErrNotExist}
}

// goingOn holds the sessions of programs that keep running after toolreg exits.
// It is global because it extends the kernel's list of children.
var goingOn sync.Map

// GoesOn excludes a child's session and all processes in it from being killed
// when toolreg exits.
func GoesOn(session int) { goingOn.Store(session, true) }
