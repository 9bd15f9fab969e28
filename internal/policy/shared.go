package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolreg/toolreg/internal/caller"
)

// SharedApprovals keeps the approvals of the clients of several processes that serve the same
// project, and questions about their calls. Those of the person at the command line stay in the
// state folder. The names of files are those that they would have there.
type SharedApprovals interface {
	QuestionFiles
	// Key returns the key for hashes that all the processes compare.
	Key() []byte
}

// maxShared is about the maximum size in bytes of the approvals that are shared, and of the questions.
const maxShared = 4 << 20

// Shares reports whether the caller's approvals and questions are the shared ones.
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

// sharedIn is shared for what was read.
func (a *Approvals) sharedIn(data []byte, all bool) ([]Approval, error) {
	var f approvalFile
	if err := parseFile(data, &f); err != nil {
		return nil, fmt.Errorf("reading the approvals of clients in serve.store: %w", err)
	}
	return slices.DeleteFunc(f.Approvals, func(x Approval) bool { return !all && x.Project != a.Project }), nil
}

// updateShared changes the shared approvals. What cannot be read is replaced.
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
