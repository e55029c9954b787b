const posixClasses: Readonly<Record<string, string>> = {
  alpha: 'A-Za-z',
  digit: '0-9',
  alnum: 'A-Za-z0-9',
  upper: 'A-Z',
  lower: 'a-z',
  space: '\\s',
  word: '\\w',
  punct: '!-\\/:-@\\[-`{-~',
  xdigit: '0-9A-Fa-f',
}

const compiled = new Map<string, RegExp | undefined>()
const maxCached = 2000

/**
 * An RE2 pattern as a RegExp; undefined when it is none. Patterns are searched for, not anchored.
 */
export function compilePattern(pattern: string): RegExp | undefined {
  if (!compiled.has(pattern)) {
    if (compiled.size >= maxCached) compiled.clear()
    compiled.set(pattern, compileUncached(pattern))
  }
  return compiled.get(pattern)
}

function compileUncached(pattern: string): RegExp | undefined {
  let source = pattern
  let flags = ''
  const inline = /^\(\?([ims]+)\)/.exec(source)
  if (inline !== null) {
    source = source.slice(inline[0].length)
    flags = inline[1] ?? ''
  }
  source = source
    .replace(/\(\?P</g, '(?<')
    .replace(/\\z/g, '$')
    .replace(/\\A/g, '^')
    .replace(/\[:(\w+):\]/g, (whole, name: string) => posixClasses[name] ?? whole)
  // RE2 knows neither look-around nor back references.
  if (/\(\?<?[=!]/.test(source)) return undefined
  try {
    return new RegExp(source, source.includes('\\p{') ? `${flags}u` : flags)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
