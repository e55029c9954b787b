/** A stream of bytes as lines, none of which takes more than a bounded amount of memory. */

export interface ReadLine {
  /** From 1. */
  readonly number: number
  /** Undefined for a line that is too long. */
  readonly bytes: Uint8Array | undefined
  /** Whether the line is cut off: it is the last one, and has no end. */
  readonly isCut: boolean
}

const newline = 10

/** @param mostBytes of a line that is given. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  mostBytes: number,
): AsyncGenerator<ReadLine, void, undefined> {
  let number = 1
  let parts: Uint8Array[] = []
  let length = 0
  const take = (part: Uint8Array) => {
    length += part.length
    if (length <= mostBytes) parts.push(part)
    else parts = []
  }
  const line = (isCut: boolean): ReadLine => {
    const bytes = length <= mostBytes ? Buffer.concat(parts) : undefined
    parts = []
    length = 0
    return { number: number++, bytes, isCut }
  }
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      take(chunk.subarray(start, end))
      start = end + 1
      yield line(false)
    }
    take(chunk.subarray(start))
  }
  if (length > 0) yield line(true)
}
