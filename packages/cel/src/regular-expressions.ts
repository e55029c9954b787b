import { RE2JS, RE2JSException } from 're2js'

/** An unanchored expression in RE2 syntax; matching takes linear time. */
export interface RegularExpression {
  matches(text: string): boolean
  /** The leftmost match. */
  find(text: string): string | undefined
  /** Non-overlapping matches from the left, at most `limit`. */
  findAll(text: string, limit?: number): readonly string[]
}

export type CompiledExpression =
  | { readonly expression: RegularExpression; readonly error?: undefined }
  /** The message of the API server. */
  | { readonly error: string; readonly expression?: undefined }

const compiled = new Map<string, CompiledExpression>()
const maxCached = 2000

/** Compiles an expression in RE2 syntax, which has neither look-around nor backreferences. */
export function compileExpression(source: string): CompiledExpression {
  const known = compiled.get(source)
  if (known !== undefined) return known
  const fresh = compileUncached(source)
  if (compiled.size >= maxCached) compiled.clear()
  compiled.set(source, fresh)
  return fresh
}

function compileUncached(source: string): CompiledExpression {
  try {
    return { expression: new Re2Expression(RE2JS.compile(source)) }
  } catch (error) {
    if (error instanceof RE2JSException) return { error: error.message }
    throw error
  }
}

class Re2Expression implements RegularExpression {
  readonly #program: RE2JS

  constructor(program: RE2JS) {
    this.#program = program
  }

  matches(text: string): boolean {
    return this.#program.test(text)
  }

  find(text: string): string | undefined {
    return this.findAll(text, 1)[0]
  }

  findAll(text: string, limit = Number.POSITIVE_INFINITY): readonly string[] {
    const found: string[] = []
    const matcher = this.#program.matcher(text)
    let previousEnd = -1
    while (found.length < limit && matcher.find()) {
      // An empty match right after another match does not count.
      if (matcher.end() > matcher.start() || matcher.start() !== previousEnd)
        found.push(matcher.group() ?? '')
      previousEnd = matcher.end()
    }
    return found
  }
}
