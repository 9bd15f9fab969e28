package process

import (
	"slices"
	"strconv"

	"github.com/toolreg/toolreg/internal/expand"
)

// DepthVariable gives a child its number of enclosing tool runs. Inside a
// tool's run nobody is asked and no trust is granted, because a tool must not
// approve itself.
const DepthVariable = "TOOLREG_DEPTH"

// Depth returns the number of tool runs that enclose a process with this
// environment. A value that is not a number means 1.
func Depth(environ []string) int {
	v, ok := expand.Find(environ, DepthVariable)
	if !ok || v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 1
	}
	return n
}

// InsideTool reports whether this process is part of a tool's run, either because
// its environment says so or because it is a descendant of a toolreg process,
// which a tool cannot hide.
func InsideTool(environ []string) bool {
	return Depth(environ) > 0 || hasAncestor("toolreg")
}

// ChildDepth returns the entry of an environment that says the depth of a child
// of a process with this environment, which distinguishes a tool's run from a
// person's.
func ChildDepth(environ []string) string {
	return DepthVariable + "=" + strconv.Itoa(Depth(environ)+1)
}

// ChildEnviron returns an environment with the depth of a child.
func ChildEnviron(environ []string) []string {
	return append(slices.Clone(environ), ChildDepth(environ))
}
