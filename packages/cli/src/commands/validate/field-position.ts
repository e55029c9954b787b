/** Finds the position of the field that an error message names. */
import { isMap, isPair, isScalar, isSeq, type Node, type Pair } from 'yaml'

/**
 * Offset of the value at `path`, or of its key if the value spans lines. If a part of the path is not written:
 * of its nearest parent.
 *
 * Paths come from messages: `spec.limits.nvidia.com/gpu`, `spec.taints[0].key`, `labels["a.b/c"]`,
 * `resources[cpu]`. Keys may
 * contain dots, so the longest matching key is followed.
 */
export function positionOf(root: Node, path: string): number {
  const start = root.range?.[0] ?? 0
  return follow(root, path, start).offset
}

interface Found {
  readonly offset: number
  /** The part of the path that was not found. */
  readonly rest: string
}

function follow(node: Node | null, path: string, offset: number): Found {
  const rest = path.replace(/^\./, '')
  if (rest === '' || node === null) return { offset, rest }
  if (isSeq(node)) return followItem(node.items as readonly Node[], rest, offset)
  if (!isMap(node)) return { offset, rest }
  const tries = (node.items as readonly Pair[])
    .map((pair) => ({ pair, after: afterKey(rest, keyText(pair)) }))
    .filter((each): each is { pair: Pair; after: string } => each.after !== undefined)
    .toSorted((a, b) => a.after.length - b.after.length)
  const found = tries.map(({ pair, after }) => follow(pair.value as Node | null, after, offsetOf(pair)))
  return found.find((each) => each.rest === '') ?? found[0] ?? { offset, rest }
}

function followItem(items: readonly Node[], rest: string, offset: number): Found {
  const match = /^\[(\d+)\](.*)$/s.exec(rest)
  const item = match === null ? undefined : items[Number(match[1])]
  return item === undefined ? { offset, rest } : follow(item, match?.[2] ?? '', item.range?.[0] ?? offset)
}

/** The rest of the path after a key; undefined if the path does not start with it. */
function afterKey(path: string, key: string): string | undefined {
  for (const indexed of [`[${JSON.stringify(key)}]`, `[${key}]`])
    if (path.startsWith(indexed)) return path.slice(indexed.length)
  if (!path.startsWith(key)) return undefined
  const after = path.slice(key.length)
  return after === '' || after.startsWith('.') || after.startsWith('[') ? after : undefined
}

function keyText({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : String(key)
}

/** The position of a scalar value, which is more precise, or of the key of a block. */
function offsetOf(pair: Pair): number {
  const { key, value } = pair as Pair<Node, Node | null>
  const node = isScalar(value) && value.range !== null && value.range !== undefined ? value : key
  return (isPair(node) ? undefined : node.range?.[0]) ?? 0
}
