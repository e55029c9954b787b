import table from './wire-fields.json' with { type: 'json' }

/**
 * Fields of Kubernetes' protobuf messages, such as `core.v1.Pod`: number, JSON name and type of each, with `|`
 * between; `[]` before the type for a list, `{}` for a map, `*` for a pointer in Go, `^` for what is part of its parent.
 */
export const wireFields: Readonly<Record<string, string>> = table
