//go:build !darwin && !(linux && (amd64 || arm64))

package sandbox

// Probe reports that this system has no sandbox.
func Probe() Support {
	return Support{Parts: []Part{{Name: "a sandbox", Detail: "not supported on this system"}}}
}
