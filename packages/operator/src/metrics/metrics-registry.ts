/** All families of this process, and what a scrape of them says. */
import { Registry } from 'prom-client'
import type { Clock, Turns } from '@tenon/runtime'
import { headerText, type LabelValues, sampleText } from './exposition.ts'
import { KeptGauge } from './kept-gauge.ts'
import { LiveGauge } from './live-gauge.ts'

/** The thread is given up after so long: a scrape of a large cluster must not hold up decisions. */
const sliceMs = 10
/** Looking at the clock costs more than a line. */
const linesPerLook = 256

/** What the library's families answer, in the form that shares labels. */
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

/** Renders in slices, family by family; no label value has a comma. */
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

  /** The text of a scrape in pieces, each of which is cut at the end of a line. */
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

/** Lines, or several lines as one. */
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
