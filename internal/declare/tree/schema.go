package tree

import "strings"

// eachSchema calls f for every schema directly within n, whatever keyword
// holds it. Booleans are left out.
func EachSchema(n *Node, f func(*Node)) {
	visit := func(v *Node) {
		if v != nil && v.Kind == Object {
			f(v)
		}
	}
	for i := range n.Members {
		v := n.Members[i].Value
		switch n.Members[i].Name {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			for j := range v.Members {
				visit(v.Members[j].Value)
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for _, item := range v.Items {
				visit(item)
			}
		case "items":
			visit(v)
			for _, item := range v.Items {
				visit(item)
			}
		case "additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems",
			"not", "if", "then", "else", "contains", "propertyNames":
			visit(v)
		}
	}
}

// hasType reports whether the type keyword of n names t, alone or in a list.
func HasType(n *Node, t string) bool {
	typ := n.Get("type")
	if typ == nil {
		return false
	}
	if typ.Kind != Array {
		return typ.Is(t)
	}
	for _, v := range typ.Items {
		if v.Is(t) {
			return true
		}
	}
	return false
}

func HoldsNull(items []*Node) bool {
	for _, v := range items {
		if v.Kind == Null {
			return true
		}
	}
	return false
}

func NamesIn(list *Node) map[string]bool {
	if list == nil {
		return nil
	}
	names := make(map[string]bool, len(list.Items))
	for _, v := range list.Items {
		names[v.Text()] = true
	}
	return names
}

func NullType() *Node { return NewObject(NewMember("type", NewString("null"))) }

func TypeName(v *Node) string {
	switch v.Kind {
	case Object:
		return "object"
	case Array:
		return "array"
	case String:
		return "string"
	case Number:
		if strings.ContainsAny(v.Token, ".eE") {
			return "number"
		}
		return "integer"
	case Null:
		return "null"
	}
	return "boolean"
}
