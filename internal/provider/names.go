package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

// nameRule is a provider's rule for names of tools: ASCII letters, digits,
// underscores and the extra characters.
type nameRule struct {
	extra       string
	letterFirst bool // must begin with a letter or an underscore
	max         int  // maximum length in characters
	reserved    func(string) bool
}

// assign returns the declared name of each registered name, or "" for an empty or
// duplicate one.
func (r nameRule) assign(names []string) []string {
	out := make([]string, len(names))
	taken := make(map[string]bool, len(names))
	var changed []int
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		if out[i] = r.fit(name); out[i] == name {
			taken[name] = true
		} else {
			changed = append(changed, i)
		}
	}
	if len(changed) > 0 {
		r.assignChanged(names, changed, taken, out)
	}
	return out
}

// assignChanged assigns the names that have to be changed. out has the cleaned
// names, and taken the names that are used unchanged.
func (r nameRule) assignChanged(names []string, changed []int, taken map[string]bool, out []string) {
	wanted := make(map[string]int, len(changed))
	for _, i := range changed {
		wanted[out[i]]++
	}
	var contested []int
	for _, i := range changed {
		if wanted[out[i]] > 1 || taken[out[i]] {
			contested = append(contested, i)
		}
	}
	for _, i := range changed {
		taken[out[i]] = true
	}
	// Assign in alphabetical order, so that the result does not depend on the order
	// of names.
	slices.SortStableFunc(contested, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	for _, i := range contested {
		out[i] = r.distinct(out[i], names[i], taken)
		taken[out[i]] = true
	}
}

// distinct appends as much of the hash of the registered name as necessary to
// make the declared name unique.
func (r nameRule) distinct(clean, name string, taken map[string]bool) string {
	sum := sha256.Sum256([]byte(name))
	digits := hex.EncodeToString(sum[:])
	for n := 6; ; n++ {
		// The longest suffix is the whole hash, which is unique.
		n = min(n, r.max-2, len(digits))
		out := clean[:min(len(clean), r.max-n-1)] + "_" + digits[:n]
		if !taken[out] || n == min(r.max-2, len(digits)) {
			return out
		}
	}
}

// fit converts name so that the rule accepts it. A valid name is unchanged.
func (r nameRule) fit(name string) string {
	out := r.clean(name)
	if r.reserved != nil && r.reserved(out) {
		out += "_"
	}
	if len(out) > r.max {
		out = r.distinct(out, name, nil)
	}
	return out
}

// clean replaces each invalid character with an underscore. A valid name is unchanged.
func (r nameRule) clean(name string) string {
	out := text.Plain(name, "_"+r.extra)
	if r.letterFirst && !isLetter(out[0]) {
		return "_" + out
	}
	return out
}

// isLetter reports whether c is a letter or an underscore, which all providers
// treat as a letter.
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
