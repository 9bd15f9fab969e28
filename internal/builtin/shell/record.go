package shell

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/text"
)

// Background processes outlive the run that started them, so their records are
// in the state folder: ID.json describes what was started, ID.log and ID.log.1
// contain the end of its output, and ID.exit contains its exit code once it has
// exited by itself. A separate program supervises the process; see [Keep].

// backgroundFolder is the subfolder of the state folder for the records.
const backgroundFolder = "background"

// keepEnded is how long to keep the files of an ended process.
const keepEnded = 7 * 24 * time.Hour

// backgroundRecord is the content of ID.json.
type backgroundRecord struct {
	ID        string    `json:"id"`
	Workspace string    `json:"workspace"`
	Token     string    `json:"token,omitempty"` // name of the token of the client that started it
	Command   string    `json:"command"`
	Directory string    `json:"directory"`
	Started   time.Time `json:"started"`
	// PID is the keeper of the command, Group its process group. Birth
	// distinguishes it from a later process with the same id.
	PID   int    `json:"pid"`
	Group int    `json:"group"`
	Birth string `json:"birth"`
	// Mark is in the environment of every process that the command starts.
	Mark string `json:"mark,omitempty"`
}

type backgroundState struct {
	running bool
	code    int  // the exit code, if ended and known
	known   bool // code is known
	killed  bool // by the process tool
}

func (s backgroundState) String() string {
	switch {
	case s.running:
		return "running"
	case s.killed:
		return "killed"
	case s.known:
		return "ended with exit code " + strconv.Itoa(s.code)
	}
	return "ended, exit code unknown"
}

type backgroundStore struct{ dir string }

func newBackgroundStore(opts *Options) (*backgroundStore, error) {
	if opts.StateDir == "" {
		return nil, errors.New("there is no state folder for background processes")
	}
	return &backgroundStore{dir: filepath.Join(opts.StateDir, backgroundFolder)}, nil
}

func (b *backgroundStore) path(id, kind string) string { return filepath.Join(b.dir, id+"."+kind) }

// create creates the folder, a new id and its empty log.
func (b *backgroundStore) create() (id string, log *os.File, err error) {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("recording background processes: %w", err)
	}
	id = strings.ToLower(rand.Text()[:8])
	log, err = os.OpenFile(b.path(id, "log"), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("recording background processes: %w", err)
	}
	return id, log, nil
}

// start starts the command that a record describes in a folder, and completes and saves the
// record.
func (b *backgroundStore) start(ctx context.Context, r *backgroundRecord, opts *Options,
	confine *process.Confinement, argv []string, dir string) (err error) {
	id, log, err := b.create()
	if err != nil {
		return err
	}
	defer func() {
		log.Close()
		if err != nil {
			b.remove(id)
		}
	}()
	sandbox := ""
	if confine != nil {
		confine.Background = true
		end, err := b.startAlone()
		if err != nil {
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
			return err
		}
	}
	kept := 2 * max(cmp.Or(opts.MaxOutput, process.DefaultMaxOutput), logTail) // of both streams, and what is shown
	keeper := append(slices.Clone(opts.Keeper), b.path(id, "log"),
		b.path(id, "exit"), strconv.FormatInt(kept, 10), sandbox)
	r.ID, r.Token, r.Started, r.Mark = id, caller.Token(ctx), time.Now().UTC(), rand.Text()
	env := append(slices.Clone(opts.Env), process.MarkVariable+"="+r.Mark)
	if r.PID, r.Group, r.Birth, err = detach(ctx, append(keeper, argv...), dir, env, log); err != nil {
		return err
	}
	if err := b.save(r); err != nil {
		_ = b.end(r, time.Sleep) // a process without a record must not keep running
		return err
	}
	return nil
}

// save writes the record. From then on the process is listed.
func (b *backgroundStore) save(r *backgroundRecord) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = replaceFile(b.path(r.ID, "json"), data)
	}
	if err != nil {
		return fmt.Errorf("recording background processes: %w", err)
	}
	return nil
}

// replaceFile writes a file that has a single writer. Readers see the old
// content or the new content, never a part.
func replaceFile(path string, data []byte) error {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return atomicfile.Write(folder, filepath.Base(path), data, atomicfile.Options{Mode: 0o600, Volatile: true})
}

// remove removes the files of a process.
func (b *backgroundStore) remove(id string) {
	for _, kind := range []string{"json", "log", "log.1", "log.passed", "exit", "exit.tmp", "confine", "net"} {
		_ = os.Remove(b.path(id, kind)) // what remains is removed next time
	}
}

// load reads the record of a process that a caller may see.
func (b *backgroundStore) load(id string, of scope) (*backgroundRecord, error) {
	if !isBackgroundID(id) {
		return nil, fs.ErrNotExist
	}
	data, err := os.ReadFile(b.path(id, "json"))
	if err != nil {
		return nil, err
	}
	r := &backgroundRecord{}
	if err := json.Unmarshal(data, r); err != nil || r.ID != id || r.PID <= 1 || r.Group <= 1 {
		return nil, fmt.Errorf("the record %s is damaged; remove it", b.path(id, "json"))
	}
	if !of.has(r) {
		return nil, fs.ErrNotExist
	}
	return r, nil
}

