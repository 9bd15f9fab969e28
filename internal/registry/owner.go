package registry

import "context"

// CodeNameKept is the code of the diagnostic about a tool that has its server's name before
// its own, because its plain name belongs to another server.
const CodeNameKept = "name_kept"

// codeNameLent is the code of the diagnostic about a tool whose name allows nothing, see
// [Tool.Lent].
const codeNameLent = "name_lent"

// Owner says who may have a name. The zero value is a name that is free.
type Owner struct {
	// Kept is set if only tools of Server may have the name; if Server is "", no
	// server's tool may.
	Kept   bool
	Server string
	// Unsure is set if the name went, or would go, to the first server that answers,
	// because nothing says which one it belongs to.
	Unsure bool
	// Lent says that only the lock file of a project that is not trusted gives the name to
	// Server, and Other that something the person trusts gives it to another server.
	Lent, Other bool
}

// KeptName is a name that is kept for a server.
type KeptName struct {
	Name, Server string
	IsAPI        bool   // whether the server is an API
	Absent       string // why the server is not in the registry; "" if it should be
	Setting      string // origin of the setting that is the reason
}

// GivenName is a name that a registry gave to a tool of a server.
type GivenName struct {
	Name, Server string
	Unsure       bool // a server before it failed and may have the name
	Lent         bool // see [Tool.Lent]
}

// Names decides which server a name belongs to, so that a tool of another server never
// gets it. The names are plain names of servers' tools, and names that begin with
// "server__". It is safe for concurrent use.
type Names interface {
	// Owner returns who may have a name.
	Owner(name string) Owner
	// Kept returns the plain names that are kept, sorted.
	Kept() []KeptName
	// Keep remembers the names that a registry gave. It returns false if one of them
	// has come to belong to another server meanwhile; the registry must then be built
	// again.
	Keep(ctx context.Context, given []GivenName) bool
}
