/** Differences of two texts, line by line, as `diff -u` shows them. Pure. */

type Step = { readonly mark: ' ' | '-' | '+'; readonly line: string }

/** Lines before and after a change. */
const around = 3

/** A unified diff; empty when the texts are equal. */
export function unifiedDiff(before: string, after: string, name: string): string {
  if (before === after) return ''
  const steps = stepsBetween(before.split('\n'), after.split('\n'))
  const hunks = hunksOf(steps)
  return `--- a/${name}\n+++ b/${name}\n${hunks.map(({ from, to }) => hunkText(steps, from, to)).join('')}`
}

/** The longest common lines stay. */
function stepsBetween(before: readonly string[], after: readonly string[]): readonly Step[] {
  const lengths = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1))
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      lengths[i]![j] =
        before[i] === after[j]
          ? lengths[i + 1]![j + 1]! + 1
          : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!)
  const steps: Step[] = []
  let [i, j] = [0, 0]
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      steps.push({ mark: ' ', line: before[i]! })
      i++
      j++
    } else if (i < before.length && (j === after.length || lengths[i + 1]![j]! >= lengths[i]![j + 1]!))
      steps.push({ mark: '-', line: before[i++]! })
    else steps.push({ mark: '+', line: after[j++]! })
  }
  return steps
}

function hunksOf(steps: readonly Step[]): readonly { readonly from: number; readonly to: number }[] {
  const hunks: { from: number; to: number }[] = []
  for (const [at, { mark }] of steps.entries()) {
    if (mark === ' ') continue
    const [from, to] = [Math.max(0, at - around), Math.min(steps.length, at + around + 1)]
    const last = hunks.at(-1)
    if (last !== undefined && from <= last.to) last.to = to
    else hunks.push({ from, to })
  }
  return hunks
}

function hunkText(steps: readonly Step[], from: number, to: number): string {
  const count = (part: readonly Step[], other: '+' | '-') => part.filter(({ mark }) => mark !== other).length
  const [above, own] = [steps.slice(0, from), steps.slice(from, to)]
  const range = (other: '+' | '-') => `${count(above, other) + 1},${count(own, other)}`
  return `@@ -${range('+')} +${range('-')} @@\n${own.map(({ line, mark }) => `${mark}${line}\n`).join('')}`
}
