// Package toolsearch ranks tools by what they do: BM25 over the words of their names,
// descriptions and params, with a weight for each field, and over the names of their
// servers. It knows general synonyms and tolerates typos. The same tools and query
// produce the same order on every machine. TestRecall measures the quality on the tools
// of published servers.
package toolsearch

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/toolreg/toolreg/internal/jsonx"
	"github.com/toolreg/toolreg/internal/registry"
	"github.com/toolreg/toolreg/internal/schema"
)

// Document is the searchable text of one tool. The zero value matches nothing.
type Document struct {
	Name, DisplayName, Description string
	Tags                           []string
	Params                         []Param // at any depth of the input schema
	Server, ServerDescription      string
	// Names are those by which it is called. A query that is one of them finds the tool first.
	Names      []string
	Deprecated bool // found last
}

// Param is a param of a tool.
type Param struct{ Name, Description string }

// field has the weights of words in one part of a document.
type field struct {
	weight float32 // weight of a word that occurs once
	usual  float32 // usual length in words; words of a longer text have less weight
}

// The fields, tuned on one half of testdata/questions.txt.
var (
	fieldName              = field{6, 2}
	fieldDisplayName       = field{3, 3}
	fieldDescription       = field{2, 20}
	fieldTags              = field{2, 3}
	fieldParams            = field{1.4, 6}
	fieldParamDescriptions = field{0.3, 40}
	fieldServerDescription = field{0.5, 10}
)

// discount is how much a word's weight depends on the length of its text:
// BM25's b.
const discount = 0.6

// Index holds the words of documents. It is safe for concurrent use; the zero value is
// empty.
type Index struct {
	postings map[string][]posting // by stem, in order of documents
	names    []string             // of the documents
	called   map[string][]int32   // documents by their Names in lower case
	last     []bool               // by document: whether it is deprecated
	// servers are the names of servers, as stems. They are ignored in the texts of their own
	// tools, because they do not distinguish these.
	servers  [][]string
	serverOf []int32 // index into servers by document
	alike    map[string][]string
}

type posting struct {
	document int32
	weight   float32 // weight of the word in all fields together
}

// New returns an index of documents, which it does not retain.
func New(documents []Document) *Index {
	x := &Index{alike: synonyms(), postings: map[string][]posting{}}
	x.addServers(documents)
	r := reader{terms: map[string]int32{}, stems: map[string]int32{}}
	for i := range documents {
		r.addDocument(&documents[i], x.servers[x.serverOf[i]])
	}
	for stem, term := range r.stems {
		if list := r.postings[term]; list != nil {
			x.postings[stem] = list
		}
	}
	return x
}

// addServers records the servers and names of the documents.
func (x *Index) addServers(documents []Document) {
	known := map[string]int32{}
	x.called = make(map[string][]int32, len(documents))
	for i := range documents {
		for _, name := range documents[i].Names {
			name = strings.ToLower(name)
			x.called[name] = append(x.called[name], int32(i))
		}
		x.last = append(x.last, documents[i].Deprecated)
		name := documents[i].Server
		at, ok := known[name]
		if !ok {
			at = int32(len(x.servers))
			known[name] = at
			x.servers = append(x.servers, stems(name))
		}
		x.serverOf = append(x.serverOf, at)
		x.names = append(x.names, documents[i].Name)
	}
}

// reader reads documents into an index.
type reader struct {
	document int32            // the one being added
	terms    map[string]int32 // index into postings by the word as written
	stems    map[string]int32 // index into postings by stem
	postings [][]posting

	passed      []int32 // terms of its server, which are not counted
	found       []int32 // terms of the field being added
	names, docs []string
}

func (r *reader) addDocument(d *Document, passed []string) {
	r.passed, r.names, r.docs = r.passed[:0], r.names[:0], r.docs[:0]
	for _, stem := range passed {
		r.passed = append(r.passed, r.stem(stem))
	}
	for _, param := range d.Params {
		r.names, r.docs = append(r.names, param.Name), append(r.docs, param.Description)
	}
	r.addText(fieldName, d.Name)
	r.addText(fieldDisplayName, d.DisplayName)
	r.addText(fieldDescription, d.Description)
	r.addText(fieldTags, d.Tags...)
	r.addText(fieldParams, r.names...)
	r.addText(fieldParamDescriptions, r.docs...)
	r.addText(fieldServerDescription, d.ServerDescription)
	r.document++
}

