// Package typescript writes JSON Schemas as TypeScript types, and texts as
// documentation comments. Nothing in a schema can end the comment or the type
// around it. A type is limited to about 64 KB; the rest is unknown.
package typescript
