package sandbox

import "os"

// sandboxExec is the program that applies Seatbelt profiles.
const sandboxExec = "/usr/bin/sandbox-exec"

// Probe reports whether sandbox-exec exists.
func Probe() Support {
	info, err := os.Stat(sandboxExec)
	return Support{Parts: []Part{{Name: "Seatbelt", OK: err == nil && info.Mode().IsRegular(), Detail: sandboxExec}}}
}
