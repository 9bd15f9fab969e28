package keep

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// Session is the session with an HTTP server that outlasts a run. It needs no keeper, only a
// file.
type Session struct {
	ID      string            `json:"id,omitempty"` // "" means the server has no sessions
	Opening wire.Opening      `json:"opening"`
	Since   time.Time         `json:"since"`
	Used    time.Time         `json:"used"`            // about when the last run used it
	Tools   []json.RawMessage `json:"tools,omitempty"` // what the server has listed; nil means not yet
	Cut     string            `json:"cut,omitempty"`   // why the list is incomplete, "" if it is complete

	Streamless bool `json:"streamless,omitempty"` // the server has no stream of the session's own
}

const sessionSuffix = ".session"

// Session returns the session of a name, nil if there is none that can be read.
func (f *Folder) Session(name string) *Session {
	data, err := f.dir.Read(name + sessionSuffix)
	s := &Session{}
	if err != nil || json.Unmarshal(data, s) != nil {
		return nil
	}
	return s
}

// SaveSession stores a session under a name, and reports whether it is the one that is stored
// now: it does not replace another one. If it was stored before (again), it is not stored if it
// was forgotten in the meantime.
func (f *Folder) SaveSession(ctx context.Context, name string, s *Session, again bool) (stored bool, err error) {
	data, err := json.Marshal(s)
	if err != nil {
		return false, err
	}
	unlock, err := f.dir.Lock(ctx, name+sessionSuffix)
	if err != nil {
		return false, err
	}
	defer unlock()
	if now := f.Session(name); now == nil && again || now != nil && !now.same(s) {
		return false, nil
	}
	err = f.dir.Put(name+sessionSuffix, data)
	return err == nil, err
}

// same reports whether two records are of one session.
func (s *Session) same(t *Session) bool { return s.ID == t.ID && s.Since.Equal(t.Since) }

// ForgetSession removes a session, unless another one is stored under its name.
func (f *Folder) ForgetSession(ctx context.Context, name string, s *Session) error {
	unlock, err := f.dir.Lock(ctx, name+sessionSuffix)
	if err != nil {
		return err
	}
	defer unlock()
	if now := f.Session(name); now != nil && now.same(s) {
		return os.Remove(f.path(name + sessionSuffix))
	}
	return nil
}

// Sessions returns the names of the sessions in a folder, which need not exist.
func Sessions(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), sessionSuffix); ok && len(name) == nameLength {
			names = append(names, name)
		}
	}
	return names
}

// ForgetSessions removes the sessions in a folder, which need not exist, whose names match.
func ForgetSessions(dir string, matches func(name string) bool) (forgotten int) {
	for _, name := range Sessions(dir) {
		if matches(name) && os.Remove(filepath.Join(dir, name+sessionSuffix)) == nil {
			forgotten++
		}
	}
	return forgotten
}

// ForgetSessionsOf removes all sessions with the server of an entry, whatever it said when
// they began.
func (f *Folder) ForgetSessionsOf(o Origin) {
	ForgetSessions(f.dir.Path, func(name string) bool { return f.isOf(name, o) })
}
