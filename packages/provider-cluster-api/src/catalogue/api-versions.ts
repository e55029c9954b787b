/** Orders versions of an API group as Kubernetes does. */

/** The version that Kubernetes prefers; undefined if none is served. */
export function preferredVersion(versions: readonly string[]): string | undefined {
  return versions.toSorted(compareVersions)[0]
}

/** `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, then all others by name. */
function compareVersions(a: string, b: string): number {
  const [one, other] = [rankOf(a), rankOf(b)]
  for (let i = 0; i < one.length; i++) {
    const difference = (other[i] ?? 0) - (one[i] ?? 0)
    if (difference !== 0) return difference
  }
  return a < b ? -1 : 1
}

/** Stability, major and minor number. */
function rankOf(version: string): readonly [number, number, number] {
  const [, major, level, minor] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? []
  if (major === undefined) return [0, 0, 0]
  const stability = level === undefined ? 3 : level === 'beta' ? 2 : 1
  return [stability, Number(major), Number(minor ?? 0)]
}
