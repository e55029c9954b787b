/** Properties of every scrape of the controllers. */
import type { Settings } from '@tenon/operator'
import type { World } from '../../world.ts'

type Violate = (invariant: string, text: string) => void

/** A controller with metrics. */
export interface Measured {
  readonly name: string
  readonly clock: { readonly isPaused: boolean }
  /** The settings it was started with. */
  readonly settings: Partial<Settings>
  /** Absent until it has been built. */
  readonly operator: { readonly metrics: { readonly registry: { metrics(): Promise<string> } } } | undefined
}

interface Scraped {
  readonly counters: ReadonlyMap<string, number>
  /** Pods (`namespace/name`) and nodes that have series but do not exist. */
  readonly gone: ReadonlyMap<string, string>
}

/** Checks the metrics of every process now and then. */
export class MetricsWatch {
  readonly #world: Pick<World, 'pods' | 'nodes'>
  readonly #violate: Violate
  readonly #last = new Map<Measured, Scraped>()
  readonly #everyNthLook: number
  #looks = 0

  /** @param everyNthLook scrapes are expensive, and wrong values persist. */
  constructor(world: Pick<World, 'pods' | 'nodes'>, violate: Violate, everyNthLook: number = 10) {
    this.#everyNthLook = everyNthLook
    this.#world = world
    this.#violate = violate
  }

  /** @param running live processes; data of others is dropped. */
  async look(running: readonly Measured[]): Promise<void> {
    if (this.#looks++ % this.#everyNthLook !== 0) return
    for (const process of this.#last.keys()) if (!running.includes(process)) this.#last.delete(process)
    for (const process of running) {
      if (process.operator === undefined || process.clock.isPaused) continue
      const page = await this.#scrape(process.name, process.operator)
      if (page !== undefined) this.#compare(process, this.#read(process, page))
    }
  }

  async #scrape(
    process: string,
    { metrics }: NonNullable<Measured['operator']>,
  ): Promise<string | undefined> {
    try {
      return await metrics.registry.metrics()
    } catch (error) {
      this.#violate('metricsAnswer', `a scrape of ${process} fails: ${String(error)}`)
      return undefined
    }
  }

  #read({ name: process, settings }: Measured, page: string): Scraped {
    const scraped = { counters: new Map<string, number>(), gone: new Map<string, string>() }
    const objects = this.#objects()
    const isReduced = settings.metricsDetail === 'reduced' || settings.clusterStateObservability === false
    let type = ''
    for (const line of page.split('\n')) {
      if (line.startsWith('# TYPE ')) type = line.slice(line.lastIndexOf(' ') + 1)
      if (line === '' || line.startsWith('#')) continue
      const sample = sampleOf(line)
      if (sample === undefined) {
        this.#violate('metricsReadable', `${process} says ${line}`)
        continue
      }
      if (type === 'counter') scraped.counters.set(sample.series, sample.value)
      for (const object of objectsOf(sample)) {
        if (!objects.has(object)) scraped.gone.set(object, sample.series)
        if (isReduced && /^karpenter_(?:pods|nodes)_/.test(sample.series))
          this.#violate(
            'optionsObeyed',
            `${process} is not to tell of single pods and nodes: ${sample.series}`,
          )
      }
    }
    return scraped
  }

  /** The existing pods and nodes. */
  #objects(): ReadonlySet<string> {
    const pods = this.#world
      .pods()
      .map(({ metadata: { namespace = '', name } }) => `pod ${namespace}/${name}`)
    const nodes = this.#world.nodes().map(({ metadata }) => `node ${metadata.name}`)
    return new Set([...pods, ...nodes])
  }

  #compare(process: Measured, now: Scraped): void {
    const before = this.#last.get(process)
    this.#last.set(process, now)
    if (before === undefined) return
    for (const [series, amount] of before.counters) {
      const later = now.counters.get(series)
      if (later === undefined || later < amount)
        this.#violate('countersRise', `${process.name}: ${series} was ${amount} and is ${later ?? 'gone'}`)
    }
    // A series may outlive its object by one scrape, as a timer removes some.
    for (const [object, series] of now.gone)
      if (before.gone.has(object)) this.#violate('noSeriesOfWhatIsGone', `${process.name}: ${series}`)
  }
}

interface Sample {
  readonly series: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Undefined if a parser might misread the line: some split labels at each comma. */
function sampleOf(line: string): Sample | undefined {
  const [, series, labels = '', text = ''] = /^(\w+(?:\{(.*)\})?) (\S+)$/.exec(line) ?? []
  const value = Number(text.replace('+Inf', 'Infinity'))
  const pairs = labels === '' ? [] : labels.split(',').map((pair) => /^(\w+)="([^"]*)"$/.exec(pair))
  if (series === undefined || Number.isNaN(value) || pairs.includes(null)) return undefined
  return {
    series,
    labels: Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? '', pair?.[2] ?? ''])),
    value,
  }
}

/** The pods and nodes that one of Tenon's series is about. */
function objectsOf({ series, labels: { name, namespace, node_name: node } }: Sample): readonly string[] {
  if (!series.startsWith('karpenter_')) return []
  return [
    ...(name !== undefined && namespace !== undefined ? [`pod ${namespace}/${name}`] : []),
    ...(node === undefined ? [] : [`node ${node}`]),
  ]
}
