package ui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Query is a question with a few possible answers. [TTY.Choose] asks all such
// questions, so that the keys have the same meaning everywhere.
type Query struct {
	// Text is the whole subject of the question, formatted; it may be longer
	// than the screen. "" if nothing has to be shown.
	Text string
	// Whole is what [v]iew shows; "" means Text.
	Whole string
	// About is a short form of Text, repeated each time the answers are
	// offered, because what a person decides on must not have scrolled away.
	About string
	// Question is, for example, "Allow?".
	Question string
	// Answers are the possible answers, typed in full or by their first
	// letters, which must be unique. Case counts only between two answers that differ
	// in nothing else. The last one is no.
	Answers []string
	// Same maps words that are accepted but not offered to the answers that they
	// stand for.
	Same map[string]string
}

// Chosen is the answer to a [Query].
type Chosen struct {
	Word string // one of its Answers
	Said string // the person's reason, if Word is no; may be empty
}

// viewWord is the answer that shows the whole question again.
const viewWord = "view"

// Choose asks a question until it gets one of its answers. Enter alone means
// no, and text after a no is its reason; [v]iew shows the text in the pager.
// The error is the cause of ctx, or wraps [ErrNoAnswer].
func (t *TTY) Choose(ctx context.Context, q Query) (Chosen, error) {
	turn := t.Begin()
	defer turn.End()
	return turn.Choose(ctx, q, q.Text)
}

// Choose is [TTY.Choose] within a turn. lead is written first, in place of the whole text.
func (t *Turn) Choose(ctx context.Context, q Query, lead string) (Chosen, error) {
	words := q.words()
	no := words[len(words)-1]
	again := q.About + prompt(q.Question, words)
	shown := lead + again
	for {
		line, err := t.Ask(ctx, shown)
		if err != nil {
			return Chosen{}, err
		}
		first, rest, _ := strings.Cut(line, " ")
		switch word := q.answered(first); {
		case line == "", word == no:
			return Chosen{no, strings.TrimSpace(rest)}, nil
		case word == "" || rest != "":
			shown = "Please answer " + oneOf(words) + ".\n" + again
		case word == viewWord:
			if err := t.page(ctx, cmp.Or(q.Whole, q.Text)); err != nil {
				return Chosen{}, err
			}
			shown = again
		default:
			return Chosen{Word: word}, nil
		}
	}
}

// words returns the answers that are offered.
func (q *Query) words() []string {
	if q.Text == "" {
		return q.Answers
	}
	return slices.Insert(slices.Clone(q.Answers), len(q.Answers)-1, viewWord)
}

// answered returns the answer that a word or letter means, ignoring case if none is
// spelled so; "" if it means none.
func (q *Query) answered(typed string) string {
	is := func(w string) bool { return typed == w || typed == w[:1] }
	words := q.words()
	if i := slices.IndexFunc(words, is); i >= 0 {
		return words[i]
	}
	typed = strings.ToLower(typed)
	if i := slices.IndexFunc(words, is); i >= 0 {
		return words[i]
	}
	for w, answer := range q.Same {
		if is(w) {
			return answer
		}
	}
	return ""
}

// prompt returns the last line of a question, such as "Allow? [y]es, [n]o: ".
func prompt(question string, words []string) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = "[" + w[:1] + "]" + w[1:]
	}
	return question + " " + strings.Join(parts, ", ") + ": "
}

// oneOf joins words as in "yes, view or no".
func oneOf(words []string) string {
	last := len(words) - 1
	return fmt.Sprintf("%s or %s", strings.Join(words[:last], ", "), words[last])
}
