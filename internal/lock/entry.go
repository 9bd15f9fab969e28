package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

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
