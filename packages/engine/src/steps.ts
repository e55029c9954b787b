/** Runs all steps without a pause, for callers that need not share an event loop. */
export function finished<T>(steps: Iterator<unknown, T, undefined>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
