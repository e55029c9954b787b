/** What an error says, of whatever kind it is. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
