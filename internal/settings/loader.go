package settings

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/toolreg/toolreg/internal/expand"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/settings/document"
	"github.com/toolreg/toolreg/internal/settings/imports"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/table"
	"github.com/toolreg/toolreg/internal/trust"
)

// Options determines where [Load] looks. The zero value reads the system's settings,
// and reports those of the current directory's project without applying them.
type Options struct {
	Dir          string              // working directory, absolute; "" means the process's own
	Root         string              // --root; "" means found from Dir
	Files        []string            // --settings, in order; naming a file is consent to that file only
	Piped        map[string][]byte   // contents of those Files that can be read only once, by name
	NoProject    bool                // --no-project-settings
	NoUser       bool                // --no-user-settings
	TrustProject bool                // --trust-project: consent for this run
	Environ      []string            // "K=V": HOME and XDG_* determine where to look
	Flags        *pflag.FlagSet      // the global flags, see [Globals]; may be nil
	SystemDir    string              // for tests; empty means /etc/toolreg
	Trust        *trust.Store        // stored grants; nil means none
	Import       imports.Importer    // finds the files of other programs; nil means the setting imports has no effect
	View         bool                // --import alone answers for that program: see [Settings.View]
	Builtin      func(string) string // name of the built-in tool with a name or an alias, or ""; nil means there are none
	Proposed     *Proposed           // used instead of the project's own file, or of one of Files; nil means none
}

// Alone returns the options for reading a settings file as if it had this content,
// without the user's and the project's files.
func (o Options) Alone(file string, data []byte) Options {
	o.Files, o.NoUser, o.NoProject, o.Proposed = []string{file}, true, true, &Proposed{file, data}
	return o
}

// Proposed is a settings file with proposed content.
type Proposed struct {
	Path string // absolute
	Data []byte
}

// CodeProjectUntrusted is the code of the diagnostic that reports that the settings
// of the project are ignored because they are not trusted.
const CodeProjectUntrusted = "project_untrusted"

// loader holds the state of a call of Load.
type loader struct {
	index     *table.Index
	scalars   *scalars
	env       expand.Environ
	opts      Options
	globals   Globals
	root      string
	layers    []*layers.Layer // the layers that apply, lowest first
	named     []*layers.Layer // the layers of --settings
	real      []string        // their paths with links resolved, except for pipes
	project   *Project
	problems  []document.Problem
	diags     []registry.Diagnostic
	allPlaces []Place

	serverFiles serverFiles

	imported       []*imports.Layer // of other programs' files in the project, in order
	mine           []*layers.Layer  // files of other programs that are the person's
	documents      document.Foreign // caches documents of both
	switches       imports.Switches // of the program whose files are being added
	faulty         []Named          // of that program, the servers that cannot be imported
	withoutImports bool             // the project is trusted except for imported files
	importPaths    []string         // where to look for other programs' files

	importedFrom map[string]string // the program of each file whose servers were imported
	found        map[string]int    // the number of servers in the files of each program
}

func newLoader(o Options) *loader {
	l := &loader{index: table.NewIndex(), scalars: newScalars(o.Flags), env: expand.NewEnviron(o.Environ),
		serverFiles: serverFiles{}, importedFrom: map[string]string{}, found: map[string]int{}}
	l.globals = l.scalars.globals()
	g := l.globals // flags and variables
	o.Root, o.SystemDir = cmp.Or(o.Root, g.Root), cmp.Or(o.SystemDir, systemFolder(l.env))
	if o.Builtin == nil {
		o.Builtin = func(string) string { return "" }
	}
	if len(o.Files) == 0 {
		o.Files = g.Files
	}
	o.NoProject, o.NoUser, o.TrustProject = o.NoProject || g.NoProject, o.NoUser || g.NoUser,
		o.TrustProject || g.TrustProject
	l.opts = o
	return l
}

func (l *loader) absolute(path string) string {
	return filepath.Clean(expand.From(l.opts.Dir, path))
}

// refused records a file that would apply but cannot be used.
func (l *loader) refused(scope Scope, p document.Problem) {
	l.problems = append(l.problems, p)
	l.place(scope, p.File, PlaceRefused, p.Message)
}

func (l *loader) count(layer *layers.Layer) {
	l.layers = append(l.layers, layer)
	l.serverFiles.add(layer)
	l.problems = append(l.problems, layer.Problems...)
	l.diags = append(l.diags, layer.Unknown...)
}

func (l *loader) warn(code, message, hint string) {
	l.diags = append(l.diags, registry.Warning(code, "", message, hint))
}

// place records what happened to a file.
func (l *loader) place(scope Scope, path string, state PlaceState, reason string) {
	place := Place{scope, path, state, reason}
	if !slices.Contains(l.allPlaces, place) { // a file of a program may be read in two parts
		l.allPlaces = append(l.allPlaces, place)
	}
}

// placeLayer records that a file was read, or the first mistake in it.
func (l *loader) placeLayer(layer *layers.Layer) {
	if len(layer.Problems) == 0 {
		l.place(layer.Scope, layer.File, PlaceRead, "")
		return
	}
	p := layer.Problems[0]
	l.place(layer.Scope, layer.File, PlaceRefused, fmt.Sprintf("line %d: %s", p.Line, p.Message))
}

// placeFolder records that a folder has no settings file, or why none applies.
func (l *loader) placeFolder(scope Scope, dir string, state PlaceState, reason string) {
	if dir != "" {
		l.place(scope, filepath.Join(dir, "settings.{yaml,yml,json}"), state, reason)
	}
}