// scope selects the processes that a caller may see: those of its workspace and token.
type scope struct {
	workspace, token string
	person           bool // the person at the command line sees those of all tokens
}

func scopeOf(ctx context.Context, workspace string) scope {
	return scope{workspace: workspace, token: caller.Token(ctx), person: caller.IsPerson(ctx)}
}

func (s scope) has(r *backgroundRecord) bool {
	return r.Workspace == s.workspace && (s.person || r.Token == s.token)
}

func isBackgroundID(id string) bool {
	return id != "" && len(id) <= 32 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// list returns the processes that a caller may see, oldest first, and removes those
// that ended long ago.
func (b *backgroundStore) list(of scope) ([]*backgroundRecord, error) {
	names, err := os.ReadDir(b.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing background processes: %w", err)
	}
	if folder, err := os.OpenRoot(b.dir); err == nil {
		atomicfile.Sweep(folder)
		folder.Close()
	}
	var out []*backgroundRecord
	for _, e := range names {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		r, err := b.load(id, of)
		if err != nil {
			continue // belongs to somebody else, or is damaged
		}
		if time.Since(r.Started) > keepEnded && !b.state(r).running {
			b.remove(id)
			continue
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(x, y *backgroundRecord) int { return x.Started.Compare(y.Started) })
	return out, nil
}

// state returns the state of a process. Its keeper writes the exit code once
// all of the command's output is in the log. The keeper may keep running for
// processes that the command left running.
func (b *backgroundStore) state(r *backgroundRecord) backgroundState {
	alive := isAlive(r.PID, r.Group, r.Birth) // check this first: the exit code is written before the keeper exits
	text, err := os.ReadFile(b.path(r.ID, "exit"))
	if err != nil {
		return backgroundState{running: alive}
	}
	word := strings.TrimSpace(string(text))
	if word == "killed" {
		return backgroundState{killed: true, running: alive}
	}
	code, err := strconv.Atoi(word)
	return backgroundState{code: code, known: err == nil}
}

// ended returns an error if the process is not running.
func (b *backgroundStore) ended(r *backgroundRecord) error {
	if state := b.state(r); !state.running {
		return fmt.Errorf("%s has already ended: %v", text.Quote(r.ID), state)
	}
	return nil
}

// end ends a process. wait waits for it to exit.
func (b *backgroundStore) end(r *backgroundRecord, wait func(time.Duration)) error {
	if err := b.ended(r); err != nil {
		return err
	}
	err := replaceFile(b.path(r.ID, "exit"), []byte("killed\n"))
	if err == nil {
		err = endGroup(r.Group, wait)
	}
	if err != nil {
		return fmt.Errorf("ending %q: %w", r.ID, err)
	}
	if r.Mark != "" {
		process.EndStrays(r.Group, r.Mark)
	}
	return nil
}

// tail returns at most limit bytes from the end of the log, from the start of a
// line if possible, and the total size of the output.
func (b *backgroundStore) tail(id string, limit int64) (end string, size int64, err error) {
	kept, size, err := b.logEnd(b.path(id, "log"), limit)
	if err != nil {
		return "", 0, fmt.Errorf("reading the log of %q: %w", id, err)
	}
	if int64(len(kept)) < size {
		if _, whole, _ := bytes.Cut(kept, []byte{'\n'}); len(whole) > 0 {
			kept = whole // otherwise all of it is one long line
		}
	}
	return text.Valid(kept), size, nil
}

// logEnd reads at most limit bytes from the end of a log that may be rotated
// meanwhile.
func (b *backgroundStore) logEnd(path string, limit int64) (end []byte, size int64, err error) {
	for range 5 {
		before := passedOf(path)
		var now, earlier []byte
		if now, size, err = fileEnd(path, limit); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, 0, err
		}
		if len(now) < int(limit) && before > 0 {
			if earlier, _, err = fileEnd(path+".1", limit-int64(len(now))); err != nil &&
				!errors.Is(err, fs.ErrNotExist) {
				return nil, 0, err
			}
		}
		end, size = append(earlier, now...), size+before
		if passedOf(path) == before {
			break
		}
	}
	return end, size, nil
}

// passedOf returns how many bytes of a log are no longer in the current file.
func passedOf(path string) int64 {
	text, err := os.ReadFile(path + ".passed")
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// fileEnd returns at most limit bytes from the end of a file, and its size.
func fileEnd(path string, limit int64) (end []byte, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	start := max(info.Size()-limit, 0)
	end = make([]byte, info.Size()-start)
	n, err := f.ReadAt(end, start)
	if n == 0 && err != nil && len(end) > 0 {
		return nil, 0, err
	}
	return end[:n], info.Size(), nil
}
