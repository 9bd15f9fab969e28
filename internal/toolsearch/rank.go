package toolsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Weights of a query's words, tuned like the fields.
const (
	saturation  = 1.5 // how quickly repetitions of a word lose weight: BM25's k1
	serverBonus = 2.5 // of a word of the server's name
	alikeWeight = 0.5 // of a synonym, relative to the word itself
	typoWeight  = 0.8 // of a word that differs by one typo
	partsWeight = 0.5 // of the parts of a word, such as read and file of readfile
)

// The minimum lengths in bytes of words that are changed to find more.
const (
	minTypo = 4 // of a word for tolerating a typo
	minWord = 2 // of each part of a word that is split
)

// Hit is a document that a query found.
type Hit struct {
	Document int     // its index
	Score    float64 // above 0
}

// Rank returns the documents that contain a word of the query, the best first and at most
// limit of them, and the number of all matches. A document with the query among its
// Names comes first, deprecated ones come last. Documents with equal scores are sorted
// by name.
func (x *Index) Rank(query string, limit int) (hits []Hit, matched int) {
	r := ranking{Index: x, scores: make([]float64, len(x.names)), covered: make([]float64, len(x.names)),
		weights: make([]float32, len(x.names)), bonus: make([]float64, len(x.servers))}
	for _, t := range terms(query) {
		r.scoreTerm(t)
	}
	called := x.called[strings.ToLower(strings.TrimSpace(query))]
	for i, score := range r.scores {
		if score > 0 {
			// Matching more of the query's words is better than matching one of
			// them often.
			score *= math.Sqrt(r.covered[i] / r.total)
		}
		score += r.bonus[x.serverOf[i]]
		if score == 0 && slices.Contains(called, int32(i)) {
			score = 1 // a name without a word that is searched for
		}
		if score > 0 {
			hits = append(hits, Hit{i, score})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(x.grade(called, a), x.grade(called, b)), cmp.Compare(b.Score, a.Score),
			cmp.Compare(x.names[a.Document], x.names[b.Document]), cmp.Compare(a.Document, b.Document))
	})
	return hits[:min(limit, len(hits))], len(hits)
}

// grade returns 0 for a document that the query names, 2 for a deprecated one and 1
// for others.
func (x *Index) grade(called []int32, h Hit) int {
	switch {
	case slices.Contains(called, int32(h.Document)):
		return 0
	case x.last[h.Document]:
		return 2
	}
	return 1
}

type ranking struct {
	*Index
	scores  []float64 // by document
	covered []float64 // by document: the rarity of the query's words that it contains
	total   float64   // the same of all words
	bonus   []float64 // by server

	weights []float32 // by document, of the word being added
	touched []int32   // the documents that contain it
	named   []int32   // the servers that have it in their names
}

// scoreTerm scores the documents and servers that contain a word of the query.
func (r *ranking) scoreTerm(t term) {
	r.touched, r.named = r.touched[:0], r.named[:0]
	r.findWord(t.stem, 1)
	for _, other := range t.joined {
		r.findWord(other, 1)
	}
	known := len(r.touched)+len(r.named) > 0
	if !t.exact {
		r.findParts(t.word)
	}
	for _, other := range r.alike[t.stem] {
		r.findIn(other, alikeWeight)
	}
	if !known && !t.exact { // also for a word that splits into two known ones by chance
		for _, other := range r.near(t.stem) {
			r.findWord(other, typoWeight)
		}
	}
	rare := r.score()
	for _, s := range r.named {
		r.bonus[s] += serverBonus * max(rare, rarity(len(r.servers), len(r.named)))
	}
}

// score scores the documents that contain the current word, and returns its
// rarity among all; 0 if none contains it.
func (r *ranking) score() float64 {
	if len(r.touched) == 0 {
		return 0
	}
	rarity := rarity(len(r.names), len(r.touched))
	r.total += rarity
	for _, d := range r.touched {
		weight := float64(r.weights[d])
		r.weights[d] = 0
		r.scores[d] += rarity * weight * (saturation + 1) / (weight + saturation)
		r.covered[d] += rarity
	}
	return rarity
}

// findWord adds the documents and servers of a word to those of the current one.
func (r *ranking) findWord(word string, factor float32) {
	r.findIn(word, factor)
	for i, s := range r.servers {
		if slices.Contains(s, word) {
			r.named = append(r.named, int32(i))
		}
	}
}

func (r *ranking) findIn(word string, factor float32) {
	for _, p := range r.postings[word] {
		r.weigh(p, factor)
	}
}

// weigh adds a document that contains the current word.
func (r *ranking) weigh(p posting, factor float32) {
	if r.weights[p.document] == 0 {
		r.touched = append(r.touched, p.document)
	}
	r.weights[p.document] += p.weight * factor
}

// findParts adds the documents that contain both parts of a word, for each way to split
// it into two known words.
func (r *ranking) findParts(word string) {
	factor := float32(partsWeight)
	if len(r.touched)+len(r.named) == 0 {
		factor = 1
	}
	for i := minWord; i <= len(word)-minWord; i++ {
		if !utf8.RuneStart(word[i]) {
			continue
		}
		head, tail := stem(word[:i]), stem(word[i:])
		r.findBoth(r.postings[head], r.postings[tail], factor)
		for _, other := range r.alike[head] {
			r.findBoth(r.postings[other], r.postings[tail], factor*alikeWeight)
		}
		for _, other := range r.alike[tail] {
			r.findBoth(r.postings[head], r.postings[other], factor*alikeWeight)
		}
	}
}

// findBoth adds the documents of two lists that are in both.
func (r *ranking) findBoth(a, b []posting, factor float32) {
	for len(a) > 0 && len(b) > 0 {
		switch c := cmp.Compare(a[0].document, b[0].document); {
		case c < 0:
			a = a[1:]
		case c > 0:
			b = b[1:]
		default:
			r.weigh(posting{a[0].document, min(a[0].weight, b[0].weight)}, factor)
			a, b = a[1:], b[1:]
		}
	}
}

// near returns the known words that differ from a word by one typo, in order.
func (x *Index) near(word string) (found []string) {
	if len(word) < minTypo {
		return nil
	}
	for other := range x.postings {
		if oneTypo(word, other) {
			found = append(found, other)
		}
	}
	for _, s := range x.servers {
		for _, other := range s {
			if oneTypo(word, other) {
				found = append(found, other)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// rarity is BM25's inverse document frequency of a word that occurs in some of
// all texts.
func rarity(all, some int) float64 {
	return math.Log(1 + (float64(all-some)+0.5)/(float64(some)+0.5))
}

// maxWords is the maximum number of words of a query.
const maxWords = 100

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
			addTerm(list, term{word: word, stem: stem(word)}, joined)
		}
		switch {
		case joined == "":
		case stops && beforeStops:
			addTerm(&telling, term{word: before + word, stem: joined, exact: true}, "")
		case !beforeStops:
			addTerm(&telling, term{word: before, stem: stem(before)}, joined)
		}
		before, beforeStops = word, stops
	})
	if !slices.ContainsFunc(telling, func(t term) bool { return !t.exact }) {
		return append(all, telling...)
	}
	return telling
}

// addTerm adds a term. If a term of the same stem exists, it only adds joined to that term.
func addTerm(terms *[]term, t term, joined string) {
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
