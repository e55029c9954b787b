import type { DrainPriority } from './options.ts'

/** `PRIORITY:SECONDS,…` in ascending priority; undefined when it is malformed or names a priority twice. */
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
