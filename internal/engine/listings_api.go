package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/openapi"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings"
)

// cachedAPI is the record of one API. It implements [openapi.Memory].
type cachedAPI struct {
	*listingStore
	api settings.API
	key keyOnce
}

// OfAPI returns the cached record of an API.
func (l *listingStore) OfAPI(api settings.API) *cachedAPI {
	return &cachedAPI{listingStore: l, api: api}
}

// source returns the source of the record, whose key has all that the operations depend on
// besides the document: the settings, and the credentials with which it is got.
func (l *cachedAPI) source(ctx context.Context) (cache.Source, error) {
	key, err := l.key.get(func() (string, error) {
		a, err := l.still.API(ctx, l.api)
		if err != nil {
			return "", err
		}
		k := cache.NewKey("openapi", l.version, l.programs.set.ProjectRoot, a.Name, a.Spec, a.URL, fmt.Sprint(l.programs.set.Limits))
		k.Add(pairValues(a.Headers)...)
		k.Add(authValues(a)...)
		return k.String(), nil
	})
	return cache.Source{Name: registry.APIPrefix + l.api.Name, Key: key}, err
}

// Load implements [openapi.Memory].
func (l *cachedAPI) Load(ctx context.Context) (known openapi.Known, err error) {
	source, err := l.source(ctx)
	if err != nil {
		return known, nil // expanding the settings fails with a better message
	}
	limit := l.api.ConnectTimeout.String()
	record, _ := l.Records.Load(source, map[cache.Kind]string{kindOperations: "", cache.Failure: limit, cache.Listing: ""}) // operations may be known without a listing
	known.Failure = failureOf(record)
	if e := record[kindOperations]; len(e.Parts) == 1 && json.Unmarshal(e.Facts, &known.Facts) == nil {
		known.Operations, known.Asked = e.Parts[0], e.Stored
		if e, ok := record[cache.Listing]; ok && l.mode == cache.Fresh {
			known.Asked, known.Fresh = e.Stored, l.api.IsRemote()
		}
	}
	if mayNot := l.isStill || l.mode == cache.Offline && l.api.IsRemote(); mayNot {
		known.Fresh = true
		if known.Operations == nil {
			return known, cache.ErrNothingKept
		}
	}
	if known.Fresh {
		l.Records.Serve(source.Name, known.Asked)
	}
	return known, nil
}

// Save implements [openapi.Memory].
func (l *cachedAPI) Save(ctx context.Context, known openapi.Known) {
	source, err := l.source(ctx)
	if err != nil {
		return
	}
	record := cache.Record{cache.Failure: failureEntry(l.api.ConnectTimeout.String(), known.Failure)}
	if known.Operations != nil {
		facts, err := json.Marshal(known.Facts)
		if err != nil {
			return
		}
		record[kindOperations] = cache.Entry{Facts: facts, Parts: [][]byte{known.Operations}}
		record[cache.Listing] = cache.Entry{Facts: json.RawMessage("true")}
	}
	l.Records.Save(source, record)
}

// Forget removes the record from the cache.
func (l *cachedAPI) Forget(ctx context.Context) error {
	source, err := l.source(ctx)
	if err != nil {
		return err
	}
	return l.Records.Drop(ctx, source)
}
