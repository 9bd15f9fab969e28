package sandbox

import "os"

// Program is what [Prepare] confines.
type Program struct {
	Path   string // of the executable, absolute
	Argv   []string
	Env    []string
	Dir    string   // working directory, absolute
	Folder *os.File // Dir as an open folder: the start fails if Dir is another one by now; nil: not checked
}

// Start is a prepared start. The caller starts Path with Argv, Env and Files as
// descriptors 3 and following, after Attributes, and then calls Started, Ended
// and Close, each once and in this order, the first two only if it could.
type Start struct {
	Path  string
	Argv  []string
	Env   []string
	Files []*os.File

	state // of the system
}
