/** Distinct Kubernetes versions (`1.34.1`), newest first. */
export function newestFirst(versions: readonly string[]): string[] {
  return [...new Set(versions)].sort((a, b) => compareVersions(b, a))
}

function compareVersions(a: string, b: string): number {
  const left = a.split('.').map(Number)
  const right = b.split('.').map(Number)
  for (let index = 0; index < 3; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
