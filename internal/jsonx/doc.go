// Package jsonx reads and writes JSON where encoding/json is not sufficient: it
// keeps the order of members and the text of numbers, reports duplicate keys,
// limits nesting, and reports the positions of errors.
//
// There are three ways to read JSON. [Parse] returns a tree of [Value] that can
// be changed and written again. [Check] only checks a text. [Members],
// [Elements], [Get] and [Text] read parts of valid JSON without copying, for
// texts of many megabytes. [Canonical] returns the form in which texts are
// compared, and [Marshal] encodes values that people may read.
package jsonx
