package shell

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/process"
)

// start starts the command that a record describes in a folder, and completes and saves the
// record.
func (b *backgroundStore) start(ctx context.Context, r *backgroundRecord, opts *Options,
	confine *process.Confinement, argv []string, dir string) error {
	id, log, err := b.create()
	if err != nil {
		return err
	}
	defer log.Close()
	sandbox := ""
	if confine != nil {
		confine.Background = true
		end, err := b.startAlone()
		if err != nil {
			b.remove(id)
			return fmt.Errorf("recording background processes: %w", err)
		}
		defer end()
		desc := confined{Profile: confine.Profile, Workspace: r.Workspace, Logs: confine.Logs, Private: confine.Private}
		if confine.HasLoopback() {
			var namespace *os.File
			if namespace, desc.Join = b.loopback(scopeOf(ctx, r.Workspace)); namespace != nil {
				_ = namespace.Close() // the keeper asks for it again
			}
			desc.Share = b.path(id, "net")
		}
		if sandbox, err = b.saveConfined(id, desc); err != nil {
			b.remove(id)
			return err
		}
	}
	keeper := append(slices.Clone(opts.Keeper), b.path(id, "log"),
		b.path(id, "exit"), strconv.FormatInt(keptOutput(opts), 10), sandbox)
	r.ID, r.Token, r.Started, r.Mark = id, caller.Token(ctx), time.Now().UTC(), rand.Text()
	env := append(slices.Clone(opts.Env), process.MarkVariable+"="+r.Mark)
	if r.PID, r.Group, r.Birth, err = detach(ctx, append(keeper, argv...), dir, env, log); err != nil {
		b.remove(id)
		return err
	}
	if err := b.save(r); err != nil {
		_ = b.end(r, time.Sleep) // a process without a record must not keep running
		b.remove(id)
		return err
	}
	return nil
}
