// Package toolscan reads what a server says about itself, its tools, prompts and
// resources, and reports what is made to steer a model or to hide from a person:
// invisible characters, instructions to the reader, demands for files, secrets or the
// conversation, references to the tools of other servers, names that resemble theirs.
//
// [Scan] is a pure function over the listing as the server sent it. Rules find what has a
// form: rules.txt has phrases, the names of params and the advice for what the other files
// find. What is said in other words or languages is left to a linear model of sentences, whose
// weights are in weights.bin and whose words in lexicon.txt; testdata/README.md tells how it
// is trained. The time is proportional to the size of the listing, because the listing is
// untrusted.
//
// The model misses texts, so a listing without findings is not known to be harmless.
package toolscan
