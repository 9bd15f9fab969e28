package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/state"
)

// ErrDamaged reports that a stored grant cannot be read. The project is then not
// trusted, and the next Grant sets the file aside.
var ErrDamaged = errors.New("the stored grant cannot be read")

// grantVersion is the version of the file format of a grant. Version 1 did not record
// programs on PATH and links.
const grantVersion = 2

// Store stores grants in a state folder, in one file per project. It is safe for
// concurrent use, also by several processes.
type Store struct {
	dir *state.Dir
}

// NewStore returns a Store that uses the given state folder.
func NewStore(dir *state.Dir) *Store { return &Store{dir: dir} }

// Status says whether a project is trusted. The zero value is not trusted.
type Status struct {
	Trusted bool
	Granted time.Time // time of the last grant; zero if there is none or it was revoked
	Changes []Change  // differences from the grant, sorted by name
	// Outside are the programs of a trusted project that PATH finds elsewhere than when it
	// was granted. The grant does not depend on these.
	Outside []Change
}

// grant is a person's consent to what a project runs.
type grant struct {
	Version int       `json:"version"`
	Root    string    `json:"root"`           // the project root, with links resolved
	Hash    string    `json:"hash,omitempty"` // result of Hash; "" if revoked
	Time    time.Time `json:"time,omitzero"`
	Files   []granted `json:"files,omitempty"`
}

// Check compares the files of a project with its grant. The project is trusted if
// the files, and all other files of the grant, are unchanged. If Check returns an
// error, the grant could not be read and the project is not trusted.
func (s *Store) Check(root string, files []File) (Status, error) {
	root = Real(root)
	g, err := s.readGrant(root)
	if err != nil || g.Hash == "" {
		return Status{}, err
	}
	all, outside := changesBetween(g.Files, files), []Change(nil)
	others := slices.DeleteFunc(slices.Clone(all), func(c Change) bool {
		if !g.isOutside(c, files) {
			return false
		}
		if c.Kind != Removed && (c.Kind != Added || g.Version > 1) {
			outside = append(outside, c)
		}
		return true
	})
	trusted := !slices.ContainsFunc(others, func(c Change) bool { return c.Kind != Removed || !g.unchanged(c.Name) })
	for _, list := range [][]Change{all, outside} {
		for i := range list {
			list[i].Name = shownName(list[i].Name)
		}
	}
	if trusted {
		return Status{Trusted: true, Granted: g.Time, Outside: outside}, nil
	}
	return Status{Granted: g.Time, Changes: all}, nil
}

// isOutside reports whether a change concerns a program on PATH, now and at the time of
// the grant.
func (g grant) isOutside(c Change, files []File) bool {
	return !slices.ContainsFunc(g.Files, func(f granted) bool { return f.Name == c.Name && f.Sum != "" }) &&
		!slices.ContainsFunc(files, func(f File) bool { return f.Name == c.Name && f.Sum != "" })
}

// unchanged reports whether the file of this name in the grant, which Check was not
// given, still has its granted content. Then consent to the larger set of files includes
// the smaller one.
func (g grant) unchanged(name string) bool {
	was := g.Files[slices.IndexFunc(g.Files, func(f granted) bool { return f.Name == name })]
	if was.Link != "" {
		text, err := os.Readlink(was.Path)
		return err == nil && text == was.Link
	}
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(g.Root, path)
	}
	f, err := hashFile(path, maxBytes)
	return err == nil && f.Sum == was.Sum && f.Path == was.Path
}

// Grant stores consent to exactly these files and replaces an earlier grant. If
// the file of that grant is damaged, it is set aside, and its new path is
// returned.
func (s *Store) Grant(ctx context.Context, root string, files []File, at time.Time) (setAside string, err error) {
	return s.replace(ctx, newGrant(Real(root), files, at))
}

// Revoke removes the grant of a project and reports whether there was one.
func (s *Store) Revoke(ctx context.Context, root string) (bool, error) {
	root = Real(root)
	old, err := s.readGrant(root)
	if err != nil || old.Hash == "" {
		return false, err
	}
	_, err = s.replace(ctx, grant{Version: grantVersion, Root: root})
	return err == nil, err
}

func newGrant(root string, files []File, at time.Time) grant {
	g := grant{
		Version: grantVersion,
		Root:    root,
		Hash:    Hash(files),
		Time:    at.UTC().Truncate(time.Second),
		Files:   make([]granted, len(files)),
	}
	left := 8 * maxText
	for i, f := range files {
		g.Files[i] = granted{Name: f.Name, Path: f.Path, Sum: f.Sum, Link: f.Link}
		if len(f.Data) <= left && isText(f.Data) {
			g.Files[i].Text = string(f.Data)
			left -= len(f.Data)
		}
	}
	return g
}

func (s *Store) readGrant(root string) (grant, error) {
	data, err := s.dir.Read(fileName(root))
	if errors.Is(err, fs.ErrNotExist) {
		return grant{}, nil
	}
	if err != nil {
		return grant{}, fmt.Errorf("reading a grant: %w", err)
	}
	return s.decode(root, data)
}

// replace writes a grant. It sets a damaged file aside first.
func (s *Store) replace(ctx context.Context, g grant) (setAside string, err error) {
	setAside, err = s.dir.UpdateOrSetAside(ctx, fileName(g.Root), func(old []byte) ([]byte, error) {
		_, err := s.decode(g.Root, old)
		if errors.Is(err, ErrDamaged) {
			return nil, state.ErrDamaged
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(g)
	})
	if err != nil {
		return "", fmt.Errorf("saving a grant: %w", err)
	}
	return setAside, nil
}

// decode decodes the file of a grant; data is nil if there is no file.
func (s *Store) decode(root string, data []byte) (grant, error) {
	var g grant
	if data == nil {
		return g, nil
	}
	path := filepath.Join(s.dir.Path, fileName(root))
	if err := json.Unmarshal(data, &g); err != nil || g.Version < 1 || g.Root != root {
		return grant{}, fmt.Errorf("%w: %s is damaged", ErrDamaged, path)
	}
	if g.Version > grantVersion {
		return grant{}, fmt.Errorf(
			"reading a grant: %s has version %d, which this toolreg does not support; use a newer one", path, g.Version)
	}
	return g, nil
}

// File returns the absolute path of the file with the grant of a project, which need not exist.
func (s *Store) File(root string) string { return filepath.Join(s.dir.Path, fileName(Real(root))) }

// fileName returns the name of a project's state file.
func fileName(root string) string {
	sum := sha256.Sum256([]byte(root))
	return "trust-" + hex.EncodeToString(sum[:16]) + ".json"
}
