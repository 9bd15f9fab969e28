package settings

import (
	"github.com/toolreg/toolreg/internal/settings/decode"
	"github.com/toolreg/toolreg/internal/settings/layers"
	"github.com/toolreg/toolreg/internal/settings/merge"
)

// Scope is where a value came from, in order of precedence.
type Scope = layers.Scope

// The scopes, lowest precedence first.
const (
	ScopeDefault = layers.ScopeDefault
	ScopeSystem  = layers.ScopeSystem
	ScopeUser    = layers.ScopeUser
	ScopeProject = layers.ScopeProject
	ScopeFile    = layers.ScopeFile
	ScopeEnv     = layers.ScopeEnv
	ScopeFlag    = layers.ScopeFlag
)

// Origin is where a value was set. The zero value is the built-in default.
type Origin = layers.Origin

// Command is an argv with its origin.
type Command = decode.Command

// Pair is one entry of an env or headers map.
type Pair = decode.Pair

// Entry is one element of a list setting with its own origin.
type Entry = layers.Entry

// List is a list setting.
type List = layers.List

// Named is one entry of a setting that merges by name.
type Named = merge.Named
