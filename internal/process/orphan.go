package process

import "sync"

// goingOn holds the sessions of programs that go on without us. The kernel keeps
// one list of children for the whole process; this is what it does not note there.
var goingOn sync.Map

// GoesOn notes that the session of a child, and with it what that starts there,
// is not ended with us.
func GoesOn(session int) { goingOn.Store(session, true) }
