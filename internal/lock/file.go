package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolreg/toolreg/internal/atomicfile"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// Name is the file name in the project root, and in the user's settings folder.
const Name = "toolreg.lock"

const format = 1

// File is the content of a lock file. Tools is sorted by source, name and
// version.
type File struct {
	Version int     `json:"version"` // version of the file format
	Tools   []Entry `json:"tools"`
	// Names has the plain names whose server does not follow from Tools, because several servers
	// have a tool of this name or the server has no entry.
	Names map[string]string `json:"names,omitempty"`

	user bool // it is the user's, not the project's
}

func (f *File) byKey() map[string]*Entry {
	out := make(map[string]*Entry, len(f.Tools))
	for i := range f.Tools {
		out[f.Tools[i].key()] = &f.Tools[i]
	}
	return out
}

// Has reports whether the file has a tool with a name, or one that a glob matches.
func (f *File) Has(name string) bool {
	return slices.ContainsFunc(f.Tools, func(e Entry) bool { return e.IsNamed(name) })
}

// Keep keeps only the tools that are meant.
func (f *File) Keep(meant func(*Entry) bool) {
	f.Tools = slices.DeleteFunc(f.Tools, func(e Entry) bool { return !meant(&e) })
}

// KeepOver keeps the tools that are meant, and adds all others from an older file.
func (f *File) KeepOver(older *File, meant func(*Entry) bool) {
	f.Keep(meant)
	for _, e := range older.Tools {
		if !meant(&e) {
			f.Tools = append(f.Tools, e)
		}
	}
	slices.SortStableFunc(f.Tools, func(a, b Entry) int { return strings.Compare(a.key(), b.key()) })
}

// maxFile is the maximum size of a lock file in bytes.
const maxFile = 64 << 20

const anew = "restore it from version control, or write a new one with toolreg lock (your own with toolreg lock --user)"

func absent(message string) error { return &registry.Failure{Text: message, Kind: fs.ErrNotExist} }

// Read reads the lock file in dir. The error wraps [fs.ErrNotExist] if it does not
// exist; any other has a hint.
func Read(dir string) (*File, error) {
	path := filepath.Join(dir, Name)
	fail := func(err error) (*File, error) {
		return nil, &registry.Failure{Text: fmt.Sprintf("reading %s: %v", path, err), Help: anew, Cause: err}
	}
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() { // reading a pipe would block
		err = errors.New("it is not a regular file")
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, absent(path + " does not exist; run toolreg lock to create it")
	}
	if err != nil {
		return fail(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fail(err)
	}
	file, err := decode(data)
	if err != nil {
		return fail(err)
	}
	return file, nil
}

func decode(data []byte) (*File, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("it is larger than the limit of %d bytes", maxFile)
	}
	data = text.WithoutMark(data)
	if err := registry.CheckJSON(data); err != nil { // duplicate keys could be overlooked in a review
		return nil, fmt.Errorf("it is damaged: %s", err.Message)
	}
	var f File
	if err := jsonx.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if f.Version != format {
		return nil, fmt.Errorf("its format is version %d, but this toolreg supports version %d", f.Version, format)
	}
	seen := map[string]bool{}
	for i := range f.Tools {
		key := f.Tools[i].key()
		if seen[key] {
			return nil, fmt.Errorf("it is damaged: %s %s occurs twice", f.Tools[i].Source, f.Tools[i].Name)
		}
		seen[key] = true
	}
	return &f, nil
}

// Encode returns the content of the file. It depends only on the tools.
func (f *File) Encode() []byte {
	data, _ := jsonx.Marshal(f) // strings and JSON alone: cannot fail
	var b bytes.Buffer
	_ = json.Indent(&b, data, "", "  ")
	b.WriteByte('\n')
	return b.Bytes()
}

// Write atomically replaces the lock file in dir.
func Write(dir string, content []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("writing %s: %w", Name, err)
	}
	defer root.Close()
	if err := atomicfile.Write(root, Name, content, atomicfile.Options{}); err != nil {
		return fmt.Errorf("writing %s: %w", Name, err)
	}
	return nil
}

// uniqueNames returns the plain names that exactly one server of the file has, with the server;
// a name that several have has the server "".
func (f *File) uniqueNames() map[string]string {
	out := map[string]string{}
	for i := range f.Tools {
		server, ok := registry.ServerOf(f.Tools[i].Source)
		if !ok {
			continue
		}
		name := registry.ValidName(f.Tools[i].Name)
		if other, taken := out[name]; taken && other != server {
			server = ""
		}
		out[name] = server
	}
	return out
}

