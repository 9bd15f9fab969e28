// Package markdown lays Markdown text out for a terminal. goldmark reads it:
// CommonMark 0.31, with the tables, check boxes and strikethrough of GitHub.
//
// What servers call Markdown is often a listing, a log or a diff. So line breaks
// and the indents behind them stay, nothing is joined that fits the screen as
// it stands, nothing that was written is left out (HTML, definitions of links
// and what refers to them are text), and a unified diff stays one.
//
// The text may be hostile: everything that a terminal would act on becomes
// visible first, so that the only escape sequences in the output are those for
// styles, and addresses are always printed. Time and depth are bounded.
package markdown
