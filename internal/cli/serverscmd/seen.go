package serverscmd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolreg/toolreg/internal/cli"
)

// addedServers is the file in the state folder with the servers of registries that were
// added: the address of the registry by the name of the server.
const addedServers = "added-servers.json"

// seenBefore says where a server of the same name was added from before, if it had another
// publisher or was in another registry.
func seenBefore(e *cli.Env, d *described) []string {
	dir, err := e.Config.Folders.State()
	if err != nil {
		return nil
	}
	data, err := dir.Read(addedServers)
	var added map[string]string
	if err != nil || json.Unmarshal(data, &added) != nil {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(added)) {
		namespace, short, _ := strings.Cut(name, "/")
		switch {
		case name == d.Server.Name && added[name] != d.source:
			out = append(out, fmt.Sprintf("you have added a server of this name before from %s", added[name]))
		case name != d.Server.Name && strings.EqualFold(short, d.Server.Short()):
			out = append(out, fmt.Sprintf("you have added %s before, which is of another publisher, %s", name, namespace))
		}
	}
	return out
}

// remember stores that a server was added.
func remember(ctx context.Context, e *cli.Env, d *described) error {
	dir, err := e.Config.Folders.State()
	if err != nil {
		return nil // without a state folder nothing is remembered
	}
	return dir.Update(ctx, addedServers, func(old []byte) ([]byte, error) {
		added := map[string]string{}
		_ = json.Unmarshal(old, &added) // a damaged file is begun again
		added[d.Server.Name] = d.source
		return json.Marshal(added)
	})
}