// Owners returns the plain names of servers' tools with the server to which each belongs. It omits
// names about which the file says nothing.
func (f *File) Owners() map[string]string {
	out := f.uniqueNames()
	maps.Copy(out, f.Names)
	maps.DeleteFunc(out, func(_, server string) bool { return server == "" })
	return out
}

// SetOwners sets to which server each plain name of the file's tools belongs. owner returns "" for
// a name that belongs to no server.
func (f *File) SetOwners(owner func(name string) string) {
	f.Names = nil
	for name, only := range f.uniqueNames() {
		if server := owner(name); server != "" && server != only {
			if f.Names == nil {
				f.Names = map[string]string{}
			}
			f.Names[name] = server
		}
	}
}

// KeepOverrides gives the tools that have no override now the one that an older file has.
func (f *File) KeepOverrides(older *File) {
	was := older.byKey()
	for i := range f.Tools {
		e := &f.Tools[i]
		if old := was[e.key()]; old != nil && e.Override == nil {
			e.Override = old.Override
		}
	}
}

// Change is one difference between two lock files.
type Change struct {
	Kind    string   `json:"kind"` // added, removed, changed
	Source  string   `json:"source"`
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"`
	Parts   []string `json:"parts,omitempty"` // for kind changed: parts of the definition
	Diff    string   `json:"diff,omitempty"`  // for kind changed: unified diff of the definition
}

// Kinds of changes.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// Compare returns the differences between was and now, in the order of the files.
// It returns nil if there are none.
func Compare(was, now *File) []Change {
	old := was.byKey()
	var out []Change
	for i := range now.Tools {
		e := &now.Tools[i]
		o := old[e.key()]
		delete(old, e.key())
		switch {
		case o == nil:
			out = append(out, Change{Kind: Added, Source: e.Source, Name: e.Name, Version: e.Version})
		case !o.matches(e):
			out = append(out, Change{Kind: Changed, Source: e.Source, Name: e.Name, Version: e.Version,
				Parts: changedParts(o, e), Diff: udiff.Unified("locked", "now", o.pretty(), e.pretty())})
		}
	}
	for i := range was.Tools {
		if e := &was.Tools[i]; old[e.key()] == e {
			out = append(out, Change{Kind: Removed, Source: e.Source, Name: e.Name, Version: e.Version})
		}
	}
	return out
}

// changed returns the parts of a tool that differ from those in the file. It returns nil if
// none does, or the tool is not in the file.
func (f *File) changed(t *registry.Tool) []string {
	now := newEntry(t)
	for i := range f.Tools {
		if was := &f.Tools[i]; was.key() == now.key() && !was.hasDefinition(&now) {
			now.Override = was.Override // overrides are compared by overrideFilter
			return changedParts(was, &now)
		}
	}
	return nil
}

// Entry is one locked tool.
type Entry struct {
	Source      string `json:"source"`
	Name        string `json:"name"` // the source's name for the tool
	Version     string `json:"version,omitempty"`
	Fingerprint string `json:"fingerprint"`
	// Definition has everything that the fingerprint covers, for review and for
	// diffs. It is compared too, so that only the reviewed text is accepted.
	Definition json.RawMessage `json:"definition"`
	// Override is the override of the tool, or nil.
	Override *Override `json:"override,omitempty"`
}

func (e *Entry) key() string { return e.Source + "\x00" + e.Name + "\x00" + e.Version }

// Is reports whether the entry is for a tool.
func (e *Entry) Is(t *registry.Tool) bool {
	up := t.Upstream()
	return e.Source == up.Source && e.Name == up.Name && e.Version == up.Version
}

// IsNamed reports whether one of the names or globs matches the tool's name,
// name@version or server__tool.
func (e *Entry) IsNamed(names ...string) bool {
	server, isServer := registry.ServerOf(e.Source)
	return slices.ContainsFunc(names, func(name string) bool {
		return text.MatchName(name, e.Name) || e.Version != "" && text.MatchName(name, e.Name+"@"+e.Version) ||
			isServer && text.MatchName(name, registry.ValidName(server+"__"+e.Name))
	})
}