// addText counts the words in a field of the document.
func (r *reader) addText(f field, texts ...string) {
	r.found = r.found[:0]
	for _, text := range texts {
		eachWord(text, func(word string) {
			if term := r.term(word); !slices.Contains(r.passed, term) {
				r.found = append(r.found, term)
			}
		})
	}
	weight := f.weight / (1 - discount + discount*float32(len(r.found))/f.usual)
	for _, term := range r.found {
		list := r.postings[term]
		if n := len(list); n > 0 && list[n-1].document == r.document {
			list[n-1].weight += weight
		} else {
			r.postings[term] = append(list, posting{r.document, weight})
		}
	}
}

// term returns the index of a word's stem. Words recur often, so few are stemmed.
func (r *reader) term(word string) int32 {
	term, ok := r.terms[word]
	if !ok {
		term = r.stem(stem(folded(word)))
		r.terms[word] = term
	}
	return term
}

func (r *reader) stem(stem string) int32 {
	i, ok := r.stems[stem]
	if !ok {
		i = int32(len(r.postings))
		r.stems[stem] = i
		r.postings = append(r.postings, nil)
	}
	return i
}

// Limits on how much of an untrusted input schema is read.
const (
	maxDepth  = 8
	maxParams = 500
)

// Of returns the searchable text of a definition. serverDescription is the
// description of its server in the settings or from the server itself.
func Of(d *registry.Definition, serverDescription string) Document {
	doc := Document{Name: d.PlainName(), DisplayName: d.DisplayName, Description: d.Description, Tags: d.Tags,
		Server: d.Server, ServerDescription: serverDescription,
		Names: append([]string{d.Name}, d.Aliases...), Deprecated: isDeprecated(d)}
	if d.OfServer() {
		doc.Names = append(doc.Names, d.Qualified())
	}
	if d.IsMCP() {
		doc.DisplayName = "" // derived from the other two
	}
	doc.addParams(d.InputSchema, 0)
	return doc
}

// isDeprecated reports whether a tool is marked as deprecated: by a tag, by an
// annotation, or by the first word of its description.
func isDeprecated(d *registry.Definition) bool {
	const mark = "deprecated"
	if slices.ContainsFunc(d.Tags, func(tag string) bool { return strings.EqualFold(tag, mark) }) {
		return true
	}
	if value := jsonx.Get(d.Annotations, mark); value != nil && string(value) != "false" && string(value) != "null" {
		return true
	}
	text := strings.TrimLeftFunc(d.Description, func(r rune) bool { return !unicode.IsLetter(r) })
	return len(text) >= len(mark) && strings.EqualFold(text[:len(mark)], mark)
}

// addParams adds the properties of a schema, and those of the schemas in it: below definitions once, however
// many references lead to them.
func (d *Document) addParams(raw json.RawMessage, depth int) {
	if depth == maxDepth {
		return
	}
	for key, value := range jsonx.Members(raw) {
		switch schema.Under(key) {
		case schema.Named:
			for name, property := range jsonx.Members(value) {
				if len(d.Params) == maxParams {
					return
				}
				if key == "properties" {
					description, _ := jsonx.Text(jsonx.Get(property, "description"))
					d.Params = append(d.Params, Param{name, description})
				}
				d.addParams(property, depth+1)
			}
		case schema.Schemas:
			if branches, ok := jsonx.Elements(value); ok {
				for _, branch := range branches {
					d.addParams(branch, depth+1)
				}
			} else if key != "if" && key != "not" {
				d.addParams(value, depth+1)
			}
		}
	}
}

// synonyms returns the stems with the same meaning as a stem.
func synonyms() map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(groups) {
		group := stems(line)
		for _, stem := range group {
			for _, other := range group {
				if other != stem && !slices.Contains(out[stem], other) {
					out[stem] = append(out[stem], other)
				}
			}
		}
	}
	return out
}

// groups are words that people and tools use with the same meaning, one group per line.
// They are general verbs, nouns and abbreviations, not terms of a product.
const groups = `
add create insert make new register
delete remove drop erase destroy clear rid discard forget
update change edit modify set adjust
get read fetch retrieve load show view display see
search find query lookup look locate
send post write
copy duplicate clone
run execute start launch trigger
stop end cancel terminate kill
restart reboot
move transfer
attach upload put
download save export dump
undo revert rollback restore roll
share permission access
issue ticket bug
event meeting appointment
calendar agenda schedule
email mail message
folder directory dir
image picture photo
row record
column field
cell range
comment remark note reply answer
sprint cycle iteration
user member person people colleague
remember memorize recall memory
remember memorize add
fact observation
relation relationship
statistics stats metrics analytics
slide presentation deck
spreadsheet sheet workbook excel xlsx
invoice bill
price cost
count number many total
version revision
website site page
document doc
documentation docs
database db
repository repo
environment env
variable var
configuration config settings
authentication auth login
kubernetes k8s
javascript js
pr pull request
mr merge request
`
