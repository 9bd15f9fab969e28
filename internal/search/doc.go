// Package search ranks tools by what they do: BM25 over the words of their names,
// descriptions and params, with a weight for each field, and over the names of
// their servers (spec section 12). It knows general words that mean the same and
// forgives typing errors. The same tools and the same query give the same order
// on every machine. TestRecall measures it on the tools of published servers.
package search
