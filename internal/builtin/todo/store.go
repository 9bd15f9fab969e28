package todo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/builtin/workspace"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// list is the content of the file. Workspace and Session are for people who
// read it. A revision is the time when it was written, in microseconds since
// 1970, so that it grows even if a list is lost and started again, and can be
// compared with the start of a run. Revision 0 is the empty list when there is
// no file.
type list struct {
	Workspace string          `json:"workspace"`
	Session   string          `json:"session,omitempty"`
	Revision  int64           `json:"revision"`
	SeenBy    []string        `json:"seenBy,omitempty"` // agents that have seen this revision
	Todos     []registry.Todo `json:"todos"`
}

// maxSeenBy limits how many agents are remembered; the earliest are dropped first.
const maxSeenBy = 200

func (f *list) saw(agent string) {
	if agent != "" && !slices.Contains(f.SeenBy, agent) {
		f.SeenBy = append(f.SeenBy, agent)
		f.SeenBy = f.SeenBy[max(0, len(f.SeenBy)-maxSeenBy):]
	}
}

var errDamaged = errors.New("the todo list is damaged")

func decodeList(data []byte) (*list, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errDamaged
	}
	f := &list{}
	if err := jsonx.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return f, nil
}

func (f *list) encode() ([]byte, error) {
	data, err := json.MarshalIndent(f, "", "  ")
	return append(data, '\n'), err
}

// store is the list of one workspace and session, kept in a state file for each token.
type store struct {
	opts      Options
	workspace *workspace.Dir

	mu   sync.Mutex
	seen map[any]int64 // the last revision seen by each client without an agent name
}

// client returns a value that identifies the client that makes the call within
// this process.
func client(ctx context.Context) any {
	if c := caller.From(ctx); c != nil {
		return c.Owner
	}
	return nil
}

// sawRevision records the revision that the caller of ctx has seen in this
// process. A client that saw only an older revision is treated like one that
// saw none.
func (l *store) sawRevision(ctx context.Context, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.seen, func(_ any, seen int64) bool { return seen < revision })
	if l.seen[client(ctx)] < revision {
		l.seen[client(ctx)] = revision
	}
}

// lastSeen returns the latest revision that the caller of ctx can have seen. f
// is the current list.
func (l *store) lastSeen(ctx context.Context, f *list) int64 {
	if l.opts.Agent != "" {
		if slices.Contains(f.SeenBy, l.opts.Agent) {
			return f.Revision
		}
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.seen[client(ctx)], l.opts.Began.UnixMicro())
}

// isNewer reports whether a list has entries that were written after a revision.
// A revision in the future means that the clock was set back, so such a list is
// newer only for a caller that has seen none.
func (f *list) isNewer(than int64) bool {
	soon := time.Now().Add(time.Second).UnixMicro()
	return len(f.Todos) > 0 && f.Revision > than && (f.Revision <= soon || than == 0)
}

// location is the place where a list is stored.
type location struct {
	workspace string // path of the workspace
	dir       *state.Dir
	list      string // name of the file
}

func (l *store) place(ctx context.Context) (*location, error) {
	if l.opts.StateDir == "" {
		return nil, fmt.Errorf("%w: there is no state folder for todo lists", state.ErrUnavailable)
	}
	path, err := l.workspace.Path()
	if err != nil {
		return nil, err
	}
	dir, err := state.OpenDir(filepath.Join(l.opts.StateDir, folder))
	if err != nil {
		return nil, fmt.Errorf("opening todo lists: %w", err)
	}
	whose := path + "\x00" + l.opts.Session
	if token := caller.Token(ctx); token != "" {
		whose += "\x00" + token
	}
	sum := sha256.Sum256([]byte(whose))
	name := fmt.Sprintf("%x", sum[:16])
	return &location{workspace: path, dir: dir, list: name + ".json"}, nil
}

