// Package typescript writes JSON Schemas as TypeScript types, and texts as
// documentation comments. Nothing that a schema holds can end the comment or
// the type it is written in, and a type has at most some 64 KB: what is beyond
// is unknown.
package typescript
