/** Differences of two texts as unified diff, which people and tools read. */

const context = 3

interface Edit {
  readonly sign: ' ' | '-' | '+'
  readonly line: string
}

/** The hunks of a unified diff, without file headers; empty when the texts are equal. */
export function unifiedHunks(before: string, after: string): string {
  const edits = editsOf(before.split('\n'), after.split('\n'))
  const changed = edits.flatMap(({ sign }, index) => (sign === ' ' ? [] : [index]))
  const hunks: { from: number; to: number }[] = []
  for (const index of changed) {
    const last = hunks.at(-1)
    if (last !== undefined && index <= last.to + 2 * context) last.to = index
    else hunks.push({ from: index, to: index })
  }
  return hunks.map(({ from, to }) => hunkText(edits, from - context, to + context)).join('')
}

function hunkText(edits: readonly Edit[], from: number, to: number): string {
  const start = Math.max(0, from)
  const shown = edits.slice(start, to + 1)
  const count = (list: readonly Edit[], sign: '-' | '+') =>
    list.filter((edit) => edit.sign === ' ' || edit.sign === sign).length
  const skipped = edits.slice(0, start)
  const range = (sign: '-' | '+') => `${sign}${count(skipped, sign) + 1},${count(shown, sign)}`
  const lines = shown.map(({ sign, line }) => `${sign}${line}\n`)
  return `@@ ${range('-')} ${range('+')} @@\n${lines.join('')}`
}

/** The common start and end aside, the shortest way from one to the other. */
function editsOf(before: readonly string[], after: readonly string[]): readonly Edit[] {
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && before[head] === after[head]) head++
  let tail = 0
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  const same = (lines: readonly string[]) => lines.map((line): Edit => ({ sign: ' ', line }))
  return [
    ...same(before.slice(0, head)),
    ...shortestEdits(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...same(before.slice(before.length - tail)),
  ]
}

/** Myers' greedy search: `reach` holds the furthest line of `a` on every diagonal, for each number of edits. */
function shortestEdits(a: readonly string[], b: readonly string[]): readonly Edit[] {
  const trace: ReadonlyMap<number, number>[] = []
  let reach = new Map([[1, 0]])
  for (let edits = 0; edits <= a.length + b.length; edits++) {
    trace.push(reach)
    const next = new Map<number, number>()
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = isDown(reach, diagonal, edits)
        ? (reach.get(diagonal + 1) ?? 0)
        : (reach.get(diagonal - 1) ?? 0) + 1
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++
      next.set(diagonal, x)
      if (x >= a.length && x - diagonal >= b.length) return walkBack(trace, a, b)
    }
    reach = next
  }
  return []
}

/** Whether the furthest way onto a diagonal comes by a line of `b` rather than one of `a`. */
function isDown(reach: ReadonlyMap<number, number>, diagonal: number, edits: number): boolean {
  if (diagonal === -edits) return true
  return diagonal !== edits && (reach.get(diagonal - 1) ?? 0) < (reach.get(diagonal + 1) ?? 0)
}

function walkBack(
  trace: readonly ReadonlyMap<number, number>[],
  a: readonly string[],
  b: readonly string[],
): readonly Edit[] {
  const edits: Edit[] = []
  let [x, y] = [a.length, b.length]
  for (const [index, reach] of [...trace.entries()].toReversed()) {
    const diagonal = x - y
    const down = isDown(reach, diagonal, index)
    const from = down ? diagonal + 1 : diagonal - 1
    const fromX = reach.get(from) ?? 0
    const fromY = fromX - from
    while (x > 0 && y > 0 && x > fromX && y > fromY) {
      edits.push({ sign: ' ', line: a[x - 1] ?? '' })
      x--
      y--
    }
    if (index === 0) break
    edits.push(down ? { sign: '+', line: b[fromY] ?? '' } : { sign: '-', line: a[fromX] ?? '' })
    ;[x, y] = [fromX, fromY]
  }
  return edits.toReversed()
}
