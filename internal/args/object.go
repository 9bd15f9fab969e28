package args

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/text"
)

// parent returns the object that contains the last key of path. It creates missing
// objects.
func parent(root *jsonx.Value, arg string, path []string) (*jsonx.Value, error) {
	if slices.Contains(path, "") {
		return nil, &Error{Arg: arg, Message: fmt.Sprintf("the key %s has an empty part", text.Quote(strings.Join(path, ".")))}
	}
	for _, key := range path[:len(path)-1] {
		next := root.Get(key)
		switch {
		case next == nil:
			next = jsonx.NewObject()
			root.Set(key, next)
		case next.Is(jsonx.Array):
			return nil, &Error{Arg: arg, Message: fmt.Sprintf("%s is a list, so its members cannot be set", text.Quote(key))}
		case !next.Is(jsonx.Object):
			return nil, &Error{Arg: arg, Message: fmt.Sprintf("%s is not an object, so its members cannot be set", text.Quote(key))}
		}
		root = next
	}
	return root, nil
}

// set sets the value at a path.
func set(root *jsonx.Value, arg string, path []string, value *jsonx.Value) error {
	at, err := parent(root, arg, path)
	if err == nil {
		at.Set(path[len(path)-1], value)
	}
	return err
}
