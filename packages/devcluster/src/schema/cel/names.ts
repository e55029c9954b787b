const reserved = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
)

/** The name of a field in CEL rules: reserved words and special characters are escaped. */
export function escapedName(name: string): string {
  if (reserved.has(name)) return `__${name}__`
  if (!/[-./]|__/.test(name)) return name
  return name
    .replace(/__/g, '__underscores__')
    .replace(/\./g, '__dot__')
    .replace(/-/g, '__dash__')
    .replace(/\//g, '__slash__')
}
