package tree

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

var errCycle = errors.New("its references run in a circle")

// maxRefChain bounds how many references may follow one another.
const MaxRefChain = 64

// resolver follows references within one schema ("#", "#/…"; nothing else).
// It remembers what it looked up, so that a schema with thousands of
// definitions and references costs no more than its size.
type Resolver struct {
	Root *Node
	keys map[*Node]map[string]*Node // of large objects
}

func NewResolver(root *Node) *Resolver { return &Resolver{Root: root} }

// resolve follows the $ref of n, and those of its targets, to a node without.
func (r *Resolver) Resolve(n *Node) (*Node, error) {
	for range MaxRefChain {
		ref := n.Get("$ref")
		if ref == nil || ref.Kind != String {
			return n, nil
		}
		target := r.Lookup(ref.Text())
		if target == nil {
			return nil, fmt.Errorf("its reference %.80q leads nowhere within the schema", ref.Text())
		}
		n = target
	}
	return nil, errCycle
}

// lookup returns what a local reference points at, nil where that is nothing.
func (r *Resolver) Lookup(ref string) *Node {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if p, err := url.PathUnescape(pointer); err == nil {
		pointer = p
	}
	if pointer == "" {
		return r.Root
	}
	if pointer[0] != '/' {
		return nil
	}
	n := r.Root
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch {
		case n == nil:
			return nil
		case n.Kind == Array:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(n.Items) {
				return nil
			}
			n = n.Items[i]
		default:
			n = r.Get(n, step)
		}
	}
	return n
}

// get is node.get, by a map where the object is large.
func (r *Resolver) Get(n *Node, name string) *Node {
	if len(n.Members) <= maxScan {
		return n.Get(name)
	}
	keys := r.keys[n]
	if keys == nil {
		keys = ByName(n)
		if r.keys == nil {
			r.keys = map[*Node]map[string]*Node{}
		}
		r.keys[n] = keys
	}
	return keys[name]
}

func ByName(n *Node) map[string]*Node {
	keys := make(map[string]*Node, len(n.Members))
	for i := range n.Members {
		keys[n.Members[i].Name] = n.Members[i].Value
	}
	return keys
}
