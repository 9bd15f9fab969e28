// Package dialogue reads the tool calls in a model's response and writes the
// message that answers them, in the form of each provider (spec section 8.1).
//
// [Lookup] finds a format, [Format.Decode] turns a response into a [Turn] of
// calls, Turn.Reply turns the answers into the messages to append to the
// conversation, ids matched. Running the calls is the caller's part.
//
// A response is foreign text. What is no response of the format is an error;
// a call in it that cannot be run, such as one that was cut off, is a call with
// a Fault, so that every call gets its answer, which the providers insist on.
// The package runs, prints and reads nothing itself.
package dialogue
