/** Settings that a shell reads. */

const plain = /^[\w@%+=:,./-]+$/

/** Lines of `NAME=value`, quoted where a shell would make something else of a value. */
export function settingsText(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${plain.test(value) ? value : quoted(value)}\n`)
    .join('')
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", "'\\''")}'`
}
