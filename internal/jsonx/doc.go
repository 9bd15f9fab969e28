// Package jsonx reads and writes JSON where encoding/json does not do: it keeps
// the order of members and the text of numbers, tells of duplicate keys, bounds
// the nesting, and says where in a text something is wrong.
//
// There are three ways to look at a text. [Parse] makes a tree of [Value] that
// can be changed and written again. [Check] only says whether a text will do.
// [Members], [Elements], [Get] and [Text] look into valid JSON without copying
// it, for texts of many megabytes. [Canonical] is the form in which two texts
// are compared, [Marshal] the encoder for all that people may read.
package jsonx
