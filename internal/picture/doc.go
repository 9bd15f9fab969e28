// Package picture shows images on terminals that can: by the graphics protocol
// of kitty or that of iTerm2.
//
// The environment says which of them a terminal knows. The terminal is not asked:
// an answer that never comes would delay the result, and one that comes late
// would be typed into the shell. The bytes of an image are hostile: their
// content alone says what they are, their size is read before anything is
// decoded, and nothing of them reaches the terminal but as base64.
package picture
