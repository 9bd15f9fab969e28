package keep

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
	"github.com/toolreg/toolreg/internal/state"
	"github.com/toolreg/toolreg/internal/trust"
)

// Origin is the settings entry of a server, as read in one project.
type Origin struct {
	Root   string // the project root
	File   string // the settings file; "" means none, such as a flag
	Server string // its name
	Entry  string // the entry as written
}

// Folder has the sockets of one user's keepers.
type Folder struct {
	dir *state.Dir
	key []byte
}

// Open returns the folder in dir, which is created. It must not be inside the workspace,
// whose files confined programs can reach.
func Open(ctx context.Context, dir *state.Dir, workspace string) (*Folder, error) {
	key, err := dir.Key(ctx)
	if err != nil {
		return nil, err
	}
	if workspace != "" && trust.Within(trust.Real(dir.Path), trust.Real(workspace)) {
		return nil, fmt.Errorf("the folder for sockets, %s, is inside the workspace", dir.Path)
	}
	return &Folder{dir, key}, nil
}

// The parts of a socket's name, in characters. Each is a hash with the user's key, because
// every user can see the names of sockets.
const (
	filePart    = 5  // project root and settings file
	serverPart  = 5  // the server's name
	entryPart   = 6  // the entry as written
	processPart = 13 // what makes the server
	nameLength  = filePart + serverPart + entryPart + processPart
)

func (f *Folder) hash(length int, parts ...string) string {
	mac := hmac.New(sha256.New, f.key)
	for _, part := range parts {
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	text := base32.StdEncoding.EncodeToString(mac.Sum(nil))
	return strings.ToLower(text[:length])
}

func (f *Folder) fileOf(root, file string) string { return f.hash(filePart, root, file) }

func (f *Folder) serverOf(o Origin) string {
	return f.fileOf(o.Root, o.File) + f.hash(serverPart, o.Server)
}

func (f *Folder) entryOf(o Origin) string { return f.serverOf(o) + f.hash(entryPart, o.Entry) }

// Name returns the name of the socket for the server of an entry. process is everything that
// distinguishes the server's process.
func (f *Folder) Name(o Origin, process string) string {
	return f.entryOf(o) + f.hash(processPart, process)
}

// HasRoom returns an error if the paths of sockets in the folder would be too long for the
// system.
func (f *Folder) HasRoom() error {
	if most := len(syscall.RawSockaddrUnix{}.Path) - 1; len(f.dir.Path)+1+nameLength > most {
		return fmt.Errorf("the path of the folder %s is too long for sockets, by %d bytes",
			f.dir.Path, len(f.dir.Path)+1+nameLength-most)
	}
	return nil
}

// Path returns the path of the folder.
func (f *Folder) Path() string { return f.dir.Path }

func (f *Folder) path(name string) string { return filepath.Join(f.dir.Path, name) }

// Names returns the names of the sockets and of the sessions in a folder, which need not exist.
func Names(dir string) (sockets, sessions []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		switch name, isSession := strings.CutSuffix(e.Name(), sessionSuffix); {
		case len(name) != nameLength:
		case isSession:
			sessions = append(sessions, name)
		case e.Type()&fs.ModeSocket != 0:
			sockets = append(sockets, name)
		}
	}
	return sockets, sessions
}

// IsEmpty reports whether nothing is kept in a folder, which need not exist.
func IsEmpty(dir string) bool {
	sockets, sessions := Names(dir)
	return len(sockets)+len(sessions) == 0
}

// sockets returns the names of the sockets for which matches returns true.
func (f *Folder) sockets(matches func(name string) bool) []string {
	all, _ := Names(f.dir.Path)
	return slices.DeleteFunc(all, func(name string) bool { return !matches(name) })
}

// OfServer returns the names of the sockets of all keepers of an entry, including those started for
// earlier versions of it.
func (f *Folder) OfServer(o Origin) []string {
	return f.sockets(func(name string) bool { return f.isOf(name, o) })
}

func (f *Folder) isOf(name string, o Origin) bool { return strings.HasPrefix(name, f.serverOf(o)) }

// Outdated returns the names of the sockets of keepers that were started in the project for entries
// that have since changed or been removed. It also removes the sessions with HTTP servers of such
// entries. written has the entries of each settings file that was read, by file and name.
func (f *Folder) Outdated(root string, written map[string]map[string]string) []string {
	isOutdated := func(name string) bool { return f.isOutdated(name, root, written) }
	ForgetSessions(f.dir.Path, isOutdated)
	return f.sockets(isOutdated)
}

func (f *Folder) isOutdated(name, root string, written map[string]map[string]string) bool {
	for file, entries := range written {
		if !strings.HasPrefix(name, f.fileOf(root, file)) {
			continue
		}
		for server, entry := range entries {
			if strings.HasPrefix(name, f.entryOf(Origin{root, file, server, entry})) {
				return false
			}
		}
		return true
	}
	return false
}

// Session is a session with an HTTP server that outlasts a run. It needs no keeper, only a file.
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

// Session returns the session with a name; nil if there is none or it cannot be read.
func (f *Folder) Session(name string) *Session {
	data, err := f.dir.Read(name + sessionSuffix)
	s := &Session{}
	if err != nil || json.Unmarshal(data, s) != nil {
		return nil
	}
	return s
}

// SaveSession stores a session under a name, and reports whether it is the one that is stored now:
// it does not replace a different session. With again, a session that was stored before, but has
// been forgotten since, is not stored.
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

// ForgetSessions removes the sessions in a folder, which need not exist, whose names match.
func ForgetSessions(dir string, matches func(name string) bool) (forgotten int) {
	_, sessions := Names(dir)
	for _, name := range sessions {
		if matches(name) && os.Remove(filepath.Join(dir, name+sessionSuffix)) == nil {
			forgotten++
		}
	}
	return forgotten
}

// ForgetSessionsOf removes all sessions with the server of an entry, including those that began
// with earlier versions of it.
func (f *Folder) ForgetSessionsOf(o Origin) {
	ForgetSessions(f.dir.Path, func(name string) bool { return f.isOf(name, o) })
}
