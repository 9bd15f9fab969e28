package process

import "sync"

// goingOn has the sessions of programs that keep running after toolreg ends. It
// is global like the kernel's list of children, to which it adds this
// information.
var goingOn sync.Map

// GoesOn excludes the session of a child, with everything started in it, from
// being killed when toolreg ends.
func GoesOn(session int) { goingOn.Store(session, true) }
