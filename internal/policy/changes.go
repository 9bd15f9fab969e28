package policy

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/text"
)

// maxPart is the length in bytes of the longest value that an approval stores as
// text. Longer values are stored as a hash.
const maxPart = 4 << 10

// behind returns the keyed hash of what provides a tool.
func (a *Approvals) behind(ctx context.Context, t *registry.Tool) (string, error) {
	if a.Behind == nil || a.Dir == nil && !a.Shares(ctx) {
		return "", nil
	}
	all, err := a.Behind(ctx, t)
	if err != nil || len(all) == 0 {
		return "", err
	}
	var key []byte
	if a.Shares(ctx) {
		key = a.Shared.Key()
	} else {
		if key, err = a.Dir.Key(ctx); err != nil {
			return "", fmt.Errorf("reading the key of approvals: %w", err)
		}
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(all)
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// Pin identifies a tool as it is now: its definition and everything that provides it.
func (a *Approvals) Pin(ctx context.Context, t *registry.Tool) (string, error) {
	behind, err := a.behind(ctx, t)
	return t.Fingerprint() + " " + behind, err
}

// isApproved reports whether a tool is unchanged since its approval. It returns false if that is
// unknown.
func (a *Approvals) isApproved(ctx context.Context, was ApprovedTool, t *registry.Tool) bool {
	behind, err := a.behind(ctx, t)
	return err == nil && was.Behind == behind && was.Fingerprint == t.Fingerprint()
}

// Changed returns the parts of a tool that differ from what was approved. It returns nil if an
// approval covers the current state, or if there is none for the tool.
func (a *Approvals) Changed(ctx context.Context, t *registry.Tool) []string {
	var parts []string
	list, _ := a.load(ctx) // without them it is not approved
	for _, x := range list {
		was, covered := x.Tools[t.OriginalName()]
		if !covered || x.Source != t.Source {
			continue
		}
		if a.isApproved(ctx, was, t) {
			return nil
		}
		parts = nil
		for _, c := range changesSince(was, t) {
			parts = append(parts, c.Part)
		}
	}
	return parts
}

// PartValues is the [Change] of a value that is not shown because it may be secret.
const PartValues = "values"

func partsOf(t *registry.Tool) []registry.Part {
	var out []registry.Part
	for _, p := range t.Parts() {
		if p.Value == "" {
			continue
		}
		if len(p.Value) > maxPart {
			sum := sha256.Sum256([]byte(p.Value))
			p.Value = hashMark + hex.EncodeToString(sum[:])
		}
		out = append(out, p)
	}
	return out
}

const hashMark = "sha256:"

// changesSince compares a tool with its approved state.
func changesSince(was ApprovedTool, t *registry.Tool) []Change {
	now := partsOf(t)
	var out []Change
	var names []string
	for _, p := range slices.Concat(was.Parts, now) {
		names = text.AppendNew(names, p.Name)
	}
	for _, name := range names {
		before, after := partValue(was.Parts, name), partValue(now, name)
		if before == after {
			continue
		}
		if strings.HasPrefix(before, hashMark) {
			before = ""
		}
		if strings.HasPrefix(after, hashMark) {
			after = ""
		}
		out = append(out, Change{Part: name, Old: before, New: after})
	}
	switch {
	case len(out) > 0:
	case was.Fingerprint == t.Fingerprint():
		out = []Change{{Part: PartValues}}
	default:
		out = []Change{{Part: "definition"}} // the stored parts do not show what changed
	}
	return out
}

func partValue(parts []registry.Part, name string) string {
	for _, p := range parts {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// changedReason explains in one line why a remembered approval no longer applies.
func changedReason(changes []Change) string {
	names := make([]string, len(changes))
	for i, c := range changes {
		switch c.Part {
		case "tool":
			return "the tool is new since you allowed its server"
		case "behind":
			names[i] = "its command or URL"
		case PartValues:
			names[i] = "a value in its command, environment, headers or URL"
		case "inputSchema":
			names[i] = "its input schema"
		case "outputSchema":
			names[i] = "its output schema"
		case registry.PartOverride:
			names[i] = "its override in the settings"
		case "annotations":
			names[i] = "its annotations"
		default:
			names[i] = "its " + c.Part
		}
	}
	list := names[0]
	if n := len(names) - 1; n > 0 {
		list = fmt.Sprintf("%s and %s", strings.Join(names[:n], ", "), names[n])
	}
	return list + " changed since you allowed it"
}

// Remember stores the answer that a tool may run within a scope. It replaces
// earlier approvals of the same scope.
func (a *Approvals) Remember(ctx context.Context, t *registry.Tool, scope Scope) error {
	list, err := a.New(ctx, t, scope)
	if err != nil {
		return err
	}
	return a.Add(ctx, list)
}

// New returns approvals for the tool, in its current state, to run within a scope. It does not
// store them.
func (a *Approvals) New(ctx context.Context, t *registry.Tool, scope Scope) ([]Approval, error) {
	values := scope.Values
	switch scope.Kind {
	case ScopeTool:
		values = []string{t.OriginalName()}
	case ScopeServer:
		values = []string{t.Server}
	case ScopeEdits:
		values = []string{""}
	}
	tools, err := a.covered(ctx, t, scope.Kind)
	if err != nil {
		return nil, err
	}
	var out []Approval
	for _, v := range values {
		n := Approval{
			Project: a.Project, Kind: scope.Kind, Value: v, Source: t.Source, Folder: a.Folder,
			Workspace: a.Workspace, Client: caller.Name(ctx),
			Confined: scope.Confined, Created: a.clock().Truncate(time.Second),
			Tools: tools,
		}
		n.ID = n.id()
		out = append(out, n)
	}
	return out, nil
}

// covered returns the current state of the tools that a scope covers.
func (a *Approvals) covered(ctx context.Context, t *registry.Tool, kind ScopeKind) (map[string]ApprovedTool, error) {
	tools := []*registry.Tool{t}
	if a.Siblings != nil && (kind == ScopeServer || kind == ScopeEdits) {
		for _, s := range a.Siblings(t.Source) {
			if s.Source == t.Source &&
				(kind == ScopeServer || s.Category == registry.CategoryWrite && s.Subject != nil) {
				tools = append(tools, s)
			}
		}
	}
	out := map[string]ApprovedTool{}
	for _, tool := range tools {
		behind, err := a.behind(ctx, tool)
		if err != nil {
			return nil, err
		}
		out[tool.OriginalName()] = ApprovedTool{Fingerprint: tool.Fingerprint(), Behind: behind, Parts: partsOf(tool)}
	}
	return out, nil
}

// Change is a difference between a tool and its approved state.
type Change struct {
	Part string `json:"part"`          // part of the definition, or "tool" for a new tool
	Old  string `json:"old,omitempty"` // absent if the text was not stored
	New  string `json:"new,omitempty"` // likewise
}
