/** The guided demonstration: a cluster on a simulated cloud from empty to busy and back, each step explained. */
import {
  conditionOf,
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
import { CliError } from '../../errors.ts'
import type { Cluster } from '../cluster.ts'
import { priceOfMachines } from '../figures.ts'
import { Chronicle, euros } from './chronicle.ts'
import { gpuJob, shop, systemPods } from './manifests.ts'
import type { Narrator } from './narrator.ts'

export interface DemoStage {
  readonly cluster: Cluster
  /** What the cloud brings. */
  readonly tour: GuidedTour
  /** The kinds of the cloud's node classes. */
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  /** Applies a stream of manifests. */
  readonly apply: (yaml: string) => Promise<void>
  readonly clock: Clock
  readonly narrator: Narrator
  /** Time to read a chapter, in milliseconds. */
  readonly pauseMs: number
  readonly signal: AbortSignal
}

interface Chapter {
  readonly title: string
  readonly play: (tale: Tale) => Promise<void>
}

/** What is quicker than in a real cluster, so that nobody has to wait for minutes. */
export const demoPace: Partial<Settings> = {
  disruptionPollMs: 1000,
  validationDelayMs: 2000,
  pendingRetryMs: 3000,
}

const lookMs = 200
/** A chapter that takes longer has gone wrong. */
const patienceMs = 180_000
const shopPods = { many: 12, few: 3 } as const
/** Instances that the small workload needs beside the system pods. */
const smallInstances = 3
/** EUR per hour; sums are not exact. */
const priceTolerance = 0.0001

/**
 * Plays every chapter.
 * @throws CliError naming what did not come to pass, or the signal's reason.
 */
export async function playDemo(stage: DemoStage): Promise<void> {
  const tale = new Tale(stage)
  for (const [index, { title, play }] of chapters.entries()) {
    stage.narrator.title(`${index + 1}/${chapters.length}  ${title}`)
    await play(tale)
    if (index + 1 < chapters.length) await tale.pause()
  }
}

/** What the chapters share: the stage, the chronicle, and ways to wait. */
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
    return priceOfMachines(this.stage.cluster.cloud.machines())
  }

  instances(): number {
    return this.stage.cluster.cloud.machines().length
  }

  async pause(): Promise<void> {
    this.stage.narrator.clear()
    await this.stage.clock.sleep(this.stage.pauseMs, this.stage.signal)
  }

  /** Waits, and tells meanwhile what happens. */
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

  /** Waits until so few machines are left, none dearer than the small type, and nothing is under way. */
  async shrunk(what: string, instances: number): Promise<void> {
    const { cluster, tour } = this.stage
    const { local } = cluster.server
    const price = smallInstances * (tour.priceOf(tour.smallType) ?? 0) + priceTolerance
    await this.until(
      what,
      () =>
        this.instances() === instances &&
        this.price() <= price &&
        local.list(karpenterKinds.nodeClaim).length === instances &&
        this.pods().every(isDone),
    )
  }

  #figures(): string {
    const pending = this.pods().filter(({ status }) => status?.phase === 'Pending').length
    return `${pending} pods pending, ${this.instances()} instances, ${euros(this.price())}`
  }
}

function isDone({ status }: Pod): boolean {
  return status?.phase === 'Running' || status?.phase === 'Succeeded'
}

const chapters: readonly Chapter[] = [
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
      narrator.say('Tenon runs, but nothing says yet which machines it may launch.')
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
      narrator.done(`all ${tale.pods().length} system pods run, for ${euros(tale.price())}`)
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
      narrator.done(`all ${shopPods.many} pods run; ${euros(before)} became ${euros(tale.price())}`)
    },
  },
  {
    title: 'A job with a GPU',
    play: async (tale) => {
      const { narrator, apply, cluster, tour } = tale.stage
      narrator.say(
        `A second NodePool may launch GPU instances of the families ${tour.gpu.families}. A taint keeps`,
      )
      narrator.say('other pods away, and its instances go as soon as they are empty.')
      await apply(tour.gpu.manifests)
      await apply(gpuJob)
      await tale.until('the job runs', () =>
        tale.pods('training').some(({ status }) => status?.phase === 'Running'),
      )
      narrator.done('the job runs, and ends after some seconds')
      const claims = () => cluster.server.local.list(karpenterKinds.nodeClaim)
      await tale.until('the GPU instance is gone', () =>
        claims().every(({ metadata }) => metadata.labels?.[labels.nodePool] !== 'gpu'),
      )
    },
  },
  {
    title: `The workload shrinks to ${shopPods.few} pods`,
    play: async (tale) => {
      const { narrator, apply } = tale.stage
      const [instances, price] = [tale.instances(), tale.price()]
      narrator.say(`$ kubectl scale deployment shop --replicas=${shopPods.few}`)
      await apply(shop(shopPods.few))
      await tale.shrunk('nodes that are not needed go', smallInstances)
      narrator.done(
        `${instances} instances became ${tale.instances()}, ${euros(price)} became ${euros(tale.price())}; no pod was lost`,
      )
    },
  },
  {
    title: 'The end',
    play: async (tale) => {
      const { narrator, apply, tour } = tale.stage
      narrator.say('$ kubectl scale deployment shop --replicas=0')
      await apply(shop(0))
      await tale.until('the pods are gone', () => tale.pods('shop').length === 0)
      await tale.shrunk('only what the system pods need stays', 2)
      const { launched, removed, dearest } = tale.chronicle.totals
      narrator.done(
        `${launched} instances were launched and ${removed} removed; ${tale.instances()} are left, for the system pods`,
      )
      narrator.because(`the price was ${euros(dearest)} at its height and is ${euros(tale.price())} now`)
      narrator.say('')
      narrator.say(`Next: npm start (the same cluster to play with), ${tour.readOn} (your own cluster).`)
    },
  },
]
