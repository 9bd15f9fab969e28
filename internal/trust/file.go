package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolreg/toolreg/internal/git"
)

// Limits of a grant. A project that exceeds them cannot be trusted.
const (
	maxFiles = 20_000
	maxBytes = 128 << 20
	maxText  = 64 << 10 // of one file that is stored to show changes
)

// Errors of [Read] and [ReadOwned].
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("file is too large")
)

// OwnerError reports that another user could have written a file.
type OwnerError struct {
	Path   string
	Reason string // such as "it belongs to user 1001"
}

func (e *OwnerError) Error() string { return e.Path + " is not safe to use: " + e.Reason }

// File is a file that a grant covers, with its content at the time it was read.
type File struct {
	Name string // relative to the project root with slashes; absolute outside it
	Path string // with links resolved; "" for a mode
	Sum  string // hex SHA-256 of the bytes; "" for a program on PATH, which is known by its path alone
	Link string // text of a link in the project, which is part of its Name
	// Outside is set for a program on PATH and for what a link in the project leads to
	// outside it. These are recorded with a grant but are not part of its hash.
	Outside bool
	Size    int64  // bytes
	Data    []byte // the bytes; for files that [Cover] finds, only if they are a short text
}

// mark is part of the Name of a link, of a program on PATH and of a mode. No file has such a name, so
// none can take the place of another in a grant.
const mark = "// "

// shownName returns a Name for people.
func shownName(name string) string { return strings.Replace(name, mark, " ", 1) }

// Read reads a regular file once, so that the bytes that are hashed are the bytes
// that are parsed. It never blocks on a pipe. It returns ErrTooLarge for a file of
// more than limit bytes, and ErrNotRegular for a folder or device. The caller sets
// Name.
func Read(path string, limit int64) (File, error) { return readFile(path, limit, false) }

// ReadOwned is like Read, for files that the user did not name. If a user other
// than root or the current one could have written the file, it returns an
// [*OwnerError].
func ReadOwned(path string, limit int64) (File, error) { return readFile(path, limit, true) }

func readFile(path string, limit int64, owned bool) (File, error) {
	f, info, err := openFile(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	if reason := foreignWriter(info); owned && reason != "" {
		return File{}, &OwnerError{Path: path, Reason: reason}
	}
	content := &bytes.Buffer{}
	if info.Size() <= limit {
		content.Grow(int(info.Size()) + bytes.MinRead)
		_, err = content.ReadFrom(io.LimitReader(f, limit+1))
	}
	if err != nil {
		return File{}, fmt.Errorf("reading %s: %w", path, err)
	}
	data := content.Bytes()
	if max(info.Size(), int64(len(data))) > limit {
		return File{}, fmt.Errorf("reading %s: %w: the limit is %d bytes", path, ErrTooLarge, limit)
	}
	return newFile(Real(path), data), nil
}

// Proposed returns a file as [Read] would return it if it had this content. The
// file need not exist.
func Proposed(path string, data []byte) File { return newFile(git.ResolveLinks(path), data) }

func newFile(path string, data []byte) File {
	sum := sha256.Sum256(data)
	return File{Path: path, Sum: hex.EncodeToString(sum[:]), Size: int64(len(data)), Data: data}
}

// Foreign returns the reason why another user could have written a folder or file;
// "" if no other user could. It does not follow links.
func Foreign(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	return foreignWriter(info)
}

// hashFile hashes a file of any size and keeps its bytes if it is a short text.
func hashFile(path string, limit int64) (File, error) {
	f, info, err := openFile(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	if info.Size() > limit {
		return File{}, fmt.Errorf("reading %s: %w for a grant to cover", path, ErrTooLarge)
	}
	h := sha256.New()
	in := io.TeeReader(io.LimitReader(f, limit+1), h)
	head, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil {
		return File{}, fmt.Errorf("reading %s: %w", path, err)
	}
	rest, err := io.Copy(io.Discard, in)
	if err != nil {
		return File{}, fmt.Errorf("reading %s: %w", path, err)
	}
	file := File{Path: Real(path), Sum: hex.EncodeToString(h.Sum(nil)), Size: int64(len(head)) + rest}
	if isText(head) {
		file.Data = head
	}
	return file, nil
}

func isText(b []byte) bool {
	return len(b) <= maxText && utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}

func openFile(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|git.OpenNonblock, 0)
	if err != nil {
		return nil, nil, err // the error names the path
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("reading %s: %w", path, ErrNotRegular)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Hash returns the hash of what is in the project: the names and contents of the files,
// and the texts of links. It depends neither on their order nor on where the project is,
// so that every checkout has the same.
func Hash(files []File) string {
	sorted := make([]*File, 0, len(files))
	for i := range files {
		if !files[i].Outside {
			sorted = append(sorted, &files[i])
		}
	}
	slices.SortFunc(sorted, func(a, b *File) int { return strings.Compare(a.Name, b.Name) })
	h := sha256.New()
	for _, f := range sorted {
		for _, s := range []string{f.Name, f.Sum} {
			var size [8]byte
			binary.BigEndian.PutUint64(size[:], uint64(len(s)))
			h.Write(size[:])
			h.Write([]byte(s))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Real returns a path with symbolic links resolved, or just cleaned if they cannot
// be resolved. For "" it returns "".
func Real(path string) string {
	if path == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// Within reports whether path is folder or lies below it, comparing the paths
// lexically. Both must be absolute, or relative to the same folder.
func Within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// The kinds of a [Change].
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// Change is the difference of a file from the granted one.
type Change struct {
	Kind string `json:"kind"`           // added, changed, removed
	Name string `json:"name"`           // file, relative to the project root
	Diff string `json:"diff,omitempty"` // unified diff; "" if the old or new text is not available
}

type granted struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Sum  string `json:"sha256"`
	Text string `json:"text,omitempty"` // only short texts, to show changes later
	Link string `json:"link,omitempty"`
}

// changesBetween returns the differences between the granted files and the current ones.
func changesBetween(old []granted, files []File) []Change {
	before := make(map[string]granted, len(old))
	for _, g := range old {
		before[g.Name] = g
	}
	found := map[string]Change{}
	for _, f := range files {
		g, known := before[f.Name]
		delete(before, f.Name)
		switch {
		case !known:
			found[f.Name] = Change{Kind: Added, Name: f.Name, Diff: diff("/dev/null", "", f)}
		case g.Sum != f.Sum || g.Path != f.Path:
			found[f.Name] = Change{Kind: Changed, Name: f.Name, Diff: changed(g, f)}
		}
	}
	for name := range before {
		found[name] = Change{Kind: Removed, Name: name}
	}
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

// changed returns the diff of a text file, "" if the old text was not stored, or of the
// path of a program on PATH.
func changed(g granted, f File) string {
	if f.Sum == "" {
		return udiff.Unified(shownName(f.Name)+" (granted)", shownName(f.Name), g.Path+"\n", f.Path+"\n")
	}
	if g.Text == "" {
		return ""
	}
	return diff(f.Name+" (granted)", g.Text, f)
}

func diff(label, old string, f File) string {
	if len(f.Data) == 0 || !isText(f.Data) {
		return ""
	}
	return udiff.Unified(label, f.Name, old, string(f.Data))
}
