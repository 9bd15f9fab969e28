package policy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/caller"
	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/policy/shell"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// approvalsFile is the name of the file in the state directory.
const approvalsFile = "approvals.json"

// approvalsVersion is the newest version of the file format that this program
// reads.
const approvalsVersion = 1

// Approval is one remembered "always" answer.
type Approval struct {
	ID      string    `json:"id"`
	Project string    `json:"project"` // root of the project it applies to
	Kind    ScopeKind `json:"kind"`
	Value   string    `json:"value,omitempty"` // a tool, host or server, or the first words of the approved commands
	Source  string    `json:"source"`          // Definition.Source of the tool
	Created time.Time `json:"created"`
	// Folder identifies the root folder itself. An approval does not apply to
	// another folder that has since taken the same path.
	Folder string `json:"folder,omitempty"`
	// Workspace is the real path of the workspace, or "" if that is the project root. The approval
	// does not apply in another workspace, since a project or a variable can choose one.
	Workspace string `json:"workspace,omitempty"`
	// Client is the name of the client of `toolreg serve` that gave the answer;
	// the approval applies to this client only. "" means the person at the command
	// line.
	Client string `json:"client,omitempty"`
	// Confined is set if the commands run in the sandbox.
	Confined bool `json:"confined,omitempty"`
	// Tools maps the original name of every tool that the approval covers to its
	// state at the time of the approval.
	Tools map[string]ApprovedTool `json:"pins"`
}

// Covers describes what the approval allows; "…" stands for any arguments.
func (x *Approval) Covers() string {
	if x.Kind != ScopeCommand {
		return x.Value
	}
	switch kind := shell.KindOfCover(x.Value); {
	case kind == shell.CoversNothing:
		return x.Value + " (ignored: no subcommand)"
	case x.Confined:
		return x.Value + " … (in the sandbox)"
	case kind == shell.CoversExactly:
		return x.Value
	}
	return x.Value + " …"
}

// ApprovedTool is the state of a tool at the time of its approval.
type ApprovedTool struct {
	Fingerprint string `json:"fingerprint"`
	// Behind is a keyed hash of everything that provides the tool, including the values that
	// Fingerprint leaves out because they may be secret. It is "" for a built-in tool.
	Behind string          `json:"behind,omitempty"`
	Parts  []registry.Part `json:"parts,omitempty"` // long values are replaced by their hash
}

// ScopeKind is the kind of a scope.
type ScopeKind string

// The kinds of scopes.
const (
	ScopeTool    ScopeKind = "tool"    // every call of one tool
	ScopeCommand ScopeKind = "command" // commands of a shell tool with the same first words
	ScopeHost    ScopeKind = "host"    // every call of one tool to one host
	ScopeEdits   ScopeKind = "edits"   // every edit by built-in tools in this workspace
	ScopeServer  ScopeKind = "server"  // every tool of one MCP server
)

// Scope is what an "always" answer covers.
type Scope struct {
	Kind ScopeKind
	// Values are the first words of the commands that a ScopeCommand covers,
	// quoted as for a shell, or the hosts of a ScopeHost.
	Values []string
	// Confined is set if the commands of a ScopeCommand run in the sandbox.
	Confined bool
}

// Covers describes the commands that a ScopeCommand covers, as in
// `"git status …"`, where "…" stands for any arguments.
func (s *Scope) Covers() string {
	covers := make([]string, len(s.Values))
	for i, v := range s.Values {
		if s.Confined || shell.KindOfCover(v) == shell.CoversPrefix {
			v += " …"
		}
		covers[i] = `"` + v + `"`
	}
	return strings.Join(covers, ", ")
}

// Approvals stores the answers of one project. It is safe for concurrent use, also
// by several processes. Each lookup reads the file, so that a revocation by
// another process takes effect at once.
type Approvals struct {
	// Dir contains the file. If it is nil, nothing can be stored, and Unavailable
	// may say why.
	Dir         *state.Dir
	Unavailable error
	// Project is the real path of the project root. Approvals of other projects
	// are ignored.
	Project string
	// Folder identifies the root folder itself, as opposed to another one at the
	// same path; "" if it cannot be identified.
	Folder string
	// Workspace is the real path of the workspace, or "" if that is the project root. Approvals of
	// other workspaces are ignored.
	Workspace string
	// Shared stores the approvals of clients of serve. If it is nil, they are in the file.
	Shared SharedApprovals
	// Siblings returns all tools of a source, so that an approval of a server or
	// of all edits can record each of them. If nil, only the approved tool is
	// recorded.
	Siblings func(source string) []*registry.Tool
	// Behind returns everything that provides a tool: command, environment, headers and URL,
	// including values that may be secret. Only its keyed hash is stored. It returns nil for a tool
	// of toolreg itself. If it fails, the tool counts as changed. If Behind is nil, the fingerprint
	// alone identifies a tool.
	Behind func(context.Context, *registry.Tool) ([]byte, error)
	// Warn is called if the file cannot be used, in which case nothing is
	// approved. It may be nil.
	Warn func(registry.Diagnostic)
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	warned sync.Once // warns of an unusable file once per run
}

