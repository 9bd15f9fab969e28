package terminal

import (
	"slices"
	"strings"
)

const (
	// attempts is how often an answer that is none of the offered ones is asked
	// for again.
	attempts = 3
	// wrongAnswer is said then.
	wrongAnswer = "Answer with one of the letters in brackets.\n"
)

// prompt is the last line of a question, in the form that spec section 3 fixes:
// "Allow? [y]es, [n]o: ".
func prompt(question string, words []string) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = "[" + w[:1] + "]" + w[1:]
	}
	return question + " " + strings.Join(parts, ", ") + ": "
}

// answered returns the index of the word that a line names in full or by its
// letter, case aside; -1 where there is none.
func answered(line string, words []string) int {
	line = strings.ToLower(line)
	return slices.IndexFunc(words, func(w string) bool { return line == w || line == w[:1] })
}

// begin makes the terminal free for one question: others wait until end. before
// may be nil, and so may what it returns.
func (t *TTY) begin(before func() (after func())) (end func()) {
	t.mu.Lock()
	after := func() {}
	if before != nil {
		if f := before(); f != nil {
			after = f
		}
	}
	return func() {
		after()
		t.mu.Unlock()
	}
}
