package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// failuresOptions returns how long failures are cached. They are cached only if
// listings are.
func failuresOptions(r *run, dir func() (*state.Dir, error)) cache.Options {
	o := cache.Options{Dir: dir, Kind: "failure", Mode: r.opts.Cache, Warn: r.protocolsDamaged}
	if r.set.DiscoveryTTL > 0 {
		o.TTL = r.set.FailuresTTL
	}
	if o.TTL == 0 || o.Mode == cache.Offline {
		o.Mode = cache.Live
	}
	return o
}

// keptFailure is the error of a source in an earlier run.
type keptFailure struct{ Message string }

func (e *keptFailure) Error() string { return e.Message }
func (e *keptFailure) Unwrap() error { return registry.ErrSourceFailed }

// loadFailure returns the recent error of a source, or nil if the source should
// be queried.
func (l *listings) loadFailure(source, key string) error {
	e, ok, _ := l.failures.Load(source, key, nil) // Load never fails in these modes
	failure := &keptFailure{}
	if !ok || json.Unmarshal(e.Facts, failure) != nil {
		return nil
	}
	return failure
}

// saveFailure caches the error of a source; nil removes the cached one.
func (l *listings) saveFailure(ctx context.Context, source, key string, failure error) {
	if failure == nil {
		if err := l.failures.Drop(ctx, key); err != nil {
			l.deps.Log.Debug("a failure is not dropped", "source", source, "err", err)
		}
		return
	}
	if facts, err := json.Marshal(keptFailure{failure.Error()}); err == nil {
		l.failures.Save(source, key, cache.Entry{Facts: facts})
	}
}

// failureKey returns the cache key of a failure, which includes the time limit
// of the source.
func failureKey(key string, limit time.Duration) string {
	k := cache.NewKey("failure", key, limit.String())
	return k.String()
}
