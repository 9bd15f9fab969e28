package settings

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseDuration reads whole milliseconds or a string such as "30s".
func parseDuration(n *node) (time.Duration, error) {
	switch n.kind {
	case kindNumber:
		return parseMillis(n.text)
	case kindString:
		d, err := time.ParseDuration(n.text)
		if err != nil || d < 0 {
			return 0, errors.New(`expected whole milliseconds or a duration such as "30s" or "10m", 0 or more`)
		}
		return d, nil
	}
	return 0, errors.New(`expected whole milliseconds or a duration such as "30s", got ` + n.kind.String())
}

func parseMillis(text string) (time.Duration, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0, errors.New(`expected whole milliseconds, 0 or more, or a duration such as "1.5s"`)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// parseSize reads whole bytes or a string such as "10MiB".
func parseSize(n *node) (int64, error) {
	bad := errors.New(`expected whole bytes or a size such as "10MiB"`)
	if n.kind != kindNumber && n.kind != kindString {
		return 0, errors.New(`expected whole bytes or a size such as "10MiB", got ` + n.kind.String())
	}
	digits := strings.TrimRight(n.text, "KMGTkiBb ")
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || number < 0 {
		return 0, bad
	}
	var unit int64
	switch strings.TrimSpace(n.text[len(digits):]) {
	case "", "B":
		unit = 1
	case "kB", "KB":
		unit = 1000
	case "KiB", "K", "k":
		unit = 1 << 10
	case "MB":
		unit = 1_000_000
	case "MiB", "M":
		unit = 1 << 20
	case "GB":
		unit = 1_000_000_000
	case "GiB", "G":
		unit = 1 << 30
	default:
		return 0, bad
	}
	if number > math.MaxInt64/unit {
		return 0, bad
	}
	return number * unit, nil
}

func parseInt(n *node) (int, error) {
	if n.kind != kindNumber {
		return 0, errors.New("expected a whole number, got " + n.kind.String())
	}
	i, err := strconv.ParseInt(n.text, 10, 32)
	if err != nil || i < 0 {
		return 0, errors.New("expected a whole number, 0 or more")
	}
	return int(i), nil
}

// duration, size, number and boolean are for values that were checked.

func (n *node) duration() time.Duration {
	d, _ := parseDuration(n)
	return d
}

func (n *node) size() int64 {
	size, _ := parseSize(n)
	return size
}

func (n *node) number() int {
	i, _ := parseInt(n)
	return i
}

// fromText makes the node that a settings file would hold out of the text of a
// variable or a flag. The text of a string is taken as it is.
func fromText(s *setting, text string) *node {
	n := &node{kind: kindString, text: text}
	switch s.typ {
	case typeBool:
		if b, err := strconv.ParseBool(text); err == nil {
			return &node{kind: kindBool, bool: b}
		}
	case typeInt, typeDuration, typeSize:
		if isJSONNumber(text) {
			n.kind = kindNumber
		}
	}
	return n
}
