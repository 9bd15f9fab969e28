package process

import (
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
