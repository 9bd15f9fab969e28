package table

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/process"
	"github.com/toolreg/toolreg/internal/settings/document"
)

// literalText returns the text of a string, or the number as written.
func literalText(n *jsonx.Value) string {
	if n.Is(jsonx.Number) {
		return strings.Trim(n.Token, `"`) // package document quotes what JSON could not read
	}
	return n.Text()
}

const expectedDuration = `expected whole milliseconds or a duration such as "30s", 0 or more`

// ParseDuration reads whole milliseconds or a string such as "30s".
func ParseDuration(n *jsonx.Value) (time.Duration, error) {
	switch n.Kind {
	case jsonx.Number:
		return parseMillis(literalText(n))
	case jsonx.String:
		d, err := time.ParseDuration(n.Text())
		if err != nil || d < 0 {
			return 0, errors.New(expectedDuration)
		}
		return d, nil
	}
	return 0, errors.New(expectedDuration + ", got " + document.TypeName(n))
}

// DefaultKeep is how long a server is kept if its setting is just true.
const DefaultKeep = 10 * time.Minute

// ParseKeep reads how long an idle server is kept: true, false or a duration, 0 for not at
// all. It also reads mcporter's form: the word keep-alive or ephemeral, or an object with
// mode and idleTimeoutMs.
func ParseKeep(n *jsonx.Value) (time.Duration, error) {
	const expected = `expected true, false or a duration such as "10m"`
	switch {
	case n.Is(jsonx.True), n.Is(jsonx.String) && n.Text() == "keep-alive":
		return DefaultKeep, nil
	case n.Is(jsonx.False), n.Is(jsonx.Null), n.Is(jsonx.String) && n.Text() == "ephemeral":
		return 0, nil
	case n.Is(jsonx.Object) && n.Get("mode") != nil:
		d, err := ParseKeep(n.Get("mode"))
		if idle := n.Get("idleTimeoutMs"); err == nil && d > 0 && idle != nil {
			return ParseDuration(idle)
		}
		return d, err
	case n.Is(jsonx.Number), n.Is(jsonx.String):
		if d, err := ParseDuration(n); err == nil {
			return d, nil
		}
		return 0, errors.New(expected)
	}
	return 0, errors.New(expected + ", got " + document.TypeName(n))
}

func parseMillis(text string) (time.Duration, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0, errors.New(expectedDuration)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// ParseSize reads whole bytes or a string such as "10MiB".
func ParseSize(n *jsonx.Value) (int64, error) {
	if n.Kind != jsonx.Number && n.Kind != jsonx.String {
		return 0, errors.New(`expected bytes or a size such as "10MiB", got ` + document.TypeName(n))
	}
	text := literalText(n)
	digits := strings.TrimRight(text, "KMGTkiBb ")
	number, err := strconv.ParseInt(digits, 10, 64)
	unit := unitOf(strings.TrimSpace(text[len(digits):]))
	if err != nil || number < 0 || unit == 0 || number > math.MaxInt64/unit {
		return 0, errors.New(`expected bytes or a size such as "10MiB"`)
	}
	return number * unit, nil
}

// unitOf returns the number of bytes of a size unit, or 0 if it is unknown.
func unitOf(name string) int64 {
	switch name {
	case "", "B":
		return 1
	case "kB", "KB":
		return 1000
	case "KiB", "K", "k":
		return 1 << 10
	case "MB":
		return 1_000_000
	case "MiB", "M":
		return 1 << 20
	case "GB":
		return 1_000_000_000
	case "GiB", "G":
		return 1 << 30
	}
	return 0
}

// ParseInt reads a whole number that is 0 or more.
func ParseInt(n *jsonx.Value) (int, error) {
	if n.Kind != jsonx.Number {
		return 0, errors.New("expected an integer, got " + document.TypeName(n))
	}
	const most = min(math.MaxInt, 1<<53) // leaves room for small multiples of it
	i, err := strconv.ParseInt(literalText(n), 10, 64)
	if i > most {
		return 0, fmt.Errorf("expected an integer of at most %d", int(most))
	}
	if err != nil || i < 0 {
		return 0, errors.New("expected an integer, 0 or more")
	}
	return int(i), nil
}

// refuse returns a Row.Check that gives a problem and a hint for some values.
func refuse(is func(*jsonx.Value) bool, problem, hint string) func(*jsonx.Value) (string, string) {
	return func(n *jsonx.Value) (string, string) {
		if is(n) {
			return problem, hint
		}
		return "", ""
	}
}

func isZero(n *jsonx.Value) bool {
	i, err := ParseInt(n)
	return err == nil && i == 0
}

// outsideRange reports a duration that is 0, or longer than most.
func outsideRange(most time.Duration) func(*jsonx.Value) bool {
	return func(n *jsonx.Value) bool {
		d, err := ParseDuration(n)
		return err == nil && (d <= 0 || d > most)
	}
}

// ParseCommand splits a command line, or takes a list of words as they are. An
// empty line gives no words, which disables the command.
func ParseCommand(n *jsonx.Value) ([]string, error) {
	switch {
	case IsBlank(n):
		return nil, nil
	case n.Kind != jsonx.String:
		return n.Strings(), nil
	}
	return process.Split(n.Text())
}

// CommandWords returns the words of a server's command that has arguments in it, such as
// "npx -y foo"; nil if it is one word or cannot be split. A path of Windows is one word: its
// backslashes are no escapes.
func CommandWords(command string) []string {
	if len(command) > 2 && command[1:3] == `:\` {
		return nil
	}
	if words, err := process.Split(command); err == nil && len(words) > 1 {
		return words
	}
	return nil
}

// IsBlank reports whether a command is disabled: it has no words, or only blank
// ones.
func IsBlank(n *jsonx.Value) bool {
	if n.Kind == jsonx.String {
		return strings.TrimSpace(n.Text()) == ""
	}
	return !slices.ContainsFunc(n.Items, func(word *jsonx.Value) bool {
		return word.Kind != jsonx.String || strings.TrimSpace(word.Text()) != ""
	})
}

// FromText converts the text of a variable or a flag to the value that a
// settings file would contain. The text of a string is used as it is.
func (r *Row) FromText(text string) *jsonx.Value {
	switch r.Type {
	case Bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return jsonx.NewBool(b)
		}
	case Keep:
		if text == "true" || text == "false" {
			return jsonx.NewBool(text == "true")
		}
		fallthrough
	case Int, Duration, Size:
		if document.IsNumber(text) {
			return &jsonx.Value{Kind: jsonx.Number, Token: text}
		}
	}
	return jsonx.NewString(text)
}

// The functions below are values of Row.Loosens: they report whether a value
// allows more than the default.

func always(*jsonx.Value) bool { return true }

func whenTrue(n *jsonx.Value) bool { return n.Is(jsonx.True) }

func whenFalse(n *jsonx.Value) bool { return n.Is(jsonx.False) }

func whenFilled(n *jsonx.Value) bool { return len(n.Items)+len(n.Members) > 0 || literalText(n) != "" }

func whenText(text string) func(*jsonx.Value) bool {
	return func(n *jsonx.Value) bool { return n.Text() == text }
}

func whenNot(text string) func(*jsonx.Value) bool {
	return func(n *jsonx.Value) bool { return n.Text() != text }
}

// timeLimit returns the row of a time limit.
func timeLimit(name, def, doc string) Row {
	return Row{Name: name, Type: Duration, Default: `"` + def + `"`, Loosens: whenLonger(def), Doc: doc}
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
