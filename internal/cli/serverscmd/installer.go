package serverscmd

import (
	"github.com/toolreg/toolreg/internal/cli"
	"github.com/toolreg/toolreg/internal/install"
	"github.com/toolreg/toolreg/internal/settings"
)

func installer(e *cli.Env, s *settings.Settings) *install.Installer {
	return &install.Installer{
		Settings: s,
		Folders:  e.Config.Folders,
		Environ:  e.Config.Environ,
		Dir:      e.Config.Dir,
		Agent:    "toolreg/" + e.Version,
	}
}

// noteBundle says where the bundle is that a server had. It stays, because a server of
// another project may be the same.
func noteBundle(e *cli.Env, s *settings.Settings, name string) {
	if folder := installer(e, s).BundleFolder(name); folder != "" {
		e.IO.Notef("its bundle stays in %s; delete it if no other project uses it", folder)
	}
}
