// Package typescript writes JSON Schemas as TypeScript types, and text as
// documentation comments. No text in a schema can end the comment or the type
// around it. A type is limited to about 64 KB; parts beyond that are unknown.
package typescript
