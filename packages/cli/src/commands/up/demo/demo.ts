/** The guided demonstration: a cluster in a simulated cloud from empty to busy and back, with explanations. */
import {
  conditionOf,
  counted,
  karpenterKinds,
  kinds,
  labels,
  type NodeClass,
  type Pod,
  type ResourceType,
} from '@tenon/api'
import type { Settings } from '@tenon/operator'
import type { GuidedTour } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import { CliError } from '../../../errors.ts'
import type { Cluster } from '../../../embedded/cluster.ts'
import { priceOfInstances, priceUnitOf } from '../../../embedded/figures.ts'
import { Chronicle, priceText } from './chronicle.ts'
import { gpuJob, shop, systemPods, teamJob } from './manifests.ts'
import type { Narrator } from './narrator.ts'

export interface DemoStage {
  readonly cluster: Cluster
  /** The cloud's part of the demonstration. */
  readonly tour: GuidedTour
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  /** Applies a YAML stream. */
  readonly apply: (yaml: string) => Promise<void>
  readonly clock: Clock
  readonly narrator: Narrator
  /** Time to read a chapter, in milliseconds. */
  readonly pauseMs: number
  /** The command that starts the same cluster without the demonstration. */
  readonly again: string
  readonly signal: AbortSignal
}

interface Chapter {
  readonly title: string
  readonly play: (tale: Tale) => Promise<void>
}

/** Settings that are faster than in a real cluster, so that nobody waits for minutes. */
export const demoPace: Partial<Settings> = {
  disruptionPollMs: 1000,
  validationDelayMs: 2000,
  pendingRetryMs: 3000,
}

const lookMs = 200
/** A chapter that takes longer has failed. */
const patienceMs = 180_000
const shopPods = { many: 12, few: 3 } as const
/** Sums of prices are not exact. */
const priceTolerance = 0.0001

/**
 * Plays every chapter.
 * @throws CliError naming what did not happen, or the signal's reason.
 */
export async function playDemo(stage: DemoStage): Promise<void> {
  const tale = new Tale(stage)
  const chapters = chaptersOf(stage.tour)
  for (const [index, { title, play }] of chapters.entries()) {
    stage.narrator.title(`${index + 1}/${chapters.length}  ${title}`)
    await play(tale)
    if (index + 1 < chapters.length) await tale.pause()
  }
}

/** What the chapters share. */
class Tale {
  readonly stage: DemoStage
  readonly chronicle: Chronicle

  constructor(stage: DemoStage) {
    this.stage = stage
    this.chronicle = new Chronicle(stage.cluster, stage.tour.priceOf, stage.narrator, stage.clock)
  }

  pods(app?: string): readonly Pod[] {
    const pods = this.stage.cluster.server.local.list(kinds.pod)
    return pods.filter(({ metadata }) => {
      const name = metadata.labels?.['k8s-app'] ?? metadata.labels?.['app']
      return app === undefined || name === app
    })
  }

  price(): number {
    return priceOfInstances(this.stage.cluster.cloud.instances())
  }

  priceText(price: number = this.price()): string {
    return priceText(price, priceUnitOf(this.stage.cluster.cloud))
  }

  instances(): number {
    return this.stage.cluster.cloud.instances().length
  }

  async pause(): Promise<void> {
    this.stage.narrator.clear()
    await this.stage.clock.sleep(this.stage.pauseMs, this.stage.signal)
  }

  /** Waits for a condition, and prints what happens meanwhile. */
  async until(what: string, isSo: () => boolean): Promise<void> {
    const { clock, narrator, signal } = this.stage
    const limit = clock.monotonic() + patienceMs
    for (;;) {
      this.chronicle.look()
      if (isSo()) return narrator.clear()
      if (clock.monotonic() > limit)
        throw new CliError(`the demonstration stopped: not within ${patienceMs / 1000} s: ${what}`)
      narrator.status(`${what}   (${this.#figures()})`)
      await clock.sleep(lookMs, signal)
    }
  }

  /**
   * Waits until at most this many instances are left, none more expensive than the small type, and nothing is
   * in progress.
   */
  async shrunk(what: string, instances: number): Promise<void> {
    const { cluster, tour } = this.stage
    const { local } = cluster.server
    const price = tour.smallInstances * (tour.priceOf(tour.smallType) ?? 0) + priceTolerance
    await this.until(
      what,
      () =>
        this.instances() === instances &&
        this.price() <= price &&
        local.list(karpenterKinds.nodeClaim).length === instances &&
        this.pods().every(isDone),
    )
  }

  /** Starts a job with its own NodePool, and waits until it has completed and its instance is gone. */
  async job(
    manifest: string,
    { app, pool, instance }: { readonly app: string; readonly pool: string; readonly instance: string },
  ): Promise<void> {
    const { apply, cluster, narrator } = this.stage
    await apply(manifest)
    await this.until('the job runs', () => this.pods(app).some(({ status }) => status?.phase === 'Running'))
    narrator.done('the job runs, and ends after some seconds')
    const claims = () => cluster.server.local.list(karpenterKinds.nodeClaim)
    await this.until(`${instance} is gone`, () =>
      claims().every(({ metadata }) => metadata.labels?.[labels.nodePool] !== pool),
    )
  }

  #figures(): string {
    const pending = this.pods().filter(({ status }) => status?.phase === 'Pending').length
    return `${counted(pending, 'pod')} pending, ${counted(this.instances(), 'instance')}, ${this.priceText()}`
  }
}

