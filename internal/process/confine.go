package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	osexec "os/exec"

	"github.com/toolreg/toolreg/internal/sandbox"
)

// confine makes cmd start the launcher of a sandbox if the spec requires a
// sandbox; otherwise it returns nil.
func confine(cmd *osexec.Cmd, s Spec) (*sandbox.Start, error) {
	if s.Confine == nil {
		return nil, nil
	}
	start, err := sandbox.Prepare(*s.Confine, sandbox.Program{
		Path: cmd.Path, Argv: cmd.Args, Env: cmd.Env, Dir: absolute(s.Dir), Folder: s.Folder,
	})
	if err != nil {
		return nil, err
	}
	cmd.Path, cmd.Args, cmd.Env, cmd.ExtraFiles = start.Path, start.Argv, start.Env, start.Files
	return start, nil
}

// log returns the path of the log of the names that a sandboxed program uses; "" if there is
// none.
func (s *Spec) log() string {
	if s.Confine == nil || s.Confine.Created == nil || s.Confine.Created.Log == nil {
		return ""
	}
	return s.Confine.Created.Log.Name()
}

// explainConfined is explain for a program that could not be started in a sandbox.
func explainConfined(err error, path, dir string) error {
	if _, ok := errors.AsType[*sandbox.Error](err); ok {
		return err
	}
	if _, statErr := os.Stat(path); statErr == nil &&
		(errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return &reason{text: "the sandbox hides " + path +
			", or a file that it needs to start; add its folder to the setting read", cause: err}
	}
	return explain(err, path, dir)
}

// Confinement is the sandbox for the program that one call of a tool starts. The context
// of the call carries it.
type Confinement struct {
	Profile *sandbox.Profile
	// Logs is the folder for what must survive if toolreg is killed, "" means none, and Private
	// are files and folders that the program must not create.
	Logs    string
	Private []string
	// Refused are the connections that the sandbox refused, as host:port. Background is
	// set if the program continues after the call. The tool sets Background, Run Refused.
	Refused    []string
	Background bool
}

// HasLoopback reports whether the program has a loopback interface of its own and no other network.
func (c *Confinement) HasLoopback() bool {
	return c != nil && c.Profile.Network.Mode == sandbox.NetworkLoopback
}

type confinementKey struct{}

// WithConfinement returns the context of a call whose program must be confined.
func WithConfinement(ctx context.Context, c *Confinement) context.Context {
	return context.WithValue(ctx, confinementKey{}, c)
}

// ConfinementOf returns the confinement of the program that a call starts, or nil if it is
// not confined.
func ConfinementOf(ctx context.Context) *Confinement {
	c, _ := ctx.Value(confinementKey{}).(*Confinement)
	return c
}

// Run is like [Run], but confines the program. If c is nil, the program is not confined.
func (c *Confinement) Run(ctx context.Context, spec Spec) (Outcome, error) {
	if c == nil {
		return Run(ctx, spec)
	}
	spec.Confine = c.Profile
	o, err := Run(ctx, spec)
	c.Refused = o.Refused
	return o, err
}

// Confiner confines programs of one kind that run outside of calls, such as hooks:
// it sets Spec.Confine unless they are not confined. If err is nil, after must be
// called when the program has exited. A nil Confiner does not confine anything.
type Confiner func(ctx context.Context, spec *Spec) (after func(), err error)

// Apply calls the Confiner.
func (c Confiner) Apply(ctx context.Context, spec *Spec) (after func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	return c(ctx, spec)
}

// Run is like [Run], but confines the program.
func (c Confiner) Run(ctx context.Context, spec Spec) (Outcome, error) {
	after, err := c.Apply(ctx, &spec)
	if err != nil {
		return Outcome{ExitCode: -1}, err
	}
	defer after()
	return Run(ctx, spec)
}
