/** Takes all steps at once. @returns what they return. */
export function finished<T>(steps: Iterator<unknown, T, undefined>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
