package gemini

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/toolreg/toolreg/internal/jsonx"
)

// Respell rewrites a document in place as JavaScript writes what it has read:
// numbers as the doubles that they are, strings with as few escapes as can be,
// and keys that are indexes of a list in front, in their order.
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
			n.Members[i].Token = jsonx.Quote(n.Members[i].Name)
			Respell(n.Members[i].Value)
		}
		slices.SortStableFunc(n.Members, func(a, b jsonx.Member) int { return cmp.Compare(place(a.Name), place(b.Name)) })
	}
}

// place is where JavaScript puts a key among the others: an index by its number,
// every other key behind all of them.
func place(key string) uint64 {
	const behind = 1<<32 - 1
	i, err := strconv.ParseUint(key, 10, 64)
	if err != nil || i >= behind || strconv.FormatUint(i, 10) != key {
		return behind
	}
	return i
}
