package sandbox_test

// callsHere adds nothing: this architecture has no older variants.
func callsHere() []call { return nil }
