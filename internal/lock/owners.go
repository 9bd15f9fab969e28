package lock

import (
	"github.com/toolreg/toolreg/internal/registry"
)

// only returns the plain names that exactly one server of the file has, with the server;
// a name that several have has the server "".
func (f *File) only() map[string]string {
	out := map[string]string{}
	for i := range f.Tools {
		server, ok := registry.ServerOf(f.Tools[i].Source)
		if !ok {
			continue
		}
		name := registry.ValidName(f.Tools[i].Name)
		if other, taken := out[name]; taken && other != server {
			server = ""
		}
		out[name] = server
	}
	return out
}

// Owners returns the plain names of servers' tools with the server to which each
// belongs. It omits names of which the file does not tell.
func (f *File) Owners() map[string]string {
	out := f.only()
	for name, server := range f.Names {
		out[name] = server
	}
	for name, server := range out {
		if server == "" {
			delete(out, name)
		}
	}
	return out
}

// SetOwners sets to which server each plain name of the file's tools belongs. owner
// returns "" for a name that belongs to nobody.
func (f *File) SetOwners(owner func(name string) string) {
	f.Names = nil
	for name, only := range f.only() {
		if server := owner(name); server != "" && server != only {
			if f.Names == nil {
				f.Names = map[string]string{}
			}
			f.Names[name] = server
		}
	}
}
