package table

import "github.com/toolreg/toolreg/internal/jsonx"

// The functions below are values of Row.Loosens: they report whether a value
// allows more than the default.

func always(*jsonx.Value) bool { return true }

func whenTrue(n *jsonx.Value) bool { return n.Is(jsonx.True) }

func whenFalse(n *jsonx.Value) bool { return n.Is(jsonx.False) }

func whenFilled(n *jsonx.Value) bool { return len(n.Items)+len(n.Members) > 0 || literal(n) != "" }

func whenText(text string) func(*jsonx.Value) bool {
	return func(n *jsonx.Value) bool { return n.Text() == text }
}

func whenNot(text string) func(*jsonx.Value) bool {
	return func(n *jsonx.Value) bool { return n.Text() != text }
}

// whenLonger is true for a duration beyond the default, and for no limit.
func whenLonger(def string) func(*jsonx.Value) bool {
	limit, _ := ParseDuration(jsonx.NewString(def))
	return func(n *jsonx.Value) bool {
		d, err := ParseDuration(n)
		return err == nil && (d == 0 || d > limit)
	}
}

// whenKept is true for a value of type Keep with which something is kept.
func whenKept(n *jsonx.Value) bool {
	d, err := ParseKeep(n)
	return err == nil && d > 0
}

// hasAllow is true for a list of rules if at least one of them lets a call run
// without asking.
func hasAllow(rules *jsonx.Value) bool {
	for _, rule := range rules.Items {
		if d := rule.Get("decision"); d != nil && (d.Text() == "allow" || d.Text() == "sandbox") {
			return true
		}
	}
	return false
}

// notByProject is a Row.Looser for settings that a project cannot set.
func notByProject(_, _ *jsonx.Value) bool { return true }
