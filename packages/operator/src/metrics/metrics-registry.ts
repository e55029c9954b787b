/** The page `/metrics`, rendered and sent in slices, so that a scrape does not block the event loop. */
import { Registry } from 'prom-client'
import type { Clock, HttpRequest, HttpResponse, Turns } from '@tenon/runtime'
import { headerText, type LabelValues, sampleText } from './exposition.ts'
import { KeptGauge, LiveGauge } from './gauges.ts'

const sliceMs = 10
/** Reading the clock costs more than a line. */
const linesPerLook = 256

/** Data of prom-client's families, with shared labels. */
interface FamilyData {
  readonly values: readonly {
    readonly metricName?: string
    readonly labels?: LabelValues
    readonly sharedLabels?: LabelValues
    readonly value: number
  }[]
}

interface Family {
  readonly name: string
  readonly help: string
  readonly type: string
  getForPromString?(): Promise<FamilyData>
  get(): Promise<FamilyData>
}

export class MetricsRegistry extends Registry {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #turns: Turns

  constructor(clock: Pick<Clock, 'monotonic'>, turns: Turns) {
    super()
    this.#clock = clock
    this.#turns = turns
  }

  override async metrics(): Promise<string> {
    const chunks: string[] = []
    for await (const chunk of this.chunks()) chunks.push(chunk)
    return chunks.join('')
  }

  /** Each chunk ends at a line end. */
  async *chunks(): AsyncGenerator<string, void, undefined> {
    let start = this.#clock.monotonic()
    for (const family of this.getMetricsAsArray() as unknown as readonly Family[]) {
      let text = headerText(family)
      let lines = 0
      for (const piece of await textsOf(family)) {
        text += piece
        if (++lines % linesPerLook !== 0 || this.#clock.monotonic() - start < sliceMs) continue
        yield text
        text = ''
        await this.#turns.next()
        start = this.#clock.monotonic()
      }
      yield text
      if (this.#clock.monotonic() - start < sliceMs) continue
      await this.#turns.next()
      start = this.#clock.monotonic()
    }
  }
}

/** Each text is one or more lines. */
async function textsOf(family: Family): Promise<Iterable<string>> {
  if (family instanceof KeptGauge || family instanceof LiveGauge) return family.texts()
  const { values } = await (family.getForPromString?.() ?? family.get())
  return values.map(({ metricName, labels = {}, sharedLabels, value }) =>
    sampleText(metricName ?? family.name, {
      labels,
      ...(sharedLabels && { shared: sharedLabels }),
      value,
    }),
  )
}

/** Minimum length of a write. */
const pieceLength = 16 * 1024

/** Compressed if the client accepts gzip. */
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

/** Lowest level: the names repeat so much that more effort gains little. */
async function* gzipped(pieces: AsyncIterable<string>): AsyncGenerator<Uint8Array, void, undefined> {
  // Imported lazily, as a start without scrapes needs neither.
  const [{ createGzip }, { pipeline, Readable }] = await Promise.all([
    import('node:zlib'),
    import('node:stream'),
  ])
  const gzip = createGzip({ level: 1 })
  // The reader of the stream gets the error, too.
  pipeline(Readable.from(pieces, { objectMode: false }), gzip, () => undefined)
  yield* gzip as AsyncIterable<Uint8Array>
}
