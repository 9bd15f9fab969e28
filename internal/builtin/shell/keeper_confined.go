package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/confine/guards"
	"github.com/toolreg/toolreg/internal/git"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/sandbox"
)

// confined describes the sandbox of a background command. The keeper reads it from a
// file.
type confined struct {
	Profile   *sandbox.Profile `json:"profile"`
	Workspace string           `json:"workspace"` // cleaned when the command has ended
	Logs      string           `json:"logs"`      // see [guards.New]
	Private   []string         `json:"private"`   // see [guards.Scope]

	// Join is the socket of the keeper whose command shares its loopback interface with this one,
	// and Share that of this keeper; "" means none.
	Join  string `json:"join,omitempty"`
	Share string `json:"share,omitempty"`

	ready io.Closer // closed when the interface is shared, or is not going to be
}

// saveConfined writes the file for the keeper.
func (b *backgroundStore) saveConfined(id string, c confined) (path string, err error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	path = b.path(id, "confine")
	return path, replaceFile(path, data)
}

func readConfined(path string) (*confined, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &confined{}
	if err := json.Unmarshal(data, c); err != nil || c.Profile == nil {
		return nil, fmt.Errorf("the sandbox in %s cannot be read", path)
	}
	return c, os.Remove(path)
}

// endless is longer than any command can run.
const endless = time.Duration(math.MaxInt64 / 2)

// run runs the command in its sandbox until the command and everything it started
// have ended, then cleans the workspace. It returns the exit code as a shell
// would.
func (c *confined) run(ctx context.Context, argv []string, output func([]byte)) (code int, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	tree := guards.New(c.Workspace, git.User{}, c.Logs)
	defer tree.Close()
	guarded, err := tree.Guards(ctx, guards.Scope{Folders: c.Profile.Write, Private: c.Private})
	if err != nil {
		return 0, err
	}
	if guarded.Unrecorded != nil {
		output([]byte("The sandbox runs without a record: " + guarded.Unrecorded.Error() + "\n"))
	}
	guarded.Protect(c.Profile)
	defer func() {
		cleaned, failed := guarded.Clean(context.WithoutCancel(ctx), c.Profile.Created.Has)
		if failed != nil {
			output([]byte("cleaning the workspace: " + failed.Error() + "\n"))
		}
		if len(cleaned.Removed) > 0 {
			output([]byte("Deleted after the command, because other programs run commands from such files: " +
				strings.Join(cleaned.Removed, ", ") + "\n"))
		}
		if len(cleaned.Kept) > 0 {
			output([]byte("Created or replaced while the command ran, perhaps not by it, and kept; check them, " +
				"because other programs run commands from such files: " + strings.Join(cleaned.Kept, ", ") + "\n"))
		}
	}()
	defer c.shareLoopback(output)()
	out, err := process.Run(ctx, process.Spec{
		Argv: argv, Dir: dir, Env: os.Environ(), Confine: c.Profile,
		MaxOutput: -1, Keep: 1, Grace: killGrace, Linger: endless,
		Output: func(_ int, p []byte) { output(p) },
	})
	switch {
	case err != nil && ctx.Err() == nil:
		return 0, err
	case out.Signal != "":
		return 128 + signalNumber(out.Signal), nil
	}
	return out.ExitCode, nil
}

// shareLoopback makes the command share its loopback interface with others. end must be called when
// the command has ended.
func (c *confined) shareLoopback(output func([]byte)) (end func()) {
	if c.Share == "" {
		_ = c.ready.Close()
		return func() {}
	}
	if c.Join != "" {
		c.Profile.Network.Join, _ = receiveNamespace(c.Join) // if the other has ended, this one is the first
	}
	end = func() {}
	c.Profile.Network.Share = func(namespace *os.File) {
		stop, err := shareNetwork(c.Share, namespace)
		if err != nil {
			_ = namespace.Close()
			output([]byte("later commands cannot reach servers of this one: " + err.Error() + "\n"))
		} else {
			end = stop
		}
		_ = c.ready.Close()
	}
	return func() { end() }
}
