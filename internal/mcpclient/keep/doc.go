// Package keep lets a stdio server outlast the run of toolreg that started it.
//
// A keeper is toolreg itself, one detached process for one server. It has the session with
// the server and listens on a unix socket, to which later runs attach:
//
//   - folder.go: the sockets and their names, which say what makes a server the same.
//   - conn.go: the run's side. [Folder.Attach] connects to a keeper, starting one if
//     necessary.
//   - keeper.go: the keeper's side. It gives the attached runs the result of the handshake
//     and passes on their requests (client.go) and the server's messages (relay.go). Lists
//     are kept until they change (lists.go).
//   - sessions.go: sessions with HTTP servers, which need no keeper but a file.
//
// Over the socket a run speaks MCP, one message a line, without the handshake. The
// keeper's own messages are notifications whose methods begin with "toolreg/". A keeper
// decides nothing: settings, policy, questions to the person and logs stay in the runs.
package keep
