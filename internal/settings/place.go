package settings

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// PlaceState is what happened to a file that may contain settings.
type PlaceState string

// The states of a [Place].
const (
	PlaceRead    PlaceState = "read"    // its settings apply
	PlaceAbsent  PlaceState = "absent"  // it does not exist
	PlaceSkipped PlaceState = "skipped" // it exists and is ignored
	PlaceRefused PlaceState = "refused" // it exists and cannot be used
)

// Place is a file, or a pattern of names, where toolreg looked for settings.
type Place struct {
	Scope  Scope      `json:"scope"`
	Path   string     `json:"path"` // absolute
	State  PlaceState `json:"state"`
	Reason string     `json:"reason,omitempty"` // why it is ignored
}

// Places reports where [Load] looks for settings and what it finds there, lowest
// precedence first, whether or not the files can be read. The error is an
// [*Error] for a project root that cannot be used.
func Places(o Options) ([]Place, error) {
	l := newLoader(o)
	if err := l.readAll(); err != nil {
		return nil, err
	}
	l.imports(merge(l.index, l.layers))
	return l.allPlaces, nil
}

// place records what happened to a file.
func (l *loader) place(scope Scope, path string, state PlaceState, reason string) {
	place := Place{scope, path, state, reason}
	if !slices.Contains(l.allPlaces, place) { // a file of a program may be read in two parts
		l.allPlaces = append(l.allPlaces, place)
	}
}

// placeLayer records that a file was read, or the first mistake in it.
func (l *loader) placeLayer(layer *layer) {
	if len(layer.problems) == 0 {
		l.place(layer.scope, layer.file, PlaceRead, "")
		return
	}
	p := layer.problems[0]
	l.place(layer.scope, layer.file, PlaceRefused, fmt.Sprintf("line %d: %s", p.Line, p.Message))
}

// placeFolder records that a folder has no settings file, or why none applies.
func (l *loader) placeFolder(scope Scope, dir string, state PlaceState, reason string) {
	if dir != "" {
		l.place(scope, filepath.Join(dir, "settings.{yaml,yml,json}"), state, reason)
	}
}

// placeProject records what happened to the project's own file.
func (l *loader) placeProject(dir, path string) {
	p := l.project
	switch {
	case path == "" && p != nil && p.Obstacle != "":
		l.placeFolder(ScopeProject, dir, PlaceRefused, p.Obstacle)
	case path == "":
		l.placeFolder(ScopeProject, dir, PlaceAbsent, "")
	case p == nil || p.Trusted:
		l.place(ScopeProject, path, PlaceRead, "")
	case p.Obstacle != "":
		l.place(ScopeProject, path, PlaceRefused, p.Obstacle)
	case !p.Granted.IsZero():
		l.place(ScopeProject, path, PlaceSkipped, "changed since it was trusted: "+changedNames(p.Changes))
	default:
		l.place(ScopeProject, path, PlaceSkipped, notTrusted)
	}
}

// isBelow reports whether a key is a setting or inside the group of that name.
func isBelow(key, group string) bool { return key == group || strings.HasPrefix(key, group+".") }
