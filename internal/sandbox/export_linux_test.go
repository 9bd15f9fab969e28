//go:build amd64 || arm64

package sandbox

// OuterFilter returns a seccomp filter that simulates a kernel without a feature:
// a system call with this first argument fails, or is passed to the listener.
func OuterFilter(call uint32, argument int, value, result uint32) []byte {
	var a assembler
	a.load(offsetCall)
	a.call(call, func() {
		if argument >= 0 {
			a.load(offsetArg(uint32(argument)))
			a.unless(jumpEqual, value, returnAllow)
		}
		a.ret(result)
	})
	a.ret(returnAllow)
	return a.out
}

// FailWith is the filter result that makes a system call fail.
var FailWith = failWith