type approvalFile struct {
	Version   int        `json:"version"`
	Approvals []Approval `json:"approvals"`
}

// Reasons why the file cannot be used: its content is invalid, or a newer version
// of toolreg wrote it.
var (
	errDamaged = errors.New("damaged")
	errNewer   = errors.New("it was written by a newer toolreg")
)

// parseFile decodes a file that has a version. Empty data is an empty file. If it fails, file may
// be incomplete.
func parseFile(data []byte, file any) error {
	if len(data) == 0 {
		return nil
	}
	var head struct {
		Version int `json:"version"`
	}
	if err := jsonx.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if head.Version > approvalsVersion {
		return fmt.Errorf("%w (format version %d, but this toolreg supports only %d)",
			errNewer, head.Version, approvalsVersion)
	}
	if head.Version < 1 {
		return fmt.Errorf("%w: no version", errDamaged)
	}
	if err := jsonx.Unmarshal(data, file); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// List returns the approvals of the project, or of all projects, oldest first. It fails if the file
// or the shared approvals cannot be read.
func (a *Approvals) List(ctx context.Context, all bool) ([]Approval, error) {
	out, err := a.stored(all)
	if err != nil {
		return nil, err
	}
	shared, err := a.shared(ctx, all)
	if err != nil {
		return nil, err
	}
	out = append(out, shared...)
	slices.SortStableFunc(out,
		func(x, y Approval) int { return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID)) })
	return out, nil
}

// stored returns the approvals in the file, of the project or of all projects.
func (a *Approvals) stored(all bool) ([]Approval, error) {
	if a.Dir == nil {
		return nil, nil
	}
	data, err := a.Dir.Read(approvalsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w", approvalsFile, err)
	}
	var f approvalFile
	if err := parseFile(data, &f); err != nil {
		return nil, fmt.Errorf("reading %s: %w; %s", filepath.Join(a.Dir.Path, approvalsFile), err, remedy(err))
	}
	return slices.DeleteFunc(f.Approvals, func(x Approval) bool { return !all && x.Project != a.Project }), nil
}

// remedy says what to do about a file that cannot be read.
func remedy(err error) string {
	if errors.Is(err, errNewer) {
		return "use that version, or move the file away"
	}
	return "`toolreg approvals clear`, or the next remembered answer, sets it aside"
}

// load returns the approvals that apply to the caller. If the file cannot be read, it warns and
// returns none. An error means that the shared approvals cannot be read.
func (a *Approvals) load(ctx context.Context) ([]Approval, error) {
	client, shares := caller.Name(ctx), a.Shares(ctx)
	var list []Approval
	var err error
	if shares {
		data, err := a.Shared.Read(ctx, approvalsFile)
		if err != nil {
			return nil, err
		}
		list, _ = a.sharedIn(data, false) // the next remembered answer replaces what is damaged
	} else if list, err = a.stored(false); err != nil && a.Warn != nil {
		a.warned.Do(func() {
			a.Warn(registry.Warning("approvals_unreadable", "", "remembered approvals are ignored: "+err.Error(), ""))
		})
	}
	return slices.DeleteFunc(list, func(x Approval) bool {
		return !shares && x.Folder != a.Folder || x.Workspace != a.Workspace || x.Client != client
	}), nil
}

func (a *Approvals) clock() time.Time {
	if a.Now != nil {
		return a.Now().UTC()
	}
	return time.Now().UTC()
}

