package sandbox

import "os"

// Program is what [Prepare] confines.
type Program struct {
	Path   string // of the executable, absolute
	Argv   []string
	Env    []string
	Dir    string   // working directory, absolute
	Folder *os.File // Dir as an open folder: the start fails if Dir is now a different one; nil means not checked
}

// Start is a prepared start. The caller calls Attributes and starts Path with Argv, Env and
// Files as descriptors 3 and following. If that succeeds, it calls Started and Ended, once
// each and in this order. In any case it calls Close at the end.
type Start struct {
	Path  string
	Argv  []string
	Env   []string
	Files []*os.File

	state // specific to the system
}
