package file

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/toolreg/toolreg/internal/text"
)

const (
	nearestLines = 100_000 // maximum lines of a file to compare
	nearestBytes = 160     // maximum bytes of a line to compare
	nearestScore = 0.5     // the minimum score of similar lines
)

// maxCompared limits how many lines are compared to find others: where many lines are the same,
// it would take the product of both numbers.
const maxCompared = 20_000_000

// nearest describes the place in content that is most similar to old, which text
// does not contain: the line, its content, and what old has instead.
func nearest(content, old string) string {
	if why := disguised(content, old); why != "" {
		return why
	}
	have, want := plainLines(content), plainLines(old)
	have = have[:min(len(have), nearestLines)]
	if len(have) == 0 {
		return "The file is empty"
	}
	for len(want) > 1 && strings.TrimSpace(want[0]) == "" {
		want = want[1:]
	}
	if at := sameButSpace(have, want); at >= 0 {
		if i := firstDifference(have[at:], want); i >= 0 {
			inFile, inOld := quoteBoth(have[at+i], want[i])
			return fmt.Sprintf("Line %d differs only in white space: the file has %s where old_string has %s",
				at+i+1, inFile, inOld)
		}
		if last := at + len(want); last == len(have) &&
			strings.HasSuffix(old, "\n") && !strings.HasSuffix(content, "\n") {
			return fmt.Sprintf(
				"Line %d is the last one and has no line break: leave out that at the end of old_string", last)
		}
		return fmt.Sprintf("Line %d differs only in line breaks: %s", at+1, quoteLine(have[at]))
	}
	anchor := longest(want)
	at, score := mostAlike(have, want[anchor])
	if score < nearestScore {
		return "No line of the file is similar"
	}
	if start := at - anchor; start >= 0 {
		if i := firstDifference(have[start:], want); i >= 0 && start+i < len(have) {
			inFile, inOld := quoteBoth(have[start+i], want[i])
			return fmt.Sprintf("The nearest line is %d: the file has %s where old_string has %s",
				start+i+1, inFile, inOld)
		}
	}
	return fmt.Sprintf("The nearest line is %d: %s", at+1, quoteLine(have[at]))
}

// disguised says what keeps old from being found in content, if it is there but for that: its
// characters are escaped once more than JSON needs, or each line begins with its number, as tools show it.
func disguised(content, old string) string {
	unescaped := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "", `\t`, "\t", `\"`, `"`, `\'`, "'").Replace(old)
	// The number before each line of a listing, as in cat -n, grep -n and the answers of tools that read files.
	numbers := regexp.MustCompile(`(?m)^[ \t]*L?[0-9]+(?:\t|→|[:|-] ?| *\| ?)`)
	for _, try := range []struct{ text, why string }{
		{unescaped, "old_string is escaped twice: it has backslashes in front of characters that the file has alone"},
		{numbers.ReplaceAllString(old, ""), "old_string has line numbers, which the file does not have"},
	} {
		if at := strings.Index(content, try.text); try.text != old && strings.TrimSpace(try.text) != "" && at >= 0 {
			return fmt.Sprintf("%s; without that it is at line %d. new_string may have the same fault",
				try.why, 1+strings.Count(content[:at], "\n"))
		}
	}
	return ""
}

// plainLines splits a text at its line breaks. It returns at least one line.
func plainLines(text string) []string {
	return strings.Split(strings.TrimSuffix(toLF(text), "\n"), "\n")
}

// quoteLine quotes a line, shortened to a readable length.
func quoteLine(s string) string {
	if r := []rune(s); len(r) > nearestBytes {
		return fmt.Sprintf("%q…", string(r[:nearestBytes]))
	}
	return fmt.Sprintf("%q", s)
}

// quoteBoth quotes two lines that differ. If they look the same, characters beyond
// ASCII are escaped.
func quoteBoth(a, b string) (string, string) {
	if text.LookSame(strings.TrimSpace(a), strings.TrimSpace(b)) {
		return quoteASCII(a), quoteASCII(b)
	}
	return quoteLine(a), quoteLine(b)
}

// quoteASCII quotes a text with escapes for all characters beyond ASCII.
func quoteASCII(s string) string { return strconv.QuoteToASCII(text.ClipRunes(s, nearestBytes)) }

// sameButSpace returns the index of the first line in have at which want starts
// if white space is ignored, or -1.
func sameButSpace(have, want []string) int {
	folded := make([]string, len(want))
	for i, l := range want {
		folded[i] = foldSpace(l)
	}
	if folded[0] == "" {
		return -1
	}
	lines := make([]string, len(have))
	for i, l := range have {
		lines[i] = foldSpace(l)
	}
	for at, compared := 0, 0; at+len(folded) <= len(lines) && compared < maxCompared; at++ {
		n := 0
		for n < len(folded) && lines[at+n] == folded[n] {
			n++
		}
		if n == len(folded) {
			return at
		}
		compared += n + 1
	}
	return -1
}

func foldSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

// firstDifference returns the index of the first line of want that differs from
// have, or -1. The first line of want may be the end of a line in have, and the
// last one the start.
func firstDifference(have, want []string) int {
	for i := range want {
		switch {
		case i >= len(have):
			return i
		case have[i] == want[i]:
		case i == 0 && strings.HasSuffix(have[i], want[i]):
		case i == len(want)-1 && strings.HasPrefix(have[i], want[i]):
		default:
			return i
		}
	}
	return -1
}

func longest(list []string) int {
	best, length := 0, -1
	for i, l := range list {
		if n := len(strings.TrimSpace(l)); n > length {
			best, length = i, n
		}
	}
	return best
}

// mostAlike returns the index of the line most similar to want, and the
// similarity from 0 to 1.
func mostAlike(have []string, want string) (int, float64) {
	pairs := map[[2]byte]int{}
	total := eachPair(want, func(p [2]byte) { pairs[p]++ })
	best, score := 0, 0.0
	left := make(map[[2]byte]int, len(pairs))
	for i, line := range have {
		clear(left)
		shared := 0
		n := eachPair(line, func(p [2]byte) {
			if left[p] < pairs[p] {
				left[p]++
				shared++
			}
		})
		if total+n == 0 {
			continue
		}
		if s := 2 * float64(shared) / float64(total+n); s > score {
			best, score = i, s
		}
	}
	return best, score
}

// eachPair calls f for every pair of adjacent bytes in the line without
// surrounding white space, and returns the number of pairs.
func eachPair(s string, f func([2]byte)) int {
	s = strings.TrimSpace(s)
	s = s[:min(len(s), nearestBytes)]
	if s == "" {
		return 0
	}
	if len(s) == 1 {
		f([2]byte{s[0]})
		return 1
	}
	for i := range len(s) - 1 {
		f([2]byte{s[i], s[i+1]})
	}
	return len(s) - 1
}
