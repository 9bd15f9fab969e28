// Package deferred declares only a part of a large registry and lets the model find
// the rest. [Declare] decides which tools are declared within a budget of tokens.
// The others are declared as deferred if the provider can find such tools itself.
// Otherwise a model reaches them through three tools of this package: search_tools,
// describe_tools and call_tool.
//
// This package only decides and writes text. Package session answers calls of the
// three tools in any later run, without knowing which tools were declared.
package deferred
