package script

import (
	"context"
	"errors"
	"testing"
	"time"
)

// What an engine says of its end counts only if it can know why it ends.
func TestCause(t *testing.T) {
	stopped := errors.New("stopped")
	for name, tt := range map[string]struct {
		limit          string
		over, grown    bool
		stopped        bool
		want           string
		wantTheStopped bool
	}{
		"time":                {limit: LimitTimeout, over: true, want: LimitTimeout},
		"time, and memory":    {limit: LimitTimeout, over: true, grown: true, want: LimitTimeout},
		"memory":              {limit: LimitTimeout, grown: true, want: LimitMemory},
		"the caller":          {limit: LimitTimeout, stopped: true, wantTheStopped: true},
		"another limit":       {limit: "steps", grown: true, want: "steps"},
		"another, and caller": {limit: "steps", stopped: true, want: "steps"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tt.stopped {
				cancel(stopped)
			}
			r := &running{Script: &Script{Clock: &Clock{}}}
			if tt.over {
				over := make(chan struct{})
				r.Clock.start(time.Nanosecond, func() { close(over) })
				<-over
			}
			r.grown.Store(tt.grown)
			err := r.cause(ctx, &Failure{Kind: KindLimit, Limit: tt.limit})
			failure, _ := errors.AsType[*Failure](err)
			if errors.Is(err, stopped) != tt.wantTheStopped || !tt.wantTheStopped && (failure == nil || failure.Limit != tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}
