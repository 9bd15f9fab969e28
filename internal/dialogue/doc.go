// Package dialogue reads the tool calls in a model's response and writes the
// messages that answer them, in the format of each provider (spec section 8.1).
//
// [Lookup] finds a format, [Format.Decode] converts a response to a [Turn] of
// calls, and Turn.Reply converts the answers to the messages to append to the
// conversation, with matching ids. The caller runs the calls.
//
// A response is untrusted. If it is not in the format, that is an error. A call
// in it that cannot be run, such as one that was cut off, is a call with a
// Fault, so that every call is answered, as providers require. The package
// runs, prints and reads nothing itself.
package dialogue
