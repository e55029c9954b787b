/**
 * Compares two resource versions as decimal numbers, which Kubernetes guarantees since 1.35. Returns undefined
 * if one of them is not a number: such versions are only equal or different.
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
