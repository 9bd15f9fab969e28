// Package picture shows images on terminals that support it, with the graphics
// protocol of kitty or that of iTerm2.
//
// The environment determines which protocol a terminal supports. The terminal
// is not queried, because waiting for an answer would delay the result, and a
// late answer would appear as input to the shell. Images are untrusted: their
// type is determined by their content, their size is read before decoding, and
// their bytes reach the terminal only as base64.
package picture
