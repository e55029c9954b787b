/** What must hold at any time while nodes go for others, whoever decided it. */
import {
  annotations,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  type Pod,
  parseResources,
} from '@tenon/api'
import { allowedDisruptions } from '@tenon/engine'
import { type Fleet, isReady, isTainted } from './fleet-stage.test-support.ts'

const tiny = 1e-9

/** Looks at every change from its creation on, and notes what should not have happened. */
export class FleetWatch {
  readonly violations: string[] = []
  /** Nodes that were marked as going for others. */
  marked = 0
  /** Claims launched in place of others. */
  replacements = 0
  readonly #fleet: Fleet
  /** Fewest pods of each app that have to be ready. */
  readonly #leastReady: ReadonlyMap<string, number>
  #isWatching = false

  constructor(fleet: Fleet, leastReady: ReadonlyMap<string, number>) {
    this.#fleet = fleet
    this.#leastReady = leastReady
    const { local } = fleet.stage.world.cluster.server
    local.subscribe(kinds.pod, {
      updated: (now, before) => {
        if (isLeaving(now) && !isLeaving(before)) this.#podLeaves(now, before)
      },
    })
    local.subscribe(kinds.node, {
      updated: (now, before) => {
        if (isTainted(now) && !isTainted(before)) this.#nodeGoes(now)
      },
    })
    local.subscribe(karpenterKinds.nodeClaim, {
      added: (claim) => {
        if (!this.#isWatching || predecessorsOf(claim).length === 0) return
        this.replacements++
        this.#checkMinValues(claim)
      },
      updated: (now, before) => {
        if (now.status?.capacity !== undefined && before.status?.capacity === undefined) this.#claimComes(now)
        if (isLeaving(now) && !isLeaving(before)) this.#claimGoes(before)
      },
    })
    this.#isWatching = true
  }

  #podLeaves(pod: Pod, before: Pod): void {
    const { name } = pod.metadata
    if (pod.metadata.annotations?.[annotations.doNotDisrupt] === 'true')
      this.violations.push(`pod ${name} goes in spite of its annotation`)
    const app = pod.metadata.labels?.['app'] ?? ''
    const least = this.#leastReady.get(app)
    if (least === undefined || !isReady(before)) return
    const { world } = this.#fleet.stage
    const ready = world.pods().filter((each) => each.metadata.labels?.['app'] === app && isReady(each)).length
    if (ready < least) this.violations.push(`pod ${name} goes, ${ready} of ${app} are left, of ${least}`)
  }

  /** Nodes that are marked use up the budget of their NodePool until they are gone. */
  #nodeGoes(node: Node): void {
    this.marked++
    const { stage } = this.#fleet
    const pool = node.metadata.labels?.[labels.nodePool] ?? ''
    const tainted = new Set(
      stage.world
        .nodes()
        .filter(isTainted)
        .map(({ spec }) => spec?.providerID),
    )
    const claims = stage.world
      .claims()
      .filter((claim) => poolOf(claim) === pool && isTrue(claim, 'Initialized'))
      .filter((claim) => !isTrue(claim, 'InstanceTerminating'))
    const going = claims.filter((claim) => isLeaving(claim) || tainted.has(claim.status?.providerID)).length
    const budgets = stage.poolNow(pool)?.spec.disruption?.budgets ?? [{ nodes: '10%' }]
    const allowed = allowedDisruptions(budgets, 'Underutilized', claims.length, stage.now)
    if (going > allowed) this.violations.push(`${going} nodes of ${pool} go at once, ${allowed} may`)
  }

  /** Nodes that are about to go count no more against the limits of their NodePool. */
  #claimComes(claim: NodeClaim): void {
    const { stage } = this.#fleet
    const pool = poolOf(claim)
    const limits = parseResources(stage.poolNow(pool)?.spec.limits)
    const staying = this.#fleet.staying().filter((each) => poolOf(each) === pool)
    const held = staying.filter((each) => !isTrue(each, 'DisruptionReason'))
    for (const [name, limit] of Object.entries(limits)) {
      const used = held.reduce(
        (sum, { status }) => sum + (name === 'nodes' ? 1 : (parseResources(status?.capacity)[name] ?? 0)),
        0,
      )
      if (used > limit) this.violations.push(`NodePool ${pool} has ${used} ${name}, ${limit} are allowed`)
    }
  }

  /** Replacements may be as many types as their NodePool wants them to be at least. */
  #checkMinValues({ metadata, spec }: NodeClaim): void {
    const pool = this.#fleet.stage.poolNow(metadata.labels?.[labels.nodePool] ?? '')
    for (const { key, minValues = 0 } of pool?.spec.template.spec.requirements ?? []) {
      const values = spec.requirements.find((each) => each.key === key)?.values ?? []
      if (values.length < minValues)
        this.violations.push(`${metadata.name} may be ${values.length} of ${minValues} ${key}`)
    }
  }

  /** What comes in the place of nodes costs less than they do, and is there before they go. */
  #claimGoes(claim: NodeClaim): void {
    const mark = claim.status?.conditions?.find(({ type }) => type === 'DisruptionReason')
    const { name } = claim.metadata
    if (mark?.reason !== 'Underutilized') return
    const claims = this.#fleet.stage.world.claims()
    // What an earlier command asked for in its place, and was given up, may still be there.
    const successors = claims.filter(
      (each) =>
        predecessorsOf(each).includes(name) &&
        (each.metadata.creationTimestamp ?? '') >= (mark.lastTransitionTime ?? ''),
    )
    if (successors.some((each) => !isTrue(each, 'Initialized')))
      this.violations.push(`${name} goes before what comes in its place is ready`)
    const names = new Set(successors.flatMap(predecessorsOf))
    const replaced = claims.filter(({ metadata }) => names.has(metadata.name))
    if (successors.length === 0 || replaced.length < names.size) return
    const [later, earlier] = [this.#fleet.pricePerHour(successors), this.#fleet.pricePerHour(replaced)]
    if (later >= earlier - tiny) this.violations.push(`what costs ${earlier} goes for what costs ${later}`)
  }
}

const isLeaving = ({ metadata }: { readonly metadata: { readonly deletionTimestamp?: string } }): boolean =>
  metadata.deletionTimestamp !== undefined

const poolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''

const isTrue = ({ status }: NodeClaim, name: string): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === name && value === 'True') === true

const predecessorsOf = ({ metadata }: NodeClaim): readonly string[] =>
  metadata.annotations?.['tenon.sh/replaces']?.split(' ') ?? []
