/**
 * Order of two resource versions, as Kubernetes guarantees it since 1.35: decimal numbers of any
 * length. Answers `undefined` when one of them is not such a number and only equality can be told.
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0
  if (!isDecimal(a) || !isDecimal(b)) return undefined
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : 1
}

function isDecimal(text: string): boolean {
  return /^(?:0|[1-9]\d*)$/.test(text)
}
