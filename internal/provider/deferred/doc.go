// Package deferred declares only a part of a large registry and lets the model
// find the rest (spec section 12). [Declare] decides which tools are declared
// within a budget of tokens. The others are declared as deferred if the
// provider finds such tools itself. Otherwise they are reached through three
// tools of this package: search_tools, describe_tools and call_tool.
//
// The package decides and writes texts. Package session searches and calls: it
// answers these three tools in any later run, without knowing what was
// declared.
package deferred
