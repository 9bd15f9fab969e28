package approvalscmd

import (
	"maps"
	"slices"
	"time"

	"github.com/toolreg/toolreg/internal/policy"
)

// Approval is the JSON form of an approval, without the state of the tool that it is tied to.
type Approval struct {
	ID      string           `json:"id"`
	Kind    policy.ScopeKind `json:"kind"`
	Value   string           `json:"value,omitempty"` // command, host or folder that it is limited to
	Source  string           `json:"source"`
	Tools   []string         `json:"tools"`   // tools that it covers, by their sources' own names
	Project string           `json:"project"` // project root
	// Workspace is the folder that it is limited to, if that is not the project root.
	Workspace string    `json:"workspace,omitempty"`
	Client    string    `json:"client,omitempty"`   // client of serve whose user answered
	Created   time.Time `json:"created"`            // when it was given
	Confined  bool      `json:"confined,omitempty"` // the commands run in the sandbox
}

// NewApproval converts an approval for JSON.
func NewApproval(x policy.Approval) Approval {
	return Approval{x.ID, x.Kind, x.Value, x.Source, slices.Sorted(maps.Keys(x.Tools)), x.Project, x.Workspace, x.Client, x.Created, x.Confined}
}
