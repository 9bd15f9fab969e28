package picker

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Item is one item to pick. Names are unique.
type Item struct {
	Name   string
	Source string
	Text   string // only the first line is shown; all of it is searched
	Also   string // additional searchable words
}

// candidate holds the searchable texts of an item in lower case.
type candidate struct{ name, text string }

func newCandidate(item Item) candidate {
	return candidate{strings.ToLower(item.Name), strings.ToLower(item.Source + " " + item.Also + " " + item.Text)}
}

// match is an item that a query finds.
type match struct {
	index int
	score int
	marks []int // offsets of the matched bytes of the name, ascending
}

// Scores of a word by the place where it matches.
const (
	scoreName   = 1000 // the whole name
	scorePrefix = 600
	scoreWord   = 400 // at the beginning of a word of the name
	scoreWithin = 300
	scoreSpread = 30  // letters of the name with others in between; plus up to 99
	scoreText   = 110 // at the beginning of a word of the text
	scoreInText = 40
)

// search returns the items that match every word of a query, best match first;
// equal matches keep their order. An empty query matches all items.
func search(query string, in []candidate) []match {
	words := strings.Fields(strings.ToLower(query))
	found := make([]match, 0, len(in))
	for i := range in {
		if m, ok := in[i].match(words); ok {
			m.index = i
			found = append(found, m)
		}
	}
	if len(words) > 0 {
		slices.SortStableFunc(found, func(a, b match) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(len(in[a.index].name), len(in[b.index].name)))
		})
	}
	return found
}

func (c *candidate) match(words []string) (m match, ok bool) {
	for _, word := range words {
		score, marks := inName(word, c.name)
		if score == 0 {
			_, score = findWord(word, c.text, scoreInText, scoreText)
		}
		if score == 0 {
			return match{}, false
		}
		m.score += score
		m.marks = append(m.marks, marks...)
	}
	slices.Sort(m.marks)
	return m, true
}

// inName finds a word in a name, either contiguous or as letters with others in
// between.
func inName(word, name string) (score int, marks []int) {
	at, score := findWord(word, name, scoreWithin, scoreWord)
	switch {
	case score == 0:
		return spreadScore(word, name)
	case word == name:
		score = scoreName
	case at == 0:
		score = scorePrefix
	}
	for i := range len(word) {
		marks = append(marks, at+i)
	}
	return score, marks
}

// findWord finds a word in a text, preferring the beginning of a word.
func findWord(word, text string, anywhere, atWord int) (at, score int) {
	for from := 0; from < len(text); {
		i := strings.Index(text[from:], word)
		if i < 0 {
			break
		}
		i += from
		if beginsWord(text, i) {
			return i, atWord
		}
		if score == 0 {
			at, score = i, anywhere
		}
		from = i + 1
	}
	return at, score
}

func beginsWord(text string, at int) bool {
	r, _ := utf8.DecodeLastRuneInString(text[:at])
	return at == 0 || !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// spreadScore finds the letters of a word in the name, in order. It chooses the shortest
// match that ends where the first match ends.
func spreadScore(word, name string) (score int, marks []int) {
	letters := []rune(word)
	next, end := 0, 0
	for at, r := range name {
		if r == letters[next] {
			if next++; next == len(letters) {
				end = at + utf8.RuneLen(r)
				break
			}
		}
	}
	if end == 0 {
		return 0, nil
	}
	for at := end; next > 0; {
		r, n := utf8.DecodeLastRuneInString(name[:at])
		if at -= n; r == letters[next-1] {
			next--
			marks = append(marks, at)
		}
	}
	slices.Reverse(marks)
	return scoreSpread + quality(name, marks), marks
}

// quality returns a score of up to 99, higher if letters are adjacent or begin words.
func quality(name string, marks []int) int {
	points := 0
	for i, at := range marks {
		switch {
		case i > 0 && marks[i-1]+1 == at:
			points += 3
		case beginsWord(name, at):
			points += 4
		}
	}
	gaps := marks[len(marks)-1] - marks[0] + 1 - len(marks)
	return max(min(points*20/len(marks)-gaps+10, 99), 0)
}
