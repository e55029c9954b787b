import table from './wire-fields.json' with { type: 'json' }

/**
 * Fields of Kubernetes' protobuf messages, such as `core.v1.Pod`: number, JSON name and type of each, separated
 * by `|`. Prefixes of the type: `[]` a list, `{}` a map, `*` a pointer in Go, `^` embedded in its parent.
 */
export const wireFields: Readonly<Record<string, string>> = table
