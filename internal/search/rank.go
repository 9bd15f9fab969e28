package search

import (
	"cmp"
	"math"
	"slices"
)

// Weights of a query's words, tuned like the fields.
const (
	saturation  = 1.5 // how quickly repetitions of a word stop counting: BM25's k1
	serverBonus = 2.5 // of a word of the server's name
	alikeWeight = 0.5 // of a synonym, relative to the word itself
	typoWeight  = 0.8 // of a word that differs by one typo
)

const (
	maxWords = 100 // maximum words of a query
	minTypo  = 4   // minimum bytes of a word for tolerating a typo
)

// Hit is a document that a query found.
type Hit struct {
	Document int     // its index
	Score    float64 // above 0
}

// queryWords returns the words of a query to search for: stems without duplicates,
// and without stop words unless there are no others.
func queryWords(query string) []string {
	var all, telling []string
	eachWord(query, func(word string) {
		if len(telling) == maxWords {
			return
		}
		word = folded(word)
		s := stem(word)
		switch {
		case isStopWord(word):
			if len(all) < maxWords && !slices.Contains(all, s) {
				all = append(all, s)
			}
		case !slices.Contains(telling, s):
			telling = append(telling, s)
		}
	})
	if len(telling) == 0 {
		return all
	}
	return telling
}

// Rank returns the documents that contain a word of the query, the best first
// and at most limit of them, and the number of all matches. Equal ones are
// sorted by name.
func (x *Index) Rank(query string, limit int) (hits []Hit, matched int) {
	r := ranking{Index: x, scores: make([]float64, len(x.names)), covered: make([]float64, len(x.names)),
		weights: make([]float32, len(x.names)), bonus: make([]float64, len(x.servers))}
	for _, word := range queryWords(query) {
		r.add(word)
	}
	for i, score := range r.scores {
		if score > 0 {
			// Matching more of the query's words is better than matching one of
			// them often.
			score *= math.Sqrt(r.covered[i] / r.total)
		}
		if score += r.bonus[x.serverOf[i]]; score > 0 {
			hits = append(hits, Hit{i, score})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(x.names[a.Document], x.names[b.Document]), cmp.Compare(a.Document, b.Document))
	})
	return hits[:min(limit, len(hits))], len(hits)
}

// ranking is the state of one query.
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

// add scores the documents and servers that contain a word.
func (r *ranking) add(word string) {
	r.touched, r.named = r.touched[:0], r.named[:0]
	r.find(word, 1)
	for _, other := range r.alike[word] {
		r.findIn(other, alikeWeight)
	}
	if len(r.touched)+len(r.named) == 0 {
		for _, other := range r.near(word) {
			r.find(other, typoWeight)
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

// find adds the documents and servers of a word to those of the current one.
func (r *ranking) find(word string, factor float32) {
	r.findIn(word, factor)
	for i, s := range r.servers {
		if slices.Contains(s.words, word) {
			r.named = append(r.named, int32(i))
		}
	}
}

func (r *ranking) findIn(word string, factor float32) {
	for _, p := range r.postings[word] {
		if r.weights[p.document] == 0 {
			r.touched = append(r.touched, p.document)
		}
		r.weights[p.document] += p.weight * factor
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
		for _, other := range s.words {
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
