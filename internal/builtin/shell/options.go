package shell

import (
	"cmp"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/registry"
)

const (
	shellTimeout    = 120 * time.Second
	shellMaxTimeout = time.Hour
)

// Options tune the tools.
type Options struct {
	// StateDir holds the records of background processes; "" disables them.
	StateDir string
	// Env is the whole environment of commands, "K=V" entries.
	Env []string
	// Timeout bounds a command that names no timeout; 0 means 120 s.
	Timeout time.Duration
	// MaxTimeout bounds the time limit of a command; 0 means 1 h. A longer Timeout
	// overrides 1 h.
	MaxTimeout time.Duration
	// Keeper is the argv of a program that calls [Keep] with the arguments appended
	// to it. The program must be given as a path. If Keeper is empty, background
	// commands are disabled.
	Keeper []string
	// MaxOutput limits each of stdout and stderr of a command, in bytes; 0 means 10
	// MiB.
	MaxOutput int64
}

// timeLimit returns the time limit of a call with the timeout param seconds,
// which may be nil.
func timeLimit(tool string, seconds *tool.Integer, opts *Options) (time.Duration, error) {
	most := cmp.Or(opts.MaxTimeout, shellMaxTimeout)
	if most == shellMaxTimeout {
		most = max(most, opts.Timeout)
	}
	if seconds == nil {
		return min(cmp.Or(opts.Timeout, shellTimeout), most), nil
	}
	if *seconds < 1 || int64(*seconds) > int64(most/time.Second) {
		return 0, registry.Invalid(tool, "/timeout",
			"is %d; it must be 1 to %d seconds (raise shell.maxTimeout in the settings to allow more)",
			*seconds, int64(most/time.Second))
	}
	return time.Duration(*seconds) * time.Second, nil
}

// logTail limits how much of a log is shown, in bytes.
const logTail = 64 << 10

// keptOutput returns how many bytes of a background command's output are kept:
// twice the limit of a stream, and at least enough to show its end.
func keptOutput(opts *Options) int64 {
	return 2 * max(cmp.Or(opts.MaxOutput, process.DefaultMaxOutput), logTail)
}
