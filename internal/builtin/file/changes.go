package file

import (
	"errors"

	"github.com/toolreg/toolreg/internal/builtin/tool"
	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// misfit reports that the params do not match the current files.
type misfit struct{ error }

// failed returns the result of a change that could not be computed.
func failed(text string, err error) registry.Result {
	if _, ok := errors.AsType[misfit](err); ok {
		return tool.Misfit(text)
	}
	return tool.Failed(text)
}

// explain returns why the file with the given name cannot be changed.
func explain(name string, err error) string {
	if m, ok := errors.AsType[misfit](err); ok {
		return m.Error()
	}
	return explainWrite(name, err)
}

// changes makes a tool's changes to single files. Each change is computed twice,
// for the preview and for the call; err is the error of that computation.
type changes struct {
	workspace *workspace.Editor
	shown     previews
}

// preview returns what the user is shown of a change, and remembers the state
// of the file.
func (x *changes) preview(call registry.Call, name string, c *fileChange, err error) (registry.Preview, error) {
	if err != nil {
		return registry.Preview{}, &registry.FailedError{Result: failed(explain(name, err), err)}
	}
	x.shown.remember(call, c.sum())
	return c.preview(), nil
}

// refusal returns the result of a call whose change cannot be made.
func (x *changes) refusal(call registry.Call, name string, c *fileChange, err error) (r registry.Result, refused bool) {
	switch {
	case err != nil:
		return failed(explain(name, err), err), true
	case x.shown.changed(call, c.sum()):
		return tool.Failed(text.Quote(name) +
			" was modified after the change was shown; nothing was written. Read it again and repeat the call"), true
	}
	return r, false
}

// write makes a change. done describes a change to an existing file, such as
// "Edited".
func (x *changes) write(name, rel string, c *fileChange, done string) registry.Result {
	if err := x.workspace.WriteFile(rel, c.data, 0); err != nil {
		return tool.Failed(explainWrite(name, err))
	}
	if c.before.exists {
		return c.result(done)
	}
	return c.result("Created")
}
