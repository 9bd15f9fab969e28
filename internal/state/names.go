package state

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Names records, for one project, which servers have had which names of tools, so that a name does
// not move to another server. It is safe for concurrent use by several processes.
type Names struct {
	dir     *Dir
	file    string
	project string
}

// Holder is a server that has had a name.
type Holder struct {
	Server string `json:"server"`
	File   string `json:"file"`             // settings file of the server's entry
	Unsure bool   `json:"unsure,omitempty"` // a server before it had failed
	// Since is the place of the name in the order in which names were given, for what
	// servers offer besides tools.
	Since int `json:"since,omitempty"`
}

// namesFile is the content of the file: the holders of each name, the first first.
type namesFile struct {
	Version int                 `json:"version"`
	Project string              `json:"project"`
	Names   map[string][]Holder `json:"names"`
}

const namesVersion = 1

// Names returns the record of a project, given by the real path of its root. The error
// says why there is no state folder.
func (f *Folders) Names(project string) (*Names, error) { return f.names(project, "") }

// OfferNames returns a record like [Folders.Names], of what servers offer besides tools.
func (f *Folders) OfferNames(project string) (*Names, error) { return f.names(project, offersKind) }

// offersKind is in the names of records of what servers offer besides tools.
const offersKind = ".offers"

func namesFileOf(project, kind string) string {
	sum := sha256.Sum256([]byte(project))
	return hex.EncodeToString(sum[:16]) + kind + ".json"
}

func (f *Folders) names(project, kind string) (*Names, error) {
	d, err := f.namesDir()
	if err != nil {
		return nil, err
	}
	return &Names{d, namesFileOf(project, kind), project}, nil
}

func (f *Folders) namesDir() (*Dir, error) {
	base, err := f.State()
	if err != nil {
		return nil, err
	}
	return OpenDir(filepath.Join(base.Path, namesFolder))
}

// Read returns the holders of each name. An absent file has none. Several names may share a
// slice of holders, which must not be changed in place.
func (n *Names) Read() (map[string][]Holder, error) {
	data, err := n.dir.Read(n.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := n.parse(data)
	return f.Names, err
}

// parse returns the content of the file; nil means that there is none. Without an error its map is not nil.
func (n *Names) parse(data []byte) (namesFile, error) {
	if data == nil {
		return namesFile{namesVersion, n.project, map[string][]Holder{}}, nil
	}
	damaged := func(err error) error {
		return fmt.Errorf("reading %s: %w: %w", filepath.Join(n.dir.Path, n.file), ErrDamaged, err)
	}
	// A project may have thousands of names, and every run that loads a server reads them.
	if !jsonx.Valid(data) {
		return namesFile{}, damaged(errors.New("it is not JSON"))
	}
	names := jsonx.Get(data, "names")
	var head namesFile
	if err := json.Unmarshal(jsonx.Flatten(data, 1), &head); err != nil {
		return namesFile{}, damaged(err)
	}
	if head.Version != namesVersion {
		return namesFile{}, fmt.Errorf("reading %s: it has version %d, but this toolreg supports version %d",
			filepath.Join(n.dir.Path, n.file), head.Version, namesVersion)
	}
	if jsonx.KindOf(names) != jsonx.Object && !jsonx.IsNull(names) {
		return namesFile{}, damaged(errors.New("names is not an object"))
	}
	head.Names = make(map[string][]Holder, bytes.Count(names, []byte(`":[`)))
	known := map[string][]Holder{} // most names have the same holder
	for name, raw := range jsonx.Members(names) {
		holders, ok := known[string(raw)]
		if !ok {
			if err := json.Unmarshal(raw, &holders); err != nil {
				return namesFile{}, damaged(err)
			}
			known[string(raw)] = holders
		}
		head.Names[name] = holders
	}
	return head, nil
}

// Update changes the holders while no other process does, and returns them. As with Read, slices
// must be replaced.
// change may be called only to find that there is nothing to change; then nothing is
// written.
func (n *Names) Update(ctx context.Context, change func(map[string][]Holder)) (names map[string][]Holder, err error) {
	err = n.dir.Update(ctx, n.file, func(old []byte) ([]byte, error) {
		f, err := n.parse(old)
		if err != nil {
			return nil, err
		}
		change(f.Names)
		names = f.Names
		if len(names) == 0 && old == nil {
			return nil, nil
		}
		return json.Marshal(f)
	})
	return names, err
}

// Forget removes the record, and that of what servers offer besides tools, and returns how many names
// the first had.
func (n *Names) Forget(ctx context.Context) (int, error) {
	names, err := n.Read()
	if err != nil && errors.Is(err, ErrUnavailable) {
		return 0, err
	}
	return len(names), errors.Join(n.dir.Remove(ctx, n.file), n.dir.Remove(ctx, namesFileOf(n.project, offersKind)))
}

// ForgetServer removes a server whose entry was in a settings file from the records of
// all projects. Without a state folder there are none.
func (f *Folders) ForgetServer(ctx context.Context, server, file string) error {
	d, err := f.namesDir()
	if err != nil {
		return nil // nothing is recorded
	}
	records, err := d.Names("", ".json")
	if err != nil {
		return err
	}
	var errs []error
	for _, record := range records {
		n := &Names{dir: d, file: record}
		errs = append(errs, d.Update(ctx, record, func(old []byte) ([]byte, error) {
			f, err := n.parse(old)
			if err != nil {
				return nil, err
			}
			changed := false
			for name, all := range f.Names {
				left := slices.DeleteFunc(slices.Clone(all),
					func(h Holder) bool { return h.Server == server && h.File == file })
				changed = changed || len(left) != len(all)
				if f.Names[name] = left; len(left) == 0 {
					delete(f.Names, name)
				}
			}
			if !changed {
				return nil, nil
			}
			return json.Marshal(f)
		}))
	}
	return errors.Join(errs...)
}
