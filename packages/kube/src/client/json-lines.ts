/**
 * Cuts a body into its lines, whatever its chunks are. A last line without an end is an interrupted
 * one and is dropped: half an event must not be mistaken for a whole one.
 */
export async function* jsonLines(
  body: AsyncIterable<string | Uint8Array>,
): AsyncGenerator<string, undefined, undefined> {
  const decoder = new TextDecoder()
  // Parts of a line that spans chunks; joined once, so that a long line stays linear.
  let parts: string[] = []
  for await (const chunk of body) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    let from = 0
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      const line = parts.length === 0 ? text.slice(from, end) : parts.join('') + text.slice(from, end)
      parts = []
      from = end + 1
      if (line.trim() !== '') yield line
    }
    if (from < text.length) parts.push(text.slice(from))
  }
  return undefined
}
