/**
 * Runs all steps without a pause and returns their result: for callers that do not block an event loop.
 */
export function finished<T>(steps: Iterator<unknown, T, undefined>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