// Add stores approvals. They replace earlier ones of the same scope.
func (a *Approvals) Add(ctx context.Context, approvals []Approval) error {
	for _, shared := range []bool{false, true} {
		added := slices.DeleteFunc(slices.Clone(approvals),
			func(n Approval) bool { return shared != (a.Shared != nil && n.Client != "") })
		update := a.update
		if shared {
			update = a.updateShared
		}
		if len(added) == 0 {
			continue
		}
		err := update(ctx, func(list []Approval) []Approval {
			for _, n := range added {
				list = append(slices.DeleteFunc(list, func(x Approval) bool { return x.ID == n.ID }), n)
			}
			return list
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Revoke removes the approvals, of any project, whose ids begin with one of the
// given prefixes, and returns them. Each prefix must match exactly one approval.
// If one does not, Revoke removes nothing; if it matches none, the error matches
// [registry.ErrNotFound].
func (a *Approvals) Revoke(ctx context.Context, ids ...string) ([]Approval, error) {
	list, err := a.List(ctx, true)
	if err != nil {
		return nil, err
	}
	var gone []Approval
	for _, id := range ids {
		var fits []Approval
		for _, x := range list {
			if id != "" && strings.HasPrefix(x.ID, id) {
				fits = append(fits, x)
			}
		}
		switch len(fits) {
		case 0:
			return nil, &registry.Failure{Text: fmt.Sprintf("no approval with the id %q", id),
				Help: "run toolreg approvals list to see all approvals", Kind: registry.ErrNotFound}
		case 1:
			gone = append(gone, fits[0])
		default:
			return nil, fmt.Errorf("%q matches %d approvals; give more characters of the id", id, len(fits))
		}
	}
	return gone, a.remove(ctx, func(x Approval) bool {
		return slices.ContainsFunc(gone, func(g Approval) bool { return g.ID == x.ID })
	})
}

// Clear removes the approvals of the project, or of all projects, and returns how
// many it removed. It also works on a damaged file, which it sets aside.
func (a *Approvals) Clear(ctx context.Context, all bool) (int, error) {
	n := 0
	err := a.remove(ctx, func(x Approval) bool {
		gone := all || x.Project == a.Project
		if gone {
			n++
		}
		return gone
	})
	return n, err
}

func (a *Approvals) remove(ctx context.Context, gone func(Approval) bool) error {
	without := func(list []Approval) []Approval { return slices.DeleteFunc(list, gone) }
	err := a.update(ctx, without)
	if err == nil && a.Shared != nil {
		err = a.updateShared(ctx, without)
	}
	return err
}

// noFolder is the error for storing something without a state folder.
func (a *Approvals) noFolder() error {
	if a.Unavailable != nil {
		return a.Unavailable
	}
	return fmt.Errorf("%w: no state directory", state.ErrUnavailable)
}

// update changes the file while holding its lock. It sets a damaged file aside and
// leaves a newer one alone.
func (a *Approvals) update(ctx context.Context, change func([]Approval) []Approval) error {
	if a.Dir == nil {
		return fmt.Errorf("saving approvals: %w", a.noFolder())
	}
	aside, err := a.Dir.UpdateOrSetAside(ctx, approvalsFile, func(old []byte) ([]byte, error) {
		var f approvalFile
		switch err := parseFile(old, &f); {
		case errors.Is(err, errDamaged):
			return nil, state.ErrDamaged
		case err != nil:
			return nil, err
		}
		f.Version, f.Approvals = approvalsVersion, change(f.Approvals)
		text, err := json.MarshalIndent(f, "", "  ")
		return append(text, '\n'), err
	})
	if aside != "" && a.Warn != nil {
		a.Warn(registry.Warning("approvals_set_aside", "", "the file "+approvalsFile+
			" was damaged and has been replaced; the old file is kept as "+aside, ""))
	}
	if errors.Is(err, errNewer) {
		err = fmt.Errorf("%s: %w; %s", filepath.Join(a.Dir.Path, approvalsFile), err, remedy(err))
	}
	if err != nil {
		return fmt.Errorf("saving approvals: %w", err)
	}
	return nil
}

func (x *Approval) id() string {
	parts := []string{x.Project, string(x.Kind), x.Source, x.Value}
	if x.Workspace != "" {
		parts = append(parts, "in "+x.Workspace)
	}
	if x.Client != "" {
		parts = append(parts, x.Client)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}

// Shares reports whether the approvals and questions of the caller are shared.
func (a *Approvals) Shares(ctx context.Context) bool {
	return a.Shared != nil && caller.Name(ctx) != ""
}

// shared returns the shared approvals of the project, or of all projects.
func (a *Approvals) shared(ctx context.Context, all bool) ([]Approval, error) {
	if a.Shared == nil {
		return nil, nil
	}
	data, err := a.Shared.Read(ctx, approvalsFile)
	if err != nil {
		return nil, fmt.Errorf("reading the approvals of clients: %w", err)
	}
	return a.sharedIn(data, all)
}

// sharedIn decodes the shared approvals for [Approvals.shared].
func (a *Approvals) sharedIn(data []byte, all bool) ([]Approval, error) {
	var f approvalFile
	if err := parseFile(data, &f); err != nil {
		return nil, fmt.Errorf("reading the approvals of clients in serve.store: %w", err)
	}
	return slices.DeleteFunc(f.Approvals, func(x Approval) bool { return !all && x.Project != a.Project }), nil
}

// updateShared changes the shared approvals. It replaces damaged data, but not data of a newer
// version.
func (a *Approvals) updateShared(ctx context.Context, change func([]Approval) []Approval) error {
	err := a.Shared.Update(ctx, approvalsFile, func(old []byte) ([]byte, error) {
		var f approvalFile
		if err := parseFile(old, &f); errors.Is(err, errNewer) {
			return nil, err
		}
		f.Version, f.Approvals = approvalsVersion, change(f.Approvals)
		data, err := json.Marshal(f)
		if len(data) > maxShared {
			return nil, errors.New("there are too many; `toolreg approvals revoke` makes room")
		}
		return data, err
	})
	if err != nil {
		return fmt.Errorf("saving the approvals of clients: %w", err)
	}
	return nil
}
