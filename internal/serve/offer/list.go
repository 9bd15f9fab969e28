package offer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolreg/toolreg/internal/mcpclient"
)

// CacheScope says who may keep a result: what is offered, and what servers return, may depend on the
// caller.
const CacheScope = "private"

// pageSize is the number of entries on a page of a list.
const pageSize = 1000

// List answers a request for a list with what the caller of ctx is offered.
func (v *View) List(ctx context.Context, req mcp.Request) (mcp.Result, error) {
	cacheable := mcp.Cacheable{CacheScope: CacheScope}
	uriOf := func(r *Resource) string { return r.URI }
	switch p := req.GetParams().(type) {
	case *mcp.ListToolsParams:
		tools, next, err := pageOf(v.tools, orZero(p).Cursor, func(d *Declaration) string { return d.Name })
		page := &listedTools{mcp.ListToolsResult{Cacheable: cacheable, NextCursor: next}, []json.RawMessage{}}
		for _, t := range v.permitted(ctx, tools) {
			page.Tools = append(page.Tools, t.Raw)
		}
		return page, err
	case *mcp.ListPromptsParams:
		var names []string
		for _, name := range slices.Sorted(maps.Keys(v.prompts)) {
			one := v.prompts[name]
			if name == one.Declared && v.profile.showsServer(one.Server.Info().Name) &&
				v.Rules.Check(ctx, one.Offer()) == nil {
				names = append(names, name)
			}
		}
		names, next, err := pageOf(names, orZero(p).Cursor, func(name string) string { return name })
		page := &mcp.ListPromptsResult{Cacheable: cacheable, NextCursor: next, Prompts: []*mcp.Prompt{}}
		for _, name := range names {
			if is := convert[mcp.Prompt](v.prompts[name].is); is != nil {
				is.Name = name
				page.Prompts = append(page.Prompts, is)
			}
		}
		return page, err
	case *mcp.ListResourcesParams:
		all, next, err := pageOf(v.shown(ctx).listResources(false), orZero(p).Cursor, uriOf)
		page := &mcp.ListResourcesResult{Cacheable: cacheable, NextCursor: next, Resources: []*mcp.Resource{}}
		for _, r := range all {
			page.Resources = append(page.Resources, r.is)
		}
		return page, err
	case *mcp.ListResourceTemplatesParams:
		all, next, err := pageOf(v.shown(ctx).listResources(true), orZero(p).Cursor, uriOf)
		page := &mcp.ListResourceTemplatesResult{
			Cacheable: cacheable, NextCursor: next, ResourceTemplates: []*mcp.ResourceTemplate{},
		}
		for _, r := range all {
			page.ResourceTemplates = append(page.ResourceTemplates, r.like)
		}
		return page, err
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
}

// orZero returns the params of a request, which the SDK leaves nil if they are missing.
func orZero[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

// pageOf returns the page of a sorted list that a cursor names, and the cursor of the next one.
func pageOf[T any](all []T, cursor string, key func(T) string) (page []T, next string, err error) {
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is not one of this server"}
	}
	first, found := slices.BinarySearchFunc(all, string(after), func(one T, after string) int {
		return strings.Compare(key(one), after)
	})
	if found {
		first++
	}
	if all = all[first:]; len(all) > pageSize {
		all = all[:pageSize]
		next = base64.RawURLEncoding.EncodeToString([]byte(key(all[pageSize-1])))
	}
	return all, next, nil
}

// listedTools is a page of tools/list. The tools are written as they were declared, because the SDK's type
// does not have all their fields.
type listedTools struct {
	mcp.ListToolsResult
	Tools []json.RawMessage `json:"tools"`
}

// Digest returns the digest of a list ("tools", "prompts" or "resources") of this view, for the
// caller of ctx.
func (v *View) Digest(ctx context.Context, kind string) Digest {
	if kind == "tools" && v.Rules.HasCallers() {
		return v.digest(kind, v.permitted(ctx, v.tools))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := [2]string{v.profile.Name, kind}
	d, ok := v.digests[key]
	if !ok {
		d = v.digest(kind, v.tools)
		v.digests[key] = d
	}
	return d
}

func (v *View) digest(kind string, tools []*Declaration) Digest {
	hash := sha256.New()
	add := func(name string, from *mcpclient.Source, what any) {
		if v.profile.showsServer(from.Info().Name) {
			_ = json.NewEncoder(hash).Encode([]any{name, what}) // what was read from JSON
		}
	}
	switch kind {
	case "tools":
		for _, t := range tools {
			_, _ = hash.Write(t.Raw)
		}
	case "prompts":
		for _, name := range slices.Sorted(maps.Keys(v.prompts)) {
			add(name, v.prompts[name].Server, v.prompts[name].is)
		}
	case "resources":
		for _, one := range v.offerings {
			for _, r := range one.all() {
				add(r.URI, one.server, []any{r.is, r.like})
			}
		}
	}
	return Digest(hash.Sum(nil))
}
