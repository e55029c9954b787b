/**
 * What the steps return, with no pause between them: for callers that nobody waits for meanwhile. Others give
 * way between two steps.
 */
export function finished<T>(steps: Iterator<unknown, T, undefined>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
