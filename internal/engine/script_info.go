package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
)

type scriptKey struct{}

// scriptInfo is what the audit log says about a call and scripts. Each call has its own.
type scriptInfo struct {
	id     string
	sha256 string      // of the script that the call runs; "" if it runs none
	parent *scriptInfo // of the call that makes this one; nil if none does
}

// withScriptInfo returns the context of a new call.
func withScriptInfo(ctx context.Context) context.Context {
	return context.WithValue(ctx, scriptKey{}, &scriptInfo{parent: scriptOf(ctx)})
}

func scriptOf(ctx context.Context) *scriptInfo {
	info, _ := ctx.Value(scriptKey{}).(*scriptInfo)
	return info
}

// inScript reports whether a script makes the call.
func (i *scriptInfo) inScript() bool { return i.parent != nil && i.parent.sha256 != "" }

// begin records that the call runs a script.
func (i *scriptInfo) begin(sha256 string) {
	i.sha256, i.id = sha256, newID()
}

// audit returns the fields of the audit log.
func (i *scriptInfo) audit() (script, parent, id string) {
	script, id = i.sha256, i.id
	if i.inScript() {
		parent = i.parent.id
		if script == "" {
			script, id = i.parent.sha256, newID()
		}
	}
	return script, parent, id
}

func newID() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}
