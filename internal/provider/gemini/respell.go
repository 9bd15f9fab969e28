package gemini

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Respell rewrites a document in place as JavaScript would write it after parsing
// it: numbers as doubles, strings with as few escapes as possible, and keys that
// are array indexes first, in order.
func Respell(n *jsonx.Value) {
	switch n.Kind {
	case jsonx.Number:
		n.Token = scriptNumber(n.Token)
	case jsonx.String:
		n.Token = jsonx.Quote(n.Text())
	case jsonx.Array:
		for _, item := range n.Items {
			Respell(item)
		}
	case jsonx.Object:
		for i := range n.Members {
			Respell(n.Members[i].Value)
		}
		slices.SortStableFunc(n.Members, func(a, b jsonx.Member) int { return cmp.Compare(place(a.Name), place(b.Name)) })
	}
}

// place returns the position of a key in JavaScript's order: indexes by number,
// before all other keys.
func place(key string) uint64 {
	const behind = 1<<32 - 1
	i, err := strconv.ParseUint(key, 10, 64)
	if err != nil || i >= behind || strconv.FormatUint(i, 10) != key {
		return behind
	}
	return i
}
