package listings

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
	*Store
	source string
	tree   string // folder all of whose files are part of the key; "" = none
	once   keyOnce
}

// OfOutput returns what is cached of a program that declares tools; tree is a
// folder all of whose files its output depends on, "" for none.
func (l *Store) OfOutput(source, tree string) discover.Outputs {
	return &outputListing{Store: l, source: source, tree: tree}
}

func (l *outputListing) key(i discover.Invocation) (string, error) {
	return l.once.get(func() (string, error) {
		k := cache.NewKey("output", l.opts.Version, l.source, l.opts.Settings.ProjectRoot, string(i.Stdin))
		var given []string
		for _, p := range l.opts.Settings.Env {
			value, _ := expand.Find(i.Env, p.Name)
			given = append(given, p.Name+"="+value)
		}
		p := cache.Program{Root: l.opts.Settings.ProjectRoot, Dir: i.Dir, Argv: i.Argv, Env: i.Env, Given: given}
		err := errors.Join(k.AddProgram(p), k.AddFiles(p))
		if err == nil && l.tree != "" {
			err = k.AddTree(l.tree)
		}
		return k.String(), err
	})
}

// Load implements [discover.Outputs].
func (l *outputListing) Load(_ context.Context, i discover.Invocation) (stdout []byte, ok bool, err error) {
	if !l.Sources.Active() {
		return nil, false, nil
	}
	key, err := l.key(i)
	if err != nil {
		return nil, false, l.noKey(l.source, err)
	}
	e, ok, err := l.Sources.Load(l.source, key, func(e cache.Entry) bool { return len(e.Parts) == 1 })
	switch {
	case err != nil:
		return nil, false, err
	case ok && len(e.Parts) == 1:
		return e.Parts[0], true, nil
	}
	return nil, false, l.loadFailure(l.source, failureKey(key, l.opts.Settings.DiscoveryTimeout))
}

// Save implements [discover.Outputs].
func (l *outputListing) Save(ctx context.Context, i discover.Invocation, stdout []byte, failure error) {
	if !l.Sources.Active() {
		return
	}
	key, err := l.key(i)
	if err != nil {
		return
	}
	if failure == nil {
		l.Sources.Save(l.source, key, cache.Entry{Parts: [][]byte{stdout}})
	}
	if l.failures.Active() {
		l.saveFailure(ctx, l.source, failureKey(key, l.opts.Settings.DiscoveryTimeout), failure)
	}
}
