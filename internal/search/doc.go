// Package search ranks tools by what they do: BM25 over the words of their names,
// descriptions, params and servers, with a weight for each field (spec section
// 12). The same tools and the same query give the same order on every machine.
package search
