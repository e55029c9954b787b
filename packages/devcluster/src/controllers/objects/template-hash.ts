const safeAlphabet = 'bcdfghjklmnpqrstvwxz2456789'

/** JSON with sorted keys: equal for equal values. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

/**
 * A hash of a template for names, without vowels and confusable digits. `collisions` changes it if another template has
 * the same name.
 */
export function templateHash(template: unknown, collisions = 0): string {
  const text = canonicalJson(template) + (collisions === 0 ? '' : `#${collisions}`)
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  let encoded = ''
  for (const digit of String(hash >>> 0)) encoded += safeAlphabet[digit.charCodeAt(0) % safeAlphabet.length]
  return encoded
}
