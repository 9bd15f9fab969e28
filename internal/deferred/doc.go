// Package deferred declares a part of a large registry and lets the model find the
// rest (spec section 12). [Declare] decides which tools are declared within a
// budget of tokens; the others are declared as deferred where the provider finds
// such tools itself, and reached by three tools of this package elsewhere:
// search_tools, describe_tools and call_tool.
//
// The package decides and writes texts. Searching and calling are session's part:
// it answers those three in any later run, without knowing what was declared.
package deferred
