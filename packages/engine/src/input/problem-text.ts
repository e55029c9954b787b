/** What went wrong with an object, for people. */
export function problemText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