function isDone({ status }: Pod): boolean {
  return status?.phase === 'Running' || status?.phase === 'Succeeded'
}

const growing: readonly Chapter[] = [
  {
    title: 'An empty cluster',
    play: async (tale) => {
      const { narrator, apply, tour } = tale.stage
      narrator.say(
        `A new ${tour.cluster} has a control plane and no nodes. Its system pods have nowhere to run:`,
      )
      await apply(systemPods)
      await tale.until('system pods appear', () => tale.pods().length === 6)
      for (const { metadata, status } of tale.pods())
        narrator.say(`  kube-system  ${metadata.name.padEnd(42)} ${status?.phase ?? 'Pending'}`)
      narrator.say('Tenon runs, but nothing says yet which instances it may launch.')
    },
  },
  {
    title: 'A node class and a NodePool',
    play: async (tale) => {
      const { narrator, apply, cluster, tour, nodeClasses } = tale.stage
      const { nodeClass, nodePool } = tour
      narrator.say('The node class says how instances are made, the NodePool which ones and how many:')
      narrator.quote(`${nodeClass}---\n${nodePool}`)
      await apply(`${nodeClass}---\n${nodePool}`)
      await tale.until('the node class is ready', () => {
        const [found] = nodeClasses.flatMap((kind) => cluster.server.local.list(kind))
        return found !== undefined && conditionOf(found, 'Ready')?.status === 'True'
      })
      narrator.done('node class standard is ready')
      narrator.because(tour.whyReady)
    },
  },
  {
    title: 'Nodes for the pods that wait',
    play: async (tale) => {
      const { narrator } = tale.stage
      await tale.until('all system pods run', () => tale.pods().every(isDone) && tale.pods().length === 6)
      narrator.done(`all ${tale.pods().length} system pods run, for ${tale.priceText()}`)
      for (const name of ['coredns', 'konnectivity-agent']) {
        const nodes = new Set(tale.pods(name).map(({ spec }) => spec.nodeName))
        narrator.because(`${name} runs on ${[...nodes].join(' and ')}`)
      }
      narrator.because('two nodes, because these pods must not share one (anti-affinity by hostname)')
    },
  },
  {
    title: `A workload: ${shopPods.many} pods of 1 CPU and 1 GiB`,
    play: async (tale) => {
      const { narrator, apply } = tale.stage
      const before = tale.price()
      narrator.say(`$ kubectl scale deployment shop --replicas=${shopPods.many}`)
      await apply(shop(shopPods.many))
      const runs = () => tale.pods('shop').length === shopPods.many && tale.pods('shop').every(isDone)
      await tale.until('the workload runs', runs)
      narrator.done(`all ${shopPods.many} pods run; ${tale.priceText(before)} became ${tale.priceText()}`)
    },
  },
]

const withGpu = (gpu: NonNullable<GuidedTour['gpu']>): Chapter => ({
  title: 'A job with a GPU',
  play: async (tale) => {
    const { narrator, apply } = tale.stage
    narrator.say(`A second NodePool may launch GPU instances of the families ${gpu.families}. A taint keeps`)
    narrator.say('other pods away, and its instances go as soon as they are empty.')
    await apply(gpu.manifests)
    await tale.job(gpuJob, { app: 'training', pool: 'gpu', instance: 'the GPU instance' })
  },
})

const withTeam = (team: NonNullable<GuidedTour['team']>): Chapter => ({
  title: 'A job of a team with its own nodes',
  play: async (tale) => {
    const { narrator, apply } = tale.stage
    narrator.say('A second NodePool is for the pods of one team only. A taint keeps other pods away, a label')
    narrator.say('leads the pods of the team there, and its instances go as soon as they are empty.')
    await apply(team.manifests)
    await tale.job(teamJob, { app: 'report', pool: 'team', instance: 'the instance of the team' })
  },
})

const shrinking: readonly Chapter[] = [
  {
    title: `The workload shrinks to ${shopPods.few} pods`,
    play: async (tale) => {
      const { narrator, apply, tour } = tale.stage
      const [instances, price] = [tale.instances(), tale.price()]
      narrator.say(`$ kubectl scale deployment shop --replicas=${shopPods.few}`)
      await apply(shop(shopPods.few))
      await tale.shrunk('nodes that are not needed go', tour.smallInstances)
      narrator.done(
        `${instances} instances became ${tale.instances()}, ${tale.priceText(price)} became ${tale.priceText()}; no pod was lost`,
      )
    },
  },
  {
    title: 'The end',
    play: async (tale) => {
      const { narrator, again, apply, tour } = tale.stage
      narrator.say('$ kubectl scale deployment shop --replicas=0')
      await apply(shop(0))
      await tale.until('the pods are gone', () => tale.pods('shop').length === 0)
      await tale.shrunk('only what the system pods need stays', 2)
      const { launched, removed, dearest } = tale.chronicle.totals
      narrator.done(
        `${launched} instances were launched and ${removed} removed; ${tale.instances()} are left, for the system pods`,
      )
      narrator.because(
        `the price was ${tale.priceText(dearest)} at its height and is ${tale.priceText()} now`,
      )
      narrator.say('')
      narrator.say(`Next: ${again} (the same cluster to play with), ${tour.readOn} (your own cluster).`)
    },
  },
]

function chaptersOf({ gpu, team }: GuidedTour): readonly Chapter[] {
  return [...growing, ...(gpu ? [withGpu(gpu)] : []), ...(team ? [withTeam(team)] : []), ...shrinking]
}
