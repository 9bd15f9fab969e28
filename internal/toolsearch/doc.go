// Package toolsearch ranks tools by what they do: BM25 over the words of their names,
// descriptions and params, with a weight for each field, and over the names of their
// servers. It knows general synonyms and tolerates typos. The same tools and query
// produce the same order on every machine. TestRecall measures the quality on the tools
// of published servers.
package toolsearch
