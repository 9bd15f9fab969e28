package values

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/secret"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/trust"
)

// Limits of references.
const (
	maxSecret     = 1 << 20          // bytes of a file, or of the output of a command
	referenceTime = 30 * time.Second // time limit of a command
)

// Secret expands a value of env, headers or oauth. Apart from variables, the
// whole value may be a reference: env:NAME is the variable; file:PATH the
// content of a file without its last line end; cmd:ARGV the output of a command
// without its last line end, run in Dir without a shell for at most 30 seconds.
// Variables in PATH and in the words of ARGV are expanded first. To write plain
// text that looks like a reference, put ${} before it: ${}file:x. scope is that of the setting.
func (x *Expander) Secret(ctx context.Context, value string, scope settings.Scope) (string, error) {
	kind, target := secret.Reference(value)
	if kind == "" {
		return x.Expand(value)
	}
	if kind == "cmd" && x.still {
		return value, nil
	}
	text, err := x.reference(ctx, kind, target, scope)
	if err == nil && x.Seen != nil {
		x.Seen(text)
	}
	return text, err
}

func (x *Expander) reference(ctx context.Context, kind, target string, scope settings.Scope) (string, error) {
	switch kind {
	case "env":
		return x.Lookup.Value(target)
	case "file":
		return x.file(target)
	}
	return x.runCommand(ctx, target, scope)
}

func (x *Expander) file(target string) (string, error) {
	path, err := x.Expand(target)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(path, "~/") {
		home, err := x.Lookup.Value("HOME")
		if err != nil {
			return "", err
		}
		path = expand.Home(path, home)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(x.Dir, path)
	}
	f, err := trust.Read(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("reading a file: reference: %w", err)
	}
	return trimLineEnd(string(f.Data)), nil
}

func (x *Expander) runCommand(ctx context.Context, target string, scope settings.Scope) (string, error) {
	argv, err := process.Split(target)
	if err == nil {
		argv, err = x.words(argv)
	}
	if err != nil {
		return "", fmt.Errorf("reading a cmd: reference: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, referenceTime, fmt.Errorf("no answer within %s", referenceTime))
	defer cancel()
	var confine process.Confiner
	if x.Confine != nil {
		confine = x.Confine(scope)
	}
	out, err := confine.Run(ctx, process.Spec{Argv: argv, Dir: x.Dir, Env: x.Environ, MaxOutput: maxSecret})
	switch {
	case err != nil:
	case out.Err() != nil:
		err = fmt.Errorf("%w; run it by hand to see why", out.Err())
	case len(out.Stdout) == 0:
		err = errors.New("it printed nothing")
	}
	if err != nil {
		return "", fmt.Errorf("running cmd:%s for a value: %w", argv[0], err)
	}
	return trimLineEnd(string(out.Stdout)), nil
}

// trimLineEnd removes one line ending.
func trimLineEnd(s string) string {
	if rest, ok := strings.CutSuffix(s, "\n"); ok {
		return strings.TrimSuffix(rest, "\r")
	}
	return s
}
