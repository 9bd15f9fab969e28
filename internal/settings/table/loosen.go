package table

import (
	"github.com/toolreg/toolreg/internal/settings/document"
)

// The functions below are values of Row.Loosens: they report whether a value
// allows more than the default.

func always(*document.Node) bool { return true }

func whenTrue(n *document.Node) bool { return n.True() }

func whenFalse(n *document.Node) bool { return n.Kind == document.Bool && !n.Bool }

func whenFilled(n *document.Node) bool { return len(n.Items)+len(n.Fields) > 0 || n.Text != "" }

func whenText(text string) func(*document.Node) bool {
	return func(n *document.Node) bool { return n.Text == text }
}

func whenNot(text string) func(*document.Node) bool {
	return func(n *document.Node) bool { return n.Text != text }
}

// whenLonger is true for a duration beyond the default, and for no limit.
func whenLonger(def string) func(*document.Node) bool {
	limit, _ := ParseDuration(document.NewString(def))
	return func(n *document.Node) bool {
		d, err := ParseDuration(n)
		return err == nil && (d == 0 || d > limit)
	}
}

// hasAllow is true for a list of rules of which at least one lets a
// call run unasked.
func hasAllow(rules *document.Node) bool {
	for _, rule := range rules.Items {
		if d := rule.Get("decision"); d != nil && (d.Text == "allow" || d.Text == "sandbox") {
			return true
		}
	}
	return false
}

// notByProject is a Row.Looser for what a project cannot set.
func notByProject(_, _ *document.Node) bool { return true }
