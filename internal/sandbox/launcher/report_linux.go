//go:build amd64 || arm64

package launcher

import "syscall"

type failure struct {
	step string
	err  error
}

// fail returns err as a failure of a step, or nil if err is nil.
func fail(step string, err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{step, err}
}

// failed reports a failure and returns the exit code.
func failed(f *failure) int {
	errno, _ := f.err.(syscall.Errno)
	report(Report{Kind: Failed, Value: int(errno), Step: f.step}, -1)
	return 1
}

// report sends a report, with a descriptor if it is not negative. Errors are
// ignored: if toolreg is gone, the kernel ends the launcher.
func report(r Report, fd int) {
	var rights []byte
	if fd >= 0 {
		rights = syscall.UnixRights(fd)
	}
	_ = syscall.Sendmsg(StatusFD, r.Encode(), rights, nil, syscall.MSG_NOSIGNAL)
}
