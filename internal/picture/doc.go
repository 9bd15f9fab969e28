// Package picture shows images on terminals that can: by the graphics protocol
// of kitty or that of iTerm2.
//
// Which of them a terminal knows is read from the environment. It is not asked:
// an answer that never comes would hold the result up, and one that comes late
// would be typed into the shell. The bytes of an image are hostile: what they
// are is told by their content, their size is read before anything is decoded,
// and nothing of them reaches the terminal but as base64.
package picture
