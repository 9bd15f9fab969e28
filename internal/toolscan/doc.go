// Package toolscan reads what a server says about itself, its tools, prompts and
// resources, and reports what is made to steer a model or to hide from a person:
// invisible characters, instructions to the reader, demands for files, secrets or the
// conversation, references to the tools of other servers, names that resemble theirs.
//
// [Scan] is a pure function over the listing as the server sent it. The rules are in
// rules.txt: phrases, and the advice for what the other files find. It takes time
// proportional to the size of the listing, because the listing is untrusted.
//
// The rules of phrases know English. A text that avoids their words passes, so a listing
// without findings is not known to be harmless.
package toolscan
