/** Describes what happens to nodes, and why, from the objects of the cluster. */
import {
  comparePrices,
  karpenterKinds,
  kinds,
  type KubeObject,
  labels,
  type NodeClaim,
  type Pod,
  type PricePerHour,
  parseResources,
  ownValue,
} from '@tenon/api'
import type { GuidedTour } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import type { Cluster } from '../../../embedded/cluster.ts'
import { priceOfInstances, priceUnitOf } from '../../../embedded/figures.ts'
import type { Narrator } from './narrator.ts'

type PriceOf = GuidedTour['priceOf']

interface Launch {
  readonly type: string
  readonly startedMs: number
  isReady: boolean
}

interface EventObject extends KubeObject {
  readonly reason?: string
  readonly message?: string
  readonly involvedObject?: { readonly kind?: string; readonly name?: string }
}

/** The price per hour as part of a sentence. */
export function priceText(pricePerHour: PricePerHour, unit: string): string {
  return pricePerHour === undefined ? 'price not known' : `${pricePerHour.toFixed(4)} ${unit}/h`
}

/** Follows claims from launch to end; call {@link look} periodically. */
export class Chronicle {
  readonly #cluster: Cluster
  readonly #priceOf: PriceOf
  readonly #narrator: Narrator
  readonly #clock: Clock
  readonly #launches = new Map<string, Launch>()
  readonly #gone = new Set<string>()
  #dearest = 0

  constructor(cluster: Cluster, priceOf: PriceOf, narrator: Narrator, clock: Clock) {
    this.#cluster = cluster
    this.#priceOf = priceOf
    this.#narrator = narrator
    this.#clock = clock
  }

  /** Launched and removed instances so far, and the highest price per hour. */
  get totals(): { readonly launched: number; readonly removed: number; readonly dearest: number } {
    return { launched: this.#launches.size, removed: this.#gone.size, dearest: this.#dearest }
  }

  /** Prints what has changed since the last call. */
  look(): void {
    const { local } = this.#cluster.server
    const claims = local.list(karpenterKinds.nodeClaim)
    for (const claim of claims) {
      this.#reportLaunch(claim)
      this.#reportReady(claim)
    }
    const alive = new Set(claims.map(({ metadata }) => metadata.name))
    for (const [name, { type }] of this.#launches) {
      if (alive.has(name) || this.#gone.has(name)) continue
      this.#gone.add(name)
      this.#narrator.done(`${name} (${type}, ${this.#priceText(type)}) is removed: ${this.#whyGone(name)}`)
    }
    this.#dearest = Math.max(this.#dearest, priceOfInstances(this.#cluster.cloud.instances()))
  }

  #reportLaunch(claim: NodeClaim): void {
    const { name, labels: own = {} } = claim.metadata
    const type = own[labels.instanceType] ?? ''
    if (this.#launches.has(name) || !claim.status?.providerID) return
    const created = Date.parse(claim.metadata.creationTimestamp ?? '')
    this.#launches.set(name, { type, startedMs: created, isReady: false })
    const pods = this.#podsFor(name)
    this.#narrator.done(`instance for NodeClaim ${name}: ${type}, ${this.#priceText(type)}`)
    if (pods.length > 0) this.#narrator.because(`for ${named(pods)}: ${asked(pods)}`)
    const types = claim.spec.requirements.find(({ key }) => key === labels.instanceType)?.values ?? []
    this.#narrator.because(whyType(type, types, this.#priceOf))
  }

  #reportReady(claim: NodeClaim): void {
    const launch = this.#launches.get(claim.metadata.name)
    const node = claim.status?.conditions?.find(({ type }) => type === 'Initialized')
    if (launch === undefined || launch.isReady || node?.status !== 'True') return
    launch.isReady = true
    const seconds = Math.round((this.#clock.now() - launch.startedMs) / 1000)
    this.#narrator.done(`node ${claim.status?.nodeName ?? ''} is ready, ${seconds} s after it was asked for`)
  }

  #priceText(type: string): string {
    return priceText(this.#priceOf(type), priceUnitOf(this.#cluster.cloud))
  }

  #podsFor(claim: string): readonly Pod[] {
    const nominated = new Set(
      this.#events()
        .filter(({ reason, message }) => reason === 'Nominated' && message?.includes(`nodeclaim/${claim}`))
        .map(({ involvedObject }) => involvedObject?.name),
    )
    return this.#cluster.server.local.list(kinds.pod).filter(({ metadata }) => nominated.has(metadata.name))
  }

  #whyGone(name: string): string {
    const message = this.#events().find(
      ({ reason, involvedObject }) =>
        reason === 'DisruptionTerminating' &&
        involvedObject?.kind === 'NodeClaim' &&
        involvedObject.name === name,
    )?.message
    const reason = message?.split(': ')[1] ?? ''
    return ownValue(reasons, reason) ?? (reason === '' ? 'its claim was deleted' : reason)
  }

  #events(): readonly EventObject[] {
    return this.#cluster.server.local.list(kinds.event)
  }
}

const reasons: Readonly<Record<string, string>> = {
  Empty: 'no pod needs it any more (Empty)',
  Underutilized: 'its pods fit on other nodes, or on a cheaper one (Underutilized)',
  Drifted: 'it no longer is what its NodePool or node class says (Drifted)',
}

function whyType(chosen: string, types: readonly string[], priceOf: PriceOf): string {
  const others = types
    .filter((type) => type !== chosen)
    .toSorted((a, b) => comparePrices(priceOf(a), priceOf(b)))
  if (others.length === 0) return `the only type of the pool that holds them`
  const shown = others
    .slice(0, 3)
    .map((type) => `${type} ${priceOf(type)?.toFixed(4) ?? '(price not known)'}`)
  const more = others.length > 3 ? ` and ${others.length - 3} more` : ''
  const isCheapest = others.every((type) => comparePrices(priceOf(chosen), priceOf(type)) <= 0)
  return `${isCheapest ? 'the cheapest type that holds them' : 'the best that was to be had'}; dearer: ${shown.join(', ')}${more}`
}

function named(pods: readonly Pod[]): string {
  const counts = Map.groupBy(pods, ({ metadata }) => {
    const owner = metadata.labels?.['k8s-app'] ?? metadata.labels?.['app']
    return owner ?? metadata.name
  })
  return [...counts].map(([name, some]) => (some.length === 1 ? name : `${some.length} x ${name}`)).join(', ')
}

function asked(pods: readonly Pod[]): string {
  const sum = (name: string): number =>
    pods
      .flatMap(({ spec }) => spec.containers)
      .reduce((total, { resources }) => {
        const wanted = { ...resources?.limits, ...resources?.requests }
        return total + (ownValue(parseResources(wanted), name) ?? 0)
      }, 0)
  const gpus = sum('nvidia.com/gpu')
  const parts = [
    ...(sum('cpu') > 0 ? [`${sum('cpu') / 1000} CPU`] : []),
    ...(sum('memory') > 0 ? [`${(sum('memory') / 2 ** 30).toFixed(1)} GiB`] : []),
    ...(gpus > 0 ? [`${gpus} GPU`] : []),
  ]
  return parts.join(' and ')
}
