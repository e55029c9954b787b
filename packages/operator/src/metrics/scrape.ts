/** The page `/metrics`, sent while it is written: no scrape, however large, holds up the thread. */
import type { HttpRequest, HttpResponse } from '@tenon/runtime'
import type { MetricsRegistry } from './metrics-registry.ts'

/** Less is not worth a write of its own. */
const pieceLength = 16 * 1024

/** Answers a scrape, compressed for who takes that. How long the page becomes is not known before. */
export function scrapeResponse(
  registry: MetricsRegistry,
  { headers }: Pick<HttpRequest, 'headers'>,
): HttpResponse {
  const isGzip = takesGzip(headers['accept-encoding'] ?? '')
  const pieces = inPieces(registry.chunks())
  return {
    status: 200,
    headers: {
      'content-type': registry.contentType,
      vary: 'accept-encoding',
      ...(isGzip && { 'content-encoding': 'gzip' }),
    },
    body: isGzip ? gzipped(pieces) : pieces,
  }
}

function takesGzip(accepted: string): boolean {
  return accepted.split(',').some((each) => {
    const [name = '', ...parameters] = each.split(';').map((part) => part.trim().toLowerCase())
    return name === 'gzip' && !parameters.some((part) => /^q=0(\.0*)?$/.test(part))
  })
}

async function* inPieces(chunks: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  let text = ''
  for await (const chunk of chunks) {
    text += chunk
    if (text.length < pieceLength) continue
    yield text
    text = ''
  }
  if (text !== '') yield text
}

/** Compressed in threads of the runtime's, lightly: the names repeat so much that more effort gains little. */
async function* gzipped(pieces: AsyncIterable<string>): AsyncGenerator<Uint8Array, void, undefined> {
  // Taken when they are needed: a start without scrapes needs neither.
  const [{ createGzip }, { pipeline, Readable }] = await Promise.all([
    import('node:zlib'),
    import('node:stream'),
  ])
  const gzip = createGzip({ level: 1 })
  // A failure shows where the stream is read, too.
  pipeline(Readable.from(pieces, { objectMode: false }), gzip, toldByReader)
  yield* gzip as AsyncIterable<Uint8Array>
}

function toldByReader(): void {}
