// Package markdown formats Markdown text for a terminal. goldmark parses it:
// CommonMark 0.31, with GitHub's tables, check boxes and strikethrough.
//
// What servers declare as Markdown is often a listing, a log or a diff.
// Therefore line breaks and indents are kept, lines that fit the screen are not
// joined, everything that was written is shown (HTML, link definitions and
// references to them are text), and a unified diff is shown as a diff.
//
// The text may be hostile: everything that a terminal would interpret is escaped
// first, so that the only escape sequences in the output are those of styles, and
// the URLs of links are always printed. Time and depth are limited.
package markdown
