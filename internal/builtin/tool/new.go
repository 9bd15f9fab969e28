// Package tool has what the built-in tools share: decoding the params of a
// call, and the wording of results.
package tool

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
)

// Handlers are the functions of a tool. C is a call whose params have been
// decoded and checked.
type Handlers[C any] struct {
	// Prepare decodes the params. It returns an *ArgsError if they are invalid.
	// Required.
	Prepare func(registry.Call) (C, error)
	// Run makes the call. Required.
	Run func(context.Context, registry.Call, C) (registry.Result, error)
	// Subject returns what policy rules are matched against, and Paths does if that is only
	// paths. Without both, it is only the name.
	Subject func(C) (registry.Subject, error)
	Paths   func(C) ([]string, error)
	// File returns the file or folder that the call uses, links resolved; nil means none.
	File func(C) string
	// Preview returns what the user is shown before the call; nil means the
	// params.
	Preview func(context.Context, registry.Call, C) (registry.Preview, error)
	// Timeout bounds a call; 0 means no limit.
	Timeout time.Duration
}

// New returns a tool made of a definition and its handlers.
func New[C any](d registry.Definition, h Handlers[C]) registry.Tool {
	d.Description = strings.TrimSpace(d.Description)
	t := registry.Tool{Definition: d, Behavior: registry.Behavior{Timeout: h.Timeout}}
	t.Check = func(_ context.Context, call registry.Call) error {
		_, err := h.Prepare(call)
		if isRefusal(err) {
			return &registry.FailedError{Result: Failed(err.Error())}
		}
		return err
	}
	t.Run = func(ctx context.Context, call registry.Call) (registry.Result, error) {
		var r registry.Result
		c, err := h.Prepare(call)
		if err == nil && h.File != nil {
			if r, moved := Moved(call, h.File(c)); moved {
				return r, nil
			}
		}
		if err == nil {
			r, err = h.Run(ctx, call, c)
		}
		if isRefusal(err) && ctx.Err() == nil {
			return Failed(err.Error()), nil
		}
		return r, err
	}
	if h.Paths != nil {
		h.Subject = func(c C) (registry.Subject, error) {
			paths, err := h.Paths(c)
			return registry.Subject{Paths: paths}, err
		}
	}
	if h.Subject != nil {
		t.Subject = func(call registry.Call) (registry.Subject, error) {
			c, err := h.Prepare(call)
			if err != nil {
				return registry.Subject{}, err
			}
			return h.Subject(c)
		}
	}
	if h.Preview != nil {
		t.Preview = func(ctx context.Context, call registry.Call) (registry.Preview, error) {
			c, err := h.Prepare(call)
			if err != nil {
				return registry.Preview{}, err
			}
			return h.Preview(ctx, call, c)
		}
	}
	return t
}

// Moved returns a failed result if the call uses a file that was not part of the
// permission decision, because a link or folder was replaced since then.
func Moved(call registry.Call, files ...string) (registry.Result, bool) {
	for _, file := range files {
		if call.Paths != nil && !slices.Contains(call.Paths, file) {
			return Failed(fmt.Sprintf("the path leads to another file, %q, since the call was allowed; nothing was done. Repeat the call", file)), true
		}
	}
	return registry.Result{}, false
}

// isRefusal reports whether the error comes from the file system refusing an
// operation, for example because of permissions or a name that is too long. Such
// an error becomes a failed result, which the model can act on. The tools handle
// missing files themselves; other missing things, such as the workspace, do not
// concern the model.
func isRefusal(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && errno != syscall.ENOENT
}

// Failed returns the result of a call that was made and failed.
func Failed(text string) registry.Result {
	return registry.ErrorResult(registry.ErrorExecution, text)
}

// Mismatch returns a failed result for params that are well formed but do not
// match the file or object, for example an edit of text that the file does not
// contain. Repeating the call cannot help.
func Mismatch(text string) registry.Result {
	return registry.ErrorResult(registry.ErrorValidation, text)
}

// Size formats a size for people.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// OneLine returns a file name that fits on one line. A name with control
// characters is quoted, so that it cannot look like several lines.
func OneLine(name string) string {
	for _, r := range name {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return strconv.Quote(name)
		}
	}
	return name
}

// RuneIndex returns the byte offset of the n-th character, or len(s) if s has
// fewer.
func RuneIndex(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// Decode decodes the params of a call, which have been checked against the tool's schema, into a
// P, a struct whose json tags name every property of that schema. Absent params are the same as {}.
func Decode[P any](tool string, call registry.Call) (P, error) {
	var p P
	if len(call.Params) == 0 {
		return p, nil
	}
	if err := jsonx.DecodeKnown(call.Params, &p); err != nil {
		return p, registry.Invalid(tool, "", "%v", err)
	}
	return p, nil
}

// Integer is an integer as JSON Schema defines it: 3, 3.0 and 3e0 are equal.
type Integer int

// UnmarshalJSON rejects fractions. It reads numbers beyond 2^53 as 2^53 or -2^53, which each tool finds too large.
func (n *Integer) UnmarshalJSON(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || f != math.Trunc(f) {
		return fmt.Errorf("%s is not an integer", text)
	}
	*n = Integer(min(max(f, -1<<53), 1<<53))
	return nil
}

// OrDefault returns *n, or standard if n is nil.
func (n *Integer) OrDefault(standard int) int {
	if n == nil {
		return standard
	}
	return int(*n)
}

// OrTrue returns the value of an optional switch that defaults to true.
func OrTrue(b *bool) bool { return b == nil || *b }
