package toolsearch

import "slices"

// maxWords is the maximum number of words of a query.
const maxWords = 100

// term is a word of a query.
type term struct {
	word, stem string   // in lower case; its stem
	joined     []string // the stems of the word joined with a neighbor: readfile
	exact      bool     // only the word itself is searched for
}

// terms returns the words of a query to search for, without duplicates, and without
// stop words unless there are no others. Two stop words may be one word: to-do.
func terms(query string) []term {
	var all, telling []term
	before, beforeStops := "", false
	eachWord(query, func(word string) {
		if len(telling) >= maxWords {
			return
		}
		word = folded(word)
		stops := isStopWord(word)
		joined := ""
		if before != "" {
			joined = stem(before + word)
		}
		list := &telling
		if stops {
			list = &all
		}
		if !stops || len(all) < maxWords {
			add(list, term{word: word, stem: stem(word)}, joined)
		}
		switch {
		case joined == "":
		case stops && beforeStops:
			add(&telling, term{word: before + word, stem: joined, exact: true}, "")
		case !beforeStops:
			add(&telling, term{word: before, stem: stem(before)}, joined)
		}
		before, beforeStops = word, stops
	})
	if !slices.ContainsFunc(telling, func(t term) bool { return !t.exact }) {
		return append(all, telling...)
	}
	return telling
}

// add adds a term. If a term of the same stem exists, it only adds joined to that term.
func add(terms *[]term, t term, joined string) {
	i := slices.IndexFunc(*terms, func(other term) bool { return other.stem == t.stem })
	if i < 0 {
		i = len(*terms)
		*terms = append(*terms, t)
	}
	at := &(*terms)[i]
	at.exact = at.exact && t.exact
	if joined != "" && !slices.Contains(at.joined, joined) {
		at.joined = append(at.joined, joined)
	}
}
