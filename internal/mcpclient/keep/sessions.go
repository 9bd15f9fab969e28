package keep

import (
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
	ID      string            `json:"id,omitempty"` // "" = the server has no sessions
	Opening wire.Opening      `json:"opening"`
	Since   time.Time         `json:"since"`
	Used    time.Time         `json:"used"`            // about when the last run used it
	Tools   []json.RawMessage `json:"tools,omitempty"` // what the server has listed; nil = not yet
	Cut     string            `json:"cut,omitempty"`   // why the list is incomplete, "" if it is complete
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

// SaveSession stores a session.
func (f *Folder) SaveSession(name string, s *Session) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return f.dir.Put(name+sessionSuffix, data)
}

// ForgetSession removes a session.
func (f *Folder) ForgetSession(name string) {
	_ = os.Remove(f.path(name + sessionSuffix)) // another run may have done so
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
