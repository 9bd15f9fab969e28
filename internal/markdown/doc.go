// Package markdown shows Markdown text on a terminal.
//
// It reads CommonMark 0.31 with the tables, task lists and strikethrough of
// GitHub, and departs from it where the text may be none: what servers call
// Markdown is often a listing, a log or a diff. So line breaks stay line breaks,
// nothing is joined that fits the screen as it stands, nothing that was
// written is left out, a unified diff stays one, and a line that is not indented
// ends a list item. Reference links stay as they are written.
//
// The text may be hostile: everything that a terminal would act on becomes
// visible first, so that the only escape sequences in the output are those for
// styles, and addresses are always printed. Time and depth are bounded.
package markdown