// peek reads the list. A missing list is empty. If the list is damaged, the
// error wraps errDamaged and the file stays in place.
func (p *location) peek() (*list, error) {
	data, err := p.dir.Read(p.list)
	if errors.Is(err, fs.ErrNotExist) {
		return &list{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the todo list: %w", err)
	}
	return decodeList(data)
}

// load reads the list and records that the caller of ctx has seen it. A damaged
// file is set aside; then aside is its new path.
func (l *store) load(ctx context.Context) (f *list, aside string, err error) {
	p, err := l.place(ctx)
	if err != nil {
		return nil, "", err
	}
	f, err = p.peek()
	if errors.Is(err, errDamaged) {
		aside, err = p.setAside(ctx)
		f = &list{}
	}
	if err != nil {
		return nil, "", err
	}
	l.sawRevision(ctx, f.Revision)
	if l.opts.Agent != "" && f.Revision > 0 && !slices.Contains(f.SeenBy, l.opts.Agent) {
		// If this cannot be stored, the agent is treated as not having seen the
		// list.
		_ = p.dir.Update(ctx, p.list, func(old []byte) ([]byte, error) {
			now, err := decodeList(old)
			if err != nil || now.Revision != f.Revision {
				return nil, err
			}
			now.saw(l.opts.Agent)
			return now.encode()
		})
	}
	return f, aside, nil
}

// setAside renames a damaged list, if it is still damaged.
func (p *location) setAside(ctx context.Context) (to string, err error) {
	to, err = p.dir.UpdateOrSetAside(ctx, p.list, func(old []byte) ([]byte, error) {
		if _, err := decodeList(old); old != nil && err != nil {
			return nil, state.ErrDamaged
		}
		return nil, nil
	})
	if err != nil {
		return "", fmt.Errorf("setting a damaged todo list aside: %w", err)
	}
	return to, nil
}

// written is the result of a write.
type written struct {
	before, after *list
	refused       bool   // before has entries that the caller has not seen, and was kept
	aside         string // the new path of a damaged list, or ""
}

// replace replaces the list with todos, unless another caller has changed it
// since the caller of ctx last saw it. In both cases the caller has then seen
// the current list.
func (l *store) replace(ctx context.Context, todos []registry.Todo) (*written, error) {
	p, err := l.place(ctx)
	if err != nil {
		return nil, err
	}
	seen := int64(0)
	if f, err := p.peek(); err == nil { // read before locking: concurrent calls have not seen each other's lists
		seen = l.lastSeen(ctx, f)
	}
	w := &written{}
	w.aside, err = p.dir.UpdateOrSetAside(ctx, p.list, func(old []byte) ([]byte, error) {
		w.before = &list{}
		if old != nil {
			var err error
			if w.before, err = decodeList(old); err != nil {
				return nil, state.ErrDamaged
			}
		}
		if w.refused = w.before.isNewer(seen); w.refused {
			w.after = w.before
		} else {
			revision := max(time.Now().UnixMicro(), w.before.Revision+1)
			w.after = &list{Workspace: p.workspace, Session: l.opts.Session, Revision: revision, Todos: todos}
		}
		w.after.saw(l.opts.Agent)
		return w.after.encode()
	})
	if err != nil {
		return nil, err
	}
	if !w.refused {
		l.finish(ctx, p, w.after)
	}
	l.sawRevision(ctx, w.after.Revision)
	return w, nil
}

// finish sets the revision to the time when the list was on disk: a run that
// started while it was being written cannot have seen it. If this cannot be
// stored, such a run is treated as having seen it.
func (l *store) finish(ctx context.Context, p *location, f *list) {
	_ = p.dir.Update(ctx, p.list, func(old []byte) ([]byte, error) {
		now, err := decodeList(old)
		if err != nil || now.Revision != f.Revision {
			return nil, err
		}
		now.Revision = max(time.Now().UnixMicro(), f.Revision)
		f.Revision = now.Revision
		return now.encode()
	})
}