// newEntry returns the entry of a tool without its override, which has not been
// applied when filters run.
func newEntry(tool *registry.Tool) Entry {
	t := &registry.Tool{Definition: *tool.Upstream(), Identity: tool.Identity}
	e := Entry{Source: t.Source, Name: t.Name, Version: t.Version, Fingerprint: t.Fingerprint()}
	definition := jsonx.NewObject()
	for _, p := range t.Parts() {
		switch p.Name {
		case "name":
			e.Name = p.Value
		case "source":
		case "description": // as a list of lines, for diffs
			if p.Value != "" {
				lines := jsonx.NewArray()
				for line := range strings.SplitSeq(p.Value, "\n") {
					lines.Items = append(lines.Items, jsonx.NewString(line))
				}
				definition.Set(p.Name, lines)
			}
		default:
			if v, err := jsonx.Parse([]byte(p.Value), jsonx.Options{}); err == nil {
				definition.Set(p.Name, v)
			} else if p.Value != "" {
				definition.Set(p.Name, jsonx.NewString(p.Value))
			}
		}
	}
	e.Definition = definition.AppendTo(nil)
	return e
}

// matches reports whether now is the tool that e locks, both by its fingerprint and
// by its definition.
func (e *Entry) matches(now *Entry) bool {
	return e.hasDefinition(now) && e.Override.matches(now.Override)
}

func (e *Entry) hasDefinition(now *Entry) bool {
	return e.Fingerprint == now.Fingerprint && sameJSON(e.Definition, now.Definition)
}

// sameJSON compares values regardless of white space and escapes, because the file
// is written with invisible characters escaped.
func sameJSON(a, b json.RawMessage) bool {
	return json.Valid(a) && json.Valid(b) && jsonx.Canonical(a) == jsonx.Canonical(b)
}

// pretty returns the definition on several lines. Its JSON was read or made here, so that it is valid.
func (e *Entry) pretty() string {
	var b bytes.Buffer
	_ = json.Indent(&b, e.Definition, "", "  ")
	b.WriteByte('\n')
	if e.Override != nil {
		b.WriteString("override: ")
		_ = json.Indent(&b, e.Override.Entry, "", "  ")
		b.WriteByte('\n')
	}
	return b.String()
}

// PartNames returns the names of changed parts as text for messages.
func PartNames(parts []string) string {
	return strings.ReplaceAll(strings.Join(parts, ", "), "behind", "command or server")
}

// changedParts returns the names of the parts that changed. It includes
// "fingerprint" if only the fingerprint differs.
func changedParts(was, now *Entry) []string {
	a, b := was.parts(), now.parts()
	var out []string
	for name, value := range b {
		if was, ok := a[name]; !ok || !sameJSON(was, value) {
			out = append(out, name)
		}
	}
	for name := range a {
		if _, ok := b[name]; !ok {
			out = append(out, name)
		}
	}
	if len(out) == 0 && !was.hasDefinition(now) {
		out = []string{"fingerprint"}
	}
	if !was.Override.matches(now.Override) {
		out = append(out, registry.PartOverride)
	}
	slices.Sort(out)
	return out
}

func (e *Entry) parts() map[string]json.RawMessage {
	return maps.Collect(jsonx.Members(e.Definition))
}

// Override is a locked entry of the setting overrides. It is separate from the
// definition, so that a change of the settings can be told from a change of the
// source.
type Override struct {
	Fingerprint string          `json:"fingerprint"`
	Entry       json.RawMessage `json:"entry"` // with secrets masked
}

func newOverride(t *registry.Tool) *Override {
	if t.Reshaped == nil {
		return nil
	}
	sum := sha256.Sum256([]byte(jsonx.Canonical(t.Reshaped.Override)))
	return &Override{Fingerprint: hex.EncodeToString(sum[:]), Entry: json.RawMessage(jsonx.Canonical(t.Reshaped.Shown))}
}

// matches reports whether now is the same override as o; both may be nil.
func (o *Override) matches(now *Override) bool {
	if o == nil || now == nil {
		return o == now
	}
	return o.Fingerprint == now.Fingerprint && sameJSON(o.Entry, now.Entry)
}

// keyOf returns the key of a tool, which uses the source's name for it.
func keyOf(t *registry.Tool, name string) string {
	if t.OfServer() {
		name = t.ServerTool
	}
	return (&Entry{Source: t.Source, Name: name, Version: t.Version}).key()
}
