package discover

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// errDiscoveryTimeout is the context's cause when discovery exceeds its time limit.
var errDiscoveryTimeout = errors.New("toolDiscoveryTimeout reached")

// failure is the error of a source that failed. It wraps [registry.ErrSourceFailed]
// and the cause.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() []error {
	if f.cause == nil {
		return []error{registry.ErrSourceFailed}
	}
	return []error{registry.ErrSourceFailed, f.cause}
}

// fail returns an error with the command, the origin of its setting and the reason.
func (c *command) fail(cause error) error {
	return &failure{
		text: fmt.Sprintf("discovery command %q (toolDiscoveryCommand, %s): %s",
			asWritten(c.opts.Discovery), c.opts.Discovery.Origin, cause),
		cause: cause,
	}
}

// failure returns the error of a program that failed to declare tools.
func (i Invocation) failure(o process.Outcome, err error, how declaring) error {
	said := quoteStderr(o.Stderr)
	var start *process.StartError
	switch {
	case errors.As(err, &start):
		return &failure{cause: err, text: fmt.Sprintf("cannot start %q in %s: %s", start.Program, i.Dir, start.Err)}
	case errors.Is(err, errDiscoveryTimeout):
		return fmt.Errorf("it was stopped after %v; raise toolDiscoveryTimeout if it needs longer%s", how.timeout, said)
	case errors.Is(err, process.ErrOutputLimit):
		overflowed := "stderr"
		if o.StdoutBytes > how.limit {
			overflowed = "stdout"
		}
		return fmt.Errorf("it was killed at the size limit of %d bytes on %s (limits.discoveryOutput)%s",
			how.limit, overflowed, said)
	case errors.Is(err, registry.ErrDenied): // it was not started
		return err
	case err != nil:
		return fmt.Errorf("it was stopped: %w%s", err, said)
	case o.Signal != "":
		return fmt.Errorf("it was ended by %s%s", o.Signal, said)
	}
	return fmt.Errorf("it ended with exit code %d%s", o.ExitCode, said)
}

// Limits on the part of a program's stderr that is shown.
const (
	shownLines = 5
	shownBytes = 1000
)

// quoteStderr quotes the last lines of stderr on one line, or says that stderr was
// empty.
func quoteStderr(stderr []byte) string {
	var lines []string
	for line := range strings.Lines(decode(stderr[max(0, len(stderr)-8<<10):])) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "; it printed nothing on stderr"
	}
	lines = lines[max(0, len(lines)-shownLines):]
	said := strings.Join(lines, " | ")
	if len(said) > shownBytes {
		said = text.Ellipsis + text.Tail(said, shownBytes)
	}
	return "; its stderr ends with: " + said
}
