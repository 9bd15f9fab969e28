package engine

import (
	"context"
	"errors"

	"github.com/toolreg/toolreg/internal/cache"
	"github.com/toolreg/toolreg/internal/discover"
	"github.com/toolreg/toolreg/internal/expand"
)

// outputListing is the cached output of a program that declares tools. It
// implements discover.Outputs.
type outputListing struct {
	*listingStore
	source string
	tree   string // folder all of whose files are part of the key; "" = none
	once   keyOnce
}

// OfOutput returns the cache for the output of a program that declares tools. tree is a
// folder whose files all affect the output; "" if there is none.
func (l *listingStore) OfOutput(source, tree string) discover.Outputs {
	return &outputListing{listingStore: l, source: source, tree: tree}
}

func (l *outputListing) key(i discover.Invocation) (string, error) {
	return l.once.get(func() (string, error) {
		k := cache.NewKey("output", l.version, l.source, l.programs.set.ProjectRoot, string(i.Stdin))
		var given []string
		for _, p := range l.programs.set.Env {
			value, _ := expand.Find(i.Env, p.Name)
			given = append(given, p.Name+"="+value)
		}
		p := cache.Program{Root: l.programs.set.ProjectRoot, Dir: i.Dir, Argv: i.Argv, Env: i.Env, Given: given}
		err := errors.Join(k.AddProgram(p), k.AddFiles(p))
		if err == nil && l.tree != "" {
			err = k.AddTree(l.tree)
		}
		return k.String(), err
	})
}

// Load implements [discover.Outputs].
func (l *outputListing) Load(_ context.Context, i discover.Invocation) (stdout []byte, ok bool, err error) {
	if !l.Records.Active(cache.Listing) {
		return nil, false, nil
	}
	key, err := l.key(i)
	if err != nil {
		return nil, false, l.noKey(err)
	}
	record, err := l.Records.Load(cache.Source{Name: l.source, Key: key}, map[cache.Kind]string{cache.Listing: "", cache.Failure: l.limit()})
	if err != nil {
		return nil, false, err
	}
	if e := record[cache.Listing]; len(e.Parts) == 1 {
		l.Records.Serve(l.source, e.Stored)
		return e.Parts[0], true, nil
	}
	return nil, false, failureOf(record)
}

// limit is the key of failures: a program that exceeded one time limit may succeed within
// another.
func (l *outputListing) limit() string { return l.programs.set.DiscoveryTimeout.String() }

// Save implements [discover.Outputs].
func (l *outputListing) Save(_ context.Context, i discover.Invocation, stdout []byte, failure error) {
	if !l.Records.Active(cache.Listing) {
		return
	}
	key, err := l.key(i)
	if err != nil {
		return
	}
	record := cache.Record{cache.Failure: failureEntry(l.limit(), failure)}
	if failure == nil {
		record[cache.Listing] = cache.Entry{Parts: [][]byte{stdout}}
	}
	l.Records.Save(cache.Source{Name: l.source, Key: key}, record)
}
