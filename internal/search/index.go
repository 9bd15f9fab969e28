package search

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
)

// Document is what is searched of one tool. The zero value matches nothing.
type Document struct {
	Name, DisplayName, Description string
	Tags                           []string
	Params                         []Param // at any depth of the input schema
	Server, ServerDescription      string
}

// Param is a param of a tool.
type Param struct{ Name, Description string }

// The weights of the fields, in how many times a word counts that is there once.
const (
	weightName              = 5
	weightDisplayName       = 1
	weightDescription       = 2
	weightTag               = 2
	weightParam             = 0.7
	weightParamDescription  = 0.3
	weightServer            = 2.5
	weightServerDescription = 0.5
)

// The constants of BM25: how soon more of the same word counts no more, and how
// much a long text discounts its words.
const (
	saturation = 1.5
	discount   = 0.6
)

// Index holds the words of documents. It is safe for concurrent use; the zero
// value holds none.
type Index struct {
	postings map[string][]posting // by stem, in order of documents
	lengths  []float32            // weighted words of each document
	average  float32
}

// posting is a document that has a word.
type posting struct {
	document int32
	weight   float32 // sum of the fields' weights for each time
}

// Hit is a document that a query found.
type Hit struct {
	Document int     // its index
	Score    float64 // above 0
}

// New returns an index of documents, which it does not keep.
func New(documents []Document) *Index { return newIndex(documents, runtime.GOMAXPROCS(0)) }

func newIndex(documents []Document, workers int) *Index {
	parts := make([]*part, workers)
	size := (len(documents) + len(parts) - 1) / len(parts)
	var wg sync.WaitGroup
	for i := range parts {
		from, to := min(i*size, len(documents)), min((i+1)*size, len(documents))
		parts[i] = &part{first: int32(from), terms: map[string]int32{}}
		wg.Go(func() { parts[i].addAll(documents[from:to]) })
	}
	wg.Wait()
	return merged(parts)
}

// part is the index of some of the documents.
type part struct {
	first    int32            // document
	terms    map[string]int32 // index into postings by the word as written
	stems    map[string]int32 // the same by stem
	postings [][]posting
	lengths  []float32
}

func (p *part) addAll(documents []Document) {
	p.stems = map[string]int32{}
	for i := range documents {
		p.lengths = append(p.lengths, 0)
		d := &documents[i]
		p.add(d.Name, weightName)
		p.add(d.DisplayName, weightDisplayName)
		p.add(d.Description, weightDescription)
		for _, tag := range d.Tags {
			p.add(tag, weightTag)
		}
		for _, param := range d.Params {
			p.add(param.Name, weightParam)
			p.add(param.Description, weightParamDescription)
		}
		p.add(d.Server, weightServer)
		p.add(d.ServerDescription, weightServerDescription)
	}
}

// add counts the words of a field of the last document.
func (p *part) add(text string, weight float32) {
	at := len(p.lengths) - 1
	document := p.first + int32(at)
	eachWord(text, func(word string) {
		p.lengths[at] += weight
		list := &p.postings[p.term(word)]
		if n := len(*list); n > 0 && (*list)[n-1].document == document {
			(*list)[n-1].weight += weight
			return
		}
		*list = append(*list, posting{document, weight})
	})
}

// term returns the index of a word's stem. Words come again and again, so that
// few are stemmed.
func (p *part) term(word string) int32 {
	if i, ok := p.terms[word]; ok {
		return i
	}
	s := stem(word)
	i, ok := p.stems[s]
	if !ok {
		i = int32(len(p.postings))
		p.stems[s] = i
		p.postings = append(p.postings, nil)
	}
	p.terms[word] = i
	return i
}

// merged joins the parts in their order.
func merged(parts []*part) *Index {
	x := &Index{postings: parts[0].byStem()}
	for i, p := range parts {
		x.lengths = append(x.lengths, p.lengths...)
		if i == 0 {
			continue
		}
		for s, list := range p.byStem() {
			x.postings[s] = append(x.postings[s], list...)
		}
	}
	for _, n := range x.lengths {
		x.average += n
	}
	x.average /= float32(max(len(x.lengths), 1))
	return x
}

func (p *part) byStem() map[string][]posting {
	out := make(map[string][]posting, len(p.stems))
	for s, i := range p.stems {
		out[s] = p.postings[i]
	}
	return out
}

// Words returns the words of a query that are looked for: stems, each once, without
// words that every text has unless there are no others.
func Words(query string) []string {
	var all, telling []string
	eachWord(query, func(word string) {
		s := stem(word)
		if !slices.Contains(all, s) {
			all = append(all, s)
			if !isStopWord(word) {
				telling = append(telling, s)
			}
		}
	})
	if len(telling) == 0 {
		return all
	}
	return telling
}

// Rank returns the documents that have a word of the query, the best first, at
// most limit of them, and how many there are in all. Equal ones keep their order.
func (x *Index) Rank(query string, limit int) (hits []Hit, matched int) {
	scores := make([]float64, len(x.lengths))
	for _, word := range Words(query) {
		list := x.postings[word]
		rarity := math.Log(1 + (float64(len(x.lengths))-float64(len(list))+0.5)/(float64(len(list))+0.5))
		for _, p := range list {
			length := float64(x.lengths[p.document] / x.average)
			weight := float64(p.weight)
			scores[p.document] += rarity * weight * (saturation + 1) / (weight + saturation*(1-discount+discount*length))
		}
	}
	for i, score := range scores {
		if score > 0 {
			hits = append(hits, Hit{i, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(limit, len(hits))], len(hits)
}
