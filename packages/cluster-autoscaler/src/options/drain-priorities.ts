import type { DrainPriority } from './options.ts'

/** `PRIORITY:SECONDS,…` in ascending order; undefined if it is malformed or has a duplicate priority. */
export function drainPrioritiesOf(text: string): readonly DrainPriority[] | undefined {
  const found: DrainPriority[] = []
  for (const part of text.split(',')) {
    const [, priority, seconds] = /^(-?\d+):(\d+)$/.exec(part) ?? []
    if (priority === undefined || seconds === undefined) return undefined
    found.push({ priority: Number(priority), graceSeconds: Number(seconds) })
  }
  const isUnique = new Set(found.map(({ priority }) => priority)).size === found.length
  return isUnique ? found.toSorted((a, b) => a.priority - b.priority) : undefined
}
