package mcpclient

import "github.com/toolreg/toolreg/internal/mcpclient/wire"

// Limits limit how much a server may send. A zero field means its default.
type Limits struct {
	Frame  int64 // bytes of one message while connecting and listing, after decompression; 16 MiB
	Result int64 // bytes of one message that answers a call; 64 MiB
	Tools  int   // tools of one server; 10,000
	Pages  int   // pages of one listing; 100
	Schema int64 // bytes of one schema; 1 MiB

	Samples int // sampling requests during one request of ours; 10
}

func (l Limits) withDefaults() Limits {
	l.Frame = orDefault(l.Frame, 16<<20)
	l.Result = orDefault(l.Result, 64<<20)
	l.Tools = orDefault(l.Tools, 10_000)
	l.Pages = orDefault(l.Pages, 100)
	l.Schema = orDefault(l.Schema, 1<<20)
	l.Samples = orDefault(l.Samples, 10)
	return l
}

func orDefault[T int | int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

func (l Limits) frame() wire.Limit {
	return wire.Limit{Bytes: l.Frame, Setting: "limits.frame"}
}
func (l Limits) result() wire.Limit {
	return wire.Limit{Bytes: l.Result, Setting: "limits.result"}
}
