package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/exec"
	"github.com/toolreg/toolreg/internal/policy"
	"github.com/toolreg/toolreg/internal/settings"
	"github.com/toolreg/toolreg/internal/store"
)

// takeShared counts a call of a client in the store, see [callLimits.count]. If the store is
// away, the call is denied.
func takeShared(ctx context.Context, s *store.Store, tool, name string, limits []settings.CallLimit) error {
	var spans []store.Span
	var of []settings.CallLimit // each span's
	for _, l := range limits {
		span := store.Span{ID: strings.Join([]string{name, l.Client, l.Group, l.Tool, strconv.Itoa(l.Rank)}, "\x00"), Most: l.Calls, Per: l.Per}
		switch i := slices.IndexFunc(spans, func(other store.Span) bool { return other.ID == span.ID }); {
		case i < 0:
			spans, of = append(spans, span), append(of, l)
		case span.Most < spans[i].Most: // two scopes may have the same limit
			spans[i], of[i] = span, l
		}
	}
	if len(spans) == 0 {
		return nil
	}
	full, left, err := s.Count(ctx, spans)
	switch _, away := errors.AsType[*store.AwayError](err); {
	case away:
		return &exec.Denied{Tool: tool, Reason: "the number of calls is limited, and " + err.Error(), Origin: of[0].Origin.String(), Later: true}
	case err != nil:
		return err
	case full < 0:
		return nil
	}
	return &exec.LimitedError{
		Tool: tool, Calls: of[full].Calls, Per: of[full].Per,
		Again: max(left.Round(time.Second), time.Second), Origin: of[full].Origin.String(),
	}
}

// sharedApprovals keeps the approvals of clients, and questions about their calls, in a store.
type sharedApprovals struct{ store *store.Store }

const (
	// approvalsTime is how long approvals are kept after their last change.
	approvalsTime = 90 * 24 * time.Hour
	// updates is how often a change is tried that others get ahead of.
	updates = 100
)

// storedAs returns the kind and the id in the store of a file, and how long it is kept.
func storedAs(file string) (kind, id string, ttl time.Duration) {
	if kind, id, ok := strings.Cut(file, "/"); ok {
		return kind, id, policy.QuestionLifetime
	}
	return strings.TrimSuffix(file, ".json"), "", approvalsTime
}

// Read implements policy.SharedApprovals.
func (a sharedApprovals) Read(ctx context.Context, file string) ([]byte, error) {
	kind, id, _ := storedAs(file)
	v, err := a.store.Get(ctx, kind, id)
	return v.Data, err
}

// Update implements policy.SharedApprovals. In place of a file that is removed, an empty one is
// stored for a minute, because only values can be replaced if they are unchanged.
func (a sharedApprovals) Update(ctx context.Context, file string, change func([]byte) ([]byte, error)) error {
	kind, id, ttl := storedAs(file)
	now, err := a.store.Get(ctx, kind, id)
	for range updates {
		if err != nil {
			return err
		}
		data, changeErr := change(now.Data)
		if changeErr != nil {
			return changeErr
		}
		if data == nil && len(now.Data) == 0 {
			return nil
		}
		lasts := ttl
		if data == nil {
			lasts = time.Minute
		}
		var done bool
		if now, done, err = a.store.Swap(ctx, kind, id, now, data, lasts); done {
			return nil
		}
	}
	return errors.New("they change too often")
}

// Each implements policy.SharedApprovals.
func (a sharedApprovals) Each(ctx context.Context, folder string, use func([]byte, func(context.Context) error) error) error {
	return a.store.Each(ctx, folder, use)
}

// Key implements policy.SharedApprovals.
func (a sharedApprovals) Key() []byte { return a.store.Derive("hashes") }
