package listings

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/state"
)

// ofFailures returns how long failures are cached. They are cached only if
// listings are.
func (o *Options) ofFailures(dir func() (*state.Dir, error)) cache.Options {
	out := cache.Options{Dir: dir, Kind: "failure", Mode: o.Mode, Warn: o.damaged}
	if o.Settings.DiscoveryTTL > 0 {
		out.TTL = o.Settings.FailuresTTL
	}
	if out.TTL == 0 || out.Mode == cache.Offline {
		out.Mode = cache.Live
	}
	return out
}

// ForgetFailure lets a source be asked again even if it failed recently.
func (l *Store) ForgetFailure(source string) { l.failures.Expire(source) }

// keptFailure is the error of a source in an earlier run.
type keptFailure struct{ Message string }

func (e *keptFailure) Error() string { return e.Message }
func (e *keptFailure) Unwrap() error { return registry.ErrSourceFailed }

// loadFailure returns the recent error of a source, or nil if the source should
// be queried.
func (l *Store) loadFailure(source, key string) error {
	e, ok, _ := l.failures.Load(source, key, nil) // Load never fails in these modes
	failure := &keptFailure{}
	if !ok || json.Unmarshal(e.Facts, failure) != nil {
		return nil
	}
	return failure
}

// saveFailure caches the error of a source; nil removes the cached one.
func (l *Store) saveFailure(ctx context.Context, source, key string, failure error) {
	if failure == nil {
		if err := l.failures.Drop(ctx, key); err != nil {
			l.opts.Log.Debug("a failure is not dropped", "source", source, "err", err)
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
