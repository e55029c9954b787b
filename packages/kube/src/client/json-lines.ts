const lineEnd = 0x0a

/** A received line: UTF-8 bytes, or text from a server in this process. */
export type JsonLine = string | Buffer

/**
 * Splits a body into lines, whatever its chunks; lines that end in one chunk are returned together. A last line without
 * an end was interrupted and is dropped. Lines are not decoded, as readers may not need all of them.
 */
export async function* jsonLines(
  body: AsyncIterable<string | Uint8Array>,
): AsyncGenerator<readonly JsonLine[], undefined, undefined> {
  const text = new TextLines()
  const bytes = new ByteLines()
  for await (const chunk of body) {
    const lines = typeof chunk === 'string' ? text.endedBy(chunk) : bytes.endedBy(chunk)
    if (lines.length > 0) yield lines
  }
  return undefined
}

class TextLines {
  /** Parts of a line that spans chunks; joined once, so that a long line takes linear time. */
  #parts: string[] = []

  endedBy(chunk: string): readonly string[] {
    const lines: string[] = []
    let from = 0
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      const last = chunk.slice(from, end)
      const line = this.#parts.length === 0 ? last : this.#parts.join('') + last
      this.#parts = []
      from = end + 1
      if (line.trim() !== '') lines.push(line)
    }
    if (from < chunk.length) this.#parts.push(chunk.slice(from))
    return lines
  }
}

class ByteLines {
  #parts: Uint8Array[] = []

  endedBy(chunk: Uint8Array): readonly Buffer[] {
    const buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const lines: Buffer[] = []
    let from = 0
    for (let end = buffer.indexOf(lineEnd); end >= 0; end = buffer.indexOf(lineEnd, from)) {
      const last = buffer.subarray(from, end)
      const line = this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last])
      this.#parts = []
      from = end + 1
      if (line.some((byte) => byte > 0x20)) lines.push(line)
    }
    if (from < buffer.length) this.#parts.push(buffer.subarray(from))
    return lines
  }
}
